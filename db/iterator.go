package db

// pageSize is how many elements an iterator reads at one moment.
const pageSize = 128

// sink says where the read error of an iterator goes. On a transaction it is the transaction, which View and Update
// return; a handle of a store has no such place, so its caller gives one.
func (h handle) sink(errs []*error) func(error) {
	switch {
	case len(errs) > 1:
		panic("BUG: db: an iterator takes at most one *error")
	case len(errs) == 1 && errs[0] != nil:
		*errs[0] = nil
		return func(err error) {
			*errs[0] = err
			if h.tx != nil {
				h.tx.fail(err)
			}
		}
	case h.tx != nil:
		return h.tx.fail
	}
	panic("BUG: db: an iterator of a store's handle needs a *error for its read error: All(&err)")
}

// scanPages drives a cursor from 0 to 0. Nothing is locked while yield runs: on a store, writers come between two pages,
// and on a transaction the loop's body may change what it ranges over.
func scanPages[T any](fail func(error), scan func(cursor uint64) ([]T, uint64, error), yield func(T) bool) {
	for cursor := uint64(0); ; {
		page, next, err := scan(cursor)
		if err != nil {
			fail(err)
			return
		}
		for _, elem := range page {
			if !yield(elem) {
				return
			}
		}
		if next == 0 {
			return
		}
		cursor = next
	}
}
