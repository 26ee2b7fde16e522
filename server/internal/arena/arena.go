// Package arena keeps many small things with little memory besides their own: in blocks, which are never copied when
// there are more, so that none becomes garbage before all do.
//
// [Blocks] are values in the order in which they were added. [Args] copies the arguments of commands. Both are freed as
// a whole, by the garbage collector. Neither is safe for concurrent use.
package arena

import "iter"

// The sizes of blocks: the first is small, for most queues are short, and each next twice as long, up to a bound.
const (
	firstBlock = 8
	lastBlock  = 1024
	lastBytes  = 16 << 10
)

// next is the capacity of the block that follows one of some capacity, for at least n.
func next(capacity, n, most int) int { return max(n, min(max(2*capacity, firstBlock), most)) }

// Blocks are values that keep their places. The zero value has none.
type Blocks[T any] struct {
	blocks [][]T
	n      int
}

// Add appends a value.
func (b *Blocks[T]) Add(v T) {
	last := len(b.blocks) - 1
	if last < 0 || len(b.blocks[last]) == cap(b.blocks[last]) {
		capacity := 0
		if last >= 0 {
			capacity = cap(b.blocks[last])
		}
		b.blocks = append(b.blocks, make([]T, 0, next(capacity, 1, lastBlock)))
		last++
	}
	b.blocks[last] = append(b.blocks[last], v)
	b.n++
}

// Len is how many there are.
func (b *Blocks[T]) Len() int { return b.n }

// All yields their places, in order.
func (b *Blocks[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, block := range b.blocks {
			for i := range block {
				if !yield(&block[i]) {
					return
				}
			}
		}
	}
}

// Args are copies of arguments. The zero value has none.
type Args struct {
	heads [][]byte // the block that is being filled
	bytes []byte   // likewise
}

// Copy returns a copy of the arguments.
func (a *Args) Copy(args [][]byte) [][]byte {
	if cap(a.heads)-len(a.heads) < len(args) {
		a.heads = make([][]byte, 0, next(cap(a.heads), len(args), lastBlock))
	}
	from := len(a.heads)
	for _, arg := range args {
		a.heads = append(a.heads, a.copyOne(arg))
	}
	return a.heads[from:len(a.heads):len(a.heads)]
}

func (a *Args) copyOne(arg []byte) []byte {
	if len(arg) > lastBytes/8 {
		return append(make([]byte, 0, len(arg)), arg...) // of its own, so that a block does not end early
	}
	if cap(a.bytes)-len(a.bytes) < len(arg) {
		a.bytes = make([]byte, 0, next(cap(a.bytes), len(arg), lastBytes))
	}
	from := len(a.bytes)
	a.bytes = append(a.bytes, arg...)
	return a.bytes[from:len(a.bytes):len(a.bytes)]
}
