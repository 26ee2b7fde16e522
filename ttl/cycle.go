package ttl

import "time"

// CycleResult reports what one [Cycle] did.
type CycleResult struct {
	Examined int  // Entries passed to Expire.
	Deleted  int  // Of these, those it deleted.
	Failed   int  // Of these, those for which it returned an error.
	More     bool // More entries are due.
}

// Queue is a set of deadlines with the function that handles the due ones.
type Queue struct {
	Deadlines *Deadlines

	// Expire decides: it looks up the deadline again under the key's lock, because it may have changed since, and
	// deletes an expired key with its entry. The next run offers entries that it leaves again. It must be quick.
	Expire func(ns uint32, key string, deadline int64) (deleted bool, err error)
}

// Cycle passes the entries of all queues that are due at now to their Expire, the earliest first and each at most once, until
// none is left, it has passed most of them, or the budget is used up. It checks the budget between entries. An error does not
// end the run, because one damaged key must not keep all the others from expiring; Cycle returns the first error.
func Cycle(now int64, budget time.Duration, most int, queues ...Queue) (r CycleResult, err error) {
	start := time.Now()
	due := newDueCursor(now, queues)
	for r.Examined < most && time.Since(start) < budget {
		e, q, ok := due.next()
		if !ok {
			break
		}
		r.Examined++
		deleted, xerr := q.Expire(e.Namespace, e.Key, e.Deadline)
		if xerr != nil {
			r.Failed++
			if err == nil {
				err = xerr
			}
		} else if deleted {
			r.Deleted++
		}
	}
	r.More = !due.empty()
	return r, err
}
