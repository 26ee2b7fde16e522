// Package chunked has a list that grows without moving what it holds: a transaction of millions of records must not copy
// hundreds of megabytes in one move, which the scheduler of Go cannot interrupt.
package chunked

// chunkShift is the size of a chunk, as a power of two.
const chunkShift = 11

// List is a list in chunks. The first grows as a slice does, so a short list is one slice; the others are made whole.
type List[T any] struct {
	chunks [][]T
	n      int
	shift  uint8
}

// SetShift makes chunks hold 1<<shift elements, for tests; 0 is the default. The list is empty.
func (l *List[T]) SetShift(shift uint8) {
	if shift != l.shift {
		*l = List[T]{shift: shift}
	}
}

func (l *List[T]) bits() uint8 {
	if l.shift != 0 {
		return l.shift
	}
	return chunkShift
}

// Len is the number of elements.
func (l *List[T]) Len() int { return l.n }

// Cap is the number of elements that the list has memory for.
func (l *List[T]) Cap() int {
	if len(l.chunks) == 0 {
		return 0
	}
	return cap(l.chunks[0]) + (len(l.chunks)-1)<<l.bits()
}

// At returns element i in place.
func (l *List[T]) At(i int) *T {
	bits := l.bits()
	return &l.chunks[i>>bits][i&(1<<bits-1)]
}

// Append adds an element.
func (l *List[T]) Append(e T) {
	bits := l.bits()
	c := l.n >> bits
	if c == len(l.chunks) {
		var chunk []T
		if c > 0 {
			chunk = make([]T, 0, 1<<bits)
		}
		l.chunks = append(l.chunks, chunk)
	}
	l.chunks[c] = append(l.chunks[c], e)
	l.n++
}

// Cut removes the elements from n on.
func (l *List[T]) Cut(n int) {
	bits := l.bits()
	for c := len(l.chunks) - 1; c >= 0; c-- {
		first := c << bits
		if first+len(l.chunks[c]) <= n {
			break
		}
		if first >= n && c > 0 {
			l.chunks[c] = nil
			l.chunks = l.chunks[:c]
			continue
		}
		clear(l.chunks[c][n-first:])
		l.chunks[c] = l.chunks[c][:n-first]
	}
	l.n = n
}

// Recycle empties the list for another use, for which it keeps memory for at most keep elements.
func (l *List[T]) Recycle(keep int) {
	l.Cut(0)
	if l.Cap() > keep || cap(l.chunks) > keep {
		*l = List[T]{shift: l.shift}
	}
}
