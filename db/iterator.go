package db

import "iter"

// pageSize is how many elements an iterator reads at one moment.
const pageSize = 128

// scanPages ranges over page after page, from cursor 0 to the next cursor that is 0. Nothing is locked while the loop's
// body runs: on a store, other writers may write between two pages, and on a transaction the body may change what it
// ranges over.
func scanPages[T any](h handle, scan func(cursor uint64) (page []T, next uint64, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := uint64(0); ; {
			page, next, err := scan(cursor)
			if err != nil {
				yieldError(h, err, yield)
				return
			}
			for _, elem := range page {
				if !yield(elem, nil) {
					return
				}
			}
			if next == 0 {
				return
			}
			cursor = next
		}
	}
}

// yieldError ends a loop with an error. View and Update return it as well, so that a loop that drops it loses nothing.
func yieldError[T any](h handle, err error, yield func(T, error) bool) {
	if h.tx != nil {
		h.tx.fail(err)
	}
	var none T
	yield(none, err)
}
