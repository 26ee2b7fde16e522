package resp

import (
	"slices"
	"sync/atomic"
)

// PartSize is how long the parts of a long reply are, in bytes; a longer bulk string has a part of its own.
const PartSize = 256 << 10

// partSlack is room for what has no length to ask the budget for, such as the header of an array.
const partSlack = 64

// Budget is the memory that writers share for long replies. A writer takes from it before it has the memory, and
// gives back what has been sent, part by part. What a writer holds up to the allowance does not count: short replies
// never come here. All methods are safe for concurrent use.
type Budget struct {
	// Allowance is how many bytes each writer may hold besides. It must not change.
	Allowance int
	// Given is called, unless it is nil, by whatever gives memory back while Wanted says so.
	Given func()
	// Lend decides, unless it is nil, instead of the limit: whether so many bytes may be taken. It must not change.
	Lend func(n int) bool
	// Whole makes a writer keep all that it has not discarded in one buffer, as Bytes returns it. It must not change.
	Whole bool

	limit  atomic.Int64 // bytes; 0: none
	taken  atomic.Int64
	most   atomic.Int64 // of taken, since Most was called
	wanted atomic.Bool
}

// SetLimit sets how many bytes may be taken, 0 for any number. It takes nothing away.
func (b *Budget) SetLimit(n int64) { b.limit.Store(n) }

// Limit returns it.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Taken returns how many bytes writers have taken.
func (b *Budget) Taken() int64 { return b.taken.Load() }

// Most returns how many bytes were taken at once since it was called last.
func (b *Budget) Most() int64 {
	taken := b.taken.Load()
	return max(taken, b.most.Swap(taken))
}

// add counts n bytes that have been taken.
func (b *Budget) add(n int64) { b.note(b.taken.Add(n)) }

func (b *Budget) note(taken int64) {
	for most := b.most.Load(); taken > most && !b.most.CompareAndSwap(most, taken); most = b.most.Load() {
	}
}

// Wanted says whether somebody waits for memory that is given back.
func (b *Budget) Wanted(wanted bool) { b.wanted.Store(wanted) }

// HasRoom reports whether n bytes can be taken, or nobody has taken any.
func (b *Budget) HasRoom(n int64) bool {
	limit, taken := b.limit.Load(), b.taken.Load()
	return limit == 0 || taken <= 0 || taken+n <= limit
}

// take takes n bytes for a writer, and reports whether it may. A writer that is alone always may: its own limit bounds
// it.
func (b *Budget) take(w *Writer, n int64) bool {
	if b.Lend != nil {
		lent := b.Lend(int(n))
		if lent {
			b.add(n)
		}
		return lent
	}
	for {
		limit, taken := b.limit.Load(), b.taken.Load()
		if limit > 0 && taken+n > limit && taken > int64(w.parts.taken) {
			return false
		}
		if b.taken.CompareAndSwap(taken, taken+n) {
			b.note(taken + n)
			return true
		}
	}
}

// parts are what a writer with a budget has besides its buffer: a long reply is not moved when it grows, and its memory
// goes as it is sent.
type parts struct {
	budget    *Budget
	list      [][]byte // the oldest first; buf comes after them
	length    int      // of all in the list, in bytes
	held      int      // memory of them
	taken     int      // of the budget
	short     bool     // something was dropped because of the budget, and now the reply is only counted
	wanted    int      // how much the writer would have taken of the budget so far
	unwritten int      // bytes that were only counted
	from      int      // where in the buffer that began
	over      bool     // nothing is to be dropped because of it
	asked     int      // memory that Ask has taken: bytes
}

// SetBudget makes the writer take memory for long replies from a budget.
func (w *Writer) SetBudget(b *Budget) { w.parts.budget = b }

// inParts reports whether what does not fit the buffer goes to another one.
func (w *Writer) inParts() bool { return w.parts.budget != nil && !w.parts.budget.Whole }

// Short reports whether something was dropped since SetLimit because the budget had no room for it. The reply is
// counted all the same, up to the limit: wanted is about how much of the budget it needs.
func (w *Writer) Short() (short bool, wanted int) { return w.parts.short, w.parts.wanted }

// Dropped reports whether something was dropped since SetLimit, because of the limit or of the budget.
func (w *Writer) Dropped() bool { return w.exceeded || w.parts.short }

// countOnly counts n bytes that are not written. What came since then without being asked for is dropped.
func (w *Writer) countOnly(n int) bool {
	p := &w.parts
	p.wanted += n
	p.unwritten += n
	w.buf = w.buf[:min(p.from, len(w.buf))]
	w.exceeded = w.exceeded || w.limit > 0 && w.Len()+p.unwritten > w.limit
	return false
}

// dropShort counts n bytes that are not written, if the budget, and not the limit, is why. It returns false.
func (w *Writer) dropShort(n int) bool {
	if w.parts.short {
		w.parts.unwritten += n
	}
	return false
}

// Overdraw makes the writer take memory that the budget does not have, until it is called again.
func (w *Writer) Overdraw(over bool) { w.parts.over = over }

// Taken returns how many bytes of the budget the writer has.
func (w *Writer) Taken() int { return w.parts.taken }

// From returns what follows the first n bytes that have not been discarded, up to the end of a part.
func (w *Writer) From(n int) []byte {
	n += w.sent
	for _, part := range w.parts.list {
		if n < len(part) {
			return part[n:]
		}
		n -= len(part)
	}
	return w.buf[n:]
}

// Close gives everything back. Nothing is to be written afterwards.
func (w *Writer) Close() {
	w.Discard(w.Len())
	w.buf, w.own, w.parts.asked = nil, nil, 0 // a panic may have left what Ask has taken
	w.giveBack()
}

// reserve takes what is missing in the budget for more bytes of memory. Without room for them it notes that, and
// reports false:
// unless the writer has no limit.
func (w *Writer) reserve(more int) bool {
	missing, ok := w.tryReserve(more)
	if !ok {
		p := &w.parts
		p.short, p.wanted, p.unwritten, p.from = true, p.taken+missing, 0, len(w.buf)
	}
	return ok
}

// Ask takes room in the budget for n bytes besides what the writer holds, which a value is read into before it is
// written: all calls until GiveAsked, or until BeginBulk's value has become the writer's, are about the same bytes.
// Without room it notes that, and reports false.
func (w *Writer) Ask(n int) bool {
	p := &w.parts
	if p.budget == nil || n <= p.asked {
		return true
	}
	if !w.reserve(n - p.asked) {
		return false
	}
	p.asked = n
	return true
}

// TryAsk is Ask for another number of bytes in place of those before, of which it gives back what is more. Without room
// it changes and notes nothing.
func (w *Writer) TryAsk(n int) bool {
	p := &w.parts
	if p.budget == nil {
		return true
	}
	if n > p.asked {
		if _, ok := w.tryReserve(n - p.asked); !ok {
			return false
		}
		p.asked = n
		return true
	}
	p.asked = n
	w.giveBack()
	return true
}

// GiveAsked gives back what Ask has taken.
func (w *Writer) GiveAsked() {
	if w.parts.asked != 0 {
		w.parts.asked = 0
		w.giveBack()
	}
}

// tryReserve is reserve that notes nothing: it returns what is missing.
func (w *Writer) tryReserve(more int) (missing int, ok bool) {
	p := &w.parts
	if p.budget == nil {
		return 0, true
	}
	missing = w.Held() + p.asked + more - p.budget.Allowance - p.taken
	switch {
	case missing <= 0:
		return 0, true
	case w.limit == 0 || p.over:
		p.budget.add(int64(missing))
	case !p.budget.take(w, int64(missing)):
		return missing, false
	}
	p.taken += missing
	return 0, true
}

// giveBack gives the budget what the writer does not hold any more.
func (w *Writer) giveBack() {
	p := &w.parts
	if p.taken == 0 {
		return
	}
	surplus := min(p.taken, p.taken-(w.Held()+p.asked-p.budget.Allowance))
	if surplus <= 0 {
		return
	}
	p.taken -= surplus
	p.budget.taken.Add(int64(-surplus))
	if p.budget.wanted.Load() && p.budget.Given != nil {
		p.budget.Given()
	}
}

// startPart makes what is in the buffer a part, and starts another one with room for n bytes.
func (w *Writer) startPart(n int) bool {
	size := partSize(n)
	if !w.reserve(size) {
		return false
	}
	w.addPart(size)
	return true
}

// expectPart is startPart for n bytes that may not come: it does nothing if the budget has no room for them.
func (w *Writer) expectPart(n int) {
	size := partSize(n)
	if _, ok := w.tryReserve(size); ok {
		w.addPart(size)
	}
}

// partSize returns how much memory a part with room for n bytes takes.
func partSize(n int) int {
	if n <= PartSize {
		return PartSize
	}
	_, size := sharedFor(n + partSlack)
	return size
}

func (w *Writer) addPart(size int) {
	p := &w.parts
	b := takeBuffer(size)
	if len(w.buf) == 0 {
		w.leaveBuffer()
	} else {
		w.longest = max(w.longest, len(w.buf))
		p.list = append(p.list, w.buf)
		p.length += len(w.buf)
		p.held += cap(w.buf)
	}
	w.buf = b
}

// discardParts drops n bytes of the parts. It returns how many of them are left to drop from the buffer, -1 if it is
// not at that.
func (w *Writer) discardParts(n int) int {
	p := &w.parts
	for len(p.list) > 0 {
		part := p.list[0]
		if rest := len(part) - w.sent; n < rest {
			w.sent += n
			return -1
		} else {
			n -= rest
		}
		w.sent = 0
		p.length -= len(part)
		p.held -= cap(part)
		p.list[0] = nil
		p.list = p.list[1:]
		giveBuffer(part)
		w.giveBack()
	}
	p.list = nil
	return n
}

// truncateParts drops the parts after the first n bytes, those of the first part that have been discarded included. It
// returns how many of them are in the buffer.
func (w *Writer) truncateParts(n int) int {
	p := &w.parts
	for last := len(p.list) - 1; last >= 0 && n <= p.length; last-- {
		giveBuffer(w.buf)
		w.buf = p.list[last]
		p.list[last] = nil
		p.list = p.list[:last]
		p.length -= len(w.buf)
		p.held -= cap(w.buf)
	}
	w.giveBack()
	return n - p.length
}

// insertInPart is insert for an aggregate that began in a part before the buffer.
func (w *Writer) insertInPart(m Mark, header []byte) {
	p := &w.parts
	part := p.list[m.part]
	p.held -= cap(part)
	part = slices.Insert(part, m.at, header...)
	p.list[m.part] = part
	p.held += cap(part)
	p.length += len(header)
}
