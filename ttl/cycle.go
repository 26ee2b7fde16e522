package ttl

import "time"

// CycleResult tells what one [Cycle] did.
type CycleResult struct {
	Examined int  // Entries handed to the function.
	Deleted  int  // Of these, those it deleted.
	Failed   int  // And those for which it returned an error.
	More     bool // Entries were due that this run did not get to.
}

// Queue is an index with what is to be done when its entries are due.
type Queue struct {
	Index *Index

	// Expire decides: it looks again under the key's lock, for the deadline may have changed meanwhile, and deletes what has
	// expired with its entry. What it leaves in the index is offered again by the next run. It must be quick.
	Expire func(ns uint32, key string, deadline int64) (deleted bool, err error)
}

// Cycle hands the entries of all queues that are due at now to their Expire, the earliest first and each at most once, until none
// is left, most were handed out, or the budget is used up. The budget is looked at between entries. An error does not end the
// run, or one damaged key would keep all the others from expiring; Cycle returns the first one.
func Cycle(now int64, budget time.Duration, most int, queues ...Queue) (r CycleResult, err error) {
	start := time.Now()
	due := dueOf(now, queues)
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
