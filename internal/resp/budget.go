package resp

import "sync/atomic"

// Budget is the memory that writers share for long replies. A writer takes from it before it has the memory, and
// gives back what has been sent, part by part. What a writer holds up to the allowance does not count: short replies
// never come here. All methods are safe for concurrent use.
type Budget struct {
	// Allowance is how many bytes each writer may hold besides. It must not change.
	Allowance int
	// Given is called, unless it is nil, by whatever gives memory back.
	Given func()
	// Lend decides, unless it is nil, instead of the limit: whether so many bytes may be taken. It must not change.
	Lend func(n int) bool
	// Whole makes a writer keep all that it has not discarded in one buffer, as Bytes returns it. It must not change.
	Whole bool

	limit atomic.Int64 // bytes; 0: none
	taken atomic.Int64
	most  atomic.Int64 // of taken, since Most was called
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

// HasRoom reports whether n bytes can be taken, or nobody has taken any.
func (b *Budget) HasRoom(n int64) bool {
	limit, taken := b.limit.Load(), b.taken.Load()
	return limit == 0 || taken <= 0 || taken+n <= limit
}

// take takes n bytes for a writer that has some already, and reports whether it may. A writer that is alone always may:
// its own limit bounds it.
func (b *Budget) take(has int, n int64) bool {
	if b.Lend != nil {
		lent := b.Lend(int(n))
		if lent {
			b.add(n)
		}
		return lent
	}
	for {
		limit, taken := b.limit.Load(), b.taken.Load()
		if limit > 0 && taken+n > limit && taken > int64(has) {
			return false
		}
		if b.taken.CompareAndSwap(taken, taken+n) {
			b.note(taken + n)
			return true
		}
	}
}

// account is what a writer has to do with its budget.
type account struct {
	budget   *Budget
	taken    int  // bytes of it
	reserved int  // bytes that the writer does not hold, but has taken: see Reserve
	short    int  // see Short
	counted  int  // bytes that have been dropped because of it
	from     int  // where in the buffer that began
	over     bool // see Overdraw
}

// SetBudget makes the writer take memory for long replies from a budget.
func (w *Writer) SetBudget(b *Budget) { w.account.budget = b }

// Short returns about how many bytes of the budget the writer needs, if that has refused some since SetLimit, else 0. What
// follows is counted, up to the limit.
func (w *Writer) Short() int { return w.account.short }

// Overdraw makes the writer take memory that the budget does not have, until it is called again.
func (w *Writer) Overdraw(over bool) { w.account.over = over }

// Taken returns how many bytes of the budget the writer has.
func (w *Writer) Taken() int { return w.account.taken }

// Reserve takes n bytes of the budget besides what the writer holds, in place of those of the call before: for values
// that are read before they are written. They last until Reserve(0), or until BeginBulk's value has become the writer's.
// Without room it takes nothing, and reports false.
func (w *Writer) Reserve(n int) bool {
	a := &w.account
	if a.budget == nil || n == a.reserved {
		return true
	}
	if n > a.reserved && (w.Dropped() || !w.take(n-a.reserved)) {
		return false
	}
	a.reserved = n
	if w.giveBack(); !w.Dropped() {
		a.short = 0
	}
	return true
}

// Reserved returns what Reserve has taken.
func (w *Writer) Reserved() int { return w.account.reserved }

// take takes of the budget what is missing for more bytes of memory, and reports whether it could.
func (w *Writer) take(more int) bool {
	a := &w.account
	if a.budget == nil {
		return true
	}
	missing := w.Held() + a.reserved + more - a.budget.Allowance - a.taken
	switch {
	case missing <= 0:
		return true
	case w.limit == 0 || a.over:
		a.budget.add(int64(missing))
	case !a.budget.take(a.taken, int64(missing)):
		a.short = a.taken + missing
		return false
	}
	a.taken += missing
	return true
}

// giveBack gives the budget what the writer does not hold any more.
func (w *Writer) giveBack() {
	a := &w.account
	if a.taken == 0 {
		return
	}
	surplus := min(a.taken, a.taken-(w.Held()+a.reserved-a.budget.Allowance))
	if surplus <= 0 {
		return
	}
	a.taken -= surplus
	a.budget.taken.Add(int64(-surplus))
	if a.budget.Given != nil {
		a.budget.Given()
	}
}
