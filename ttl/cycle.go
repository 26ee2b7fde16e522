package ttl

import "time"

// CycleResult reports what one [Cycle] did.
type CycleResult struct {
	Examined int  // Entries passed to Expire.
	Deleted  int  // Of these, those it deleted.
	Failed   int  // Of these, those that were passed to a call that failed, and that it did not delete.
	More     bool // More entries are due.
}

// Queue is a set of deadlines with the function that handles the due ones.
type Queue struct {
	Deadlines *Deadlines

	// Batch is the most entries that one call of Expire gets; 0 means 1.
	Batch int

	// Expire decides: it looks up each deadline again under the key's lock, because it may have changed since, and
	// deletes the expired keys with their entries. All entries are of one namespace, the earliest first. The next run
	// offers entries that it leaves again. It must be quick, and may not keep the slice.
	Expire func(ns uint32, due []Entry) (deleted int, err error)
}

// Cycle passes the entries of all queues that are due at now to their Expire, the earliest first and each at most once,
// until none is left, it has passed most of them, or the budget is used up. It checks the budget between calls of
// Expire. An error does not end the run, because one damaged key must not keep all the others from expiring; Cycle
// returns the first error.
func Cycle(now int64, budget time.Duration, most int, queues ...Queue) (r CycleResult, err error) {
	start := time.Now()
	cursor := newDueCursor(now, queues)
	var due []Entry
	for r.Examined < most && time.Since(start) < budget {
		var q *Queue
		if due, q = cursor.nextBatch(due[:0], most-r.Examined); len(due) == 0 {
			break
		}
		deleted, xerr := q.Expire(due[0].Namespace, due)
		r.Examined += len(due)
		r.Deleted += deleted
		if xerr != nil {
			r.Failed += len(due) - deleted
			if err == nil {
				err = xerr
			}
		}
	}
	r.More = !cursor.empty()
	return r, err
}
