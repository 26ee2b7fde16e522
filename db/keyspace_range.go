package db

import (
	"cmp"
	"errors"
	"iter"
	"slices"
)

// KeyRange selects keys by the order of their bytes. The zero value selects all of them.
type KeyRange struct {
	// Min is the first key that may be selected.
	Min string
	// Max is the first key after the range. Default: there is no end.
	Max string
	// Prefix is what keys must begin with.
	Prefix string
	// Reverse ranges from the last key to the first.
	Reverse bool
}

// KeyPrefix selects the keys that begin with a prefix.
func KeyPrefix(prefix string) KeyRange { return KeyRange{Prefix: prefix} }

// bounded is the range with its prefix made a part of its bounds.
func (r KeyRange) bounded() KeyRange {
	r.Min = max(r.Min, r.Prefix)
	if end := afterPrefix(r.Prefix); end != "" && (r.Max == "" || end < r.Max) {
		r.Max = end
	}
	r.Prefix = ""
	return r
}

// afterPrefix is the first key after those with a prefix, "" if there is none.
func afterPrefix(prefix string) string {
	for n := len(prefix); n > 0; n-- {
		if last := prefix[n-1]; last < 0xff {
			return prefix[:n-1] + string([]byte{last + 1})
		}
	}
	return ""
}

func (r KeyRange) contains(key string) bool { return r.Min <= key && (r.Max == "" || key < r.Max) }

// after returns the part of the range that follows one of its keys.
func (r KeyRange) after(key string) KeyRange {
	if r.Reverse {
		r.Max = key
	} else {
		r.Min = key + "\x00"
	}
	return r
}

// compare orders keys as the range does.
func (r KeyRange) compare(a, b string) int {
	if r.Reverse {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// Range ranges over the keys of a range in the order of their bytes, with their types. See the package documentation on
// iterators: it reads in pages, so the loop may change the keys.
//
// With [Options].OrderedKeys it costs O(log n) and then O(1) a key, and a key that is there from the start of the loop
// to its end is seen exactly once. Without, the names of all keys are read and those of the range sorted in memory
// before the first is yielded: O(all keys).
func (k Keyspace) Range(r KeyRange) iter.Seq2[KeyInfo, error] {
	return func(yield func(KeyInfo, error) bool) {
		if k.tx == nil && k.store.ordered != nil && k.store.opts.Observe == nil {
			if err := k.rangeOrdered(r.bounded(), yield); err != nil {
				yieldError(k.handle, err, yield)
			}
			return
		}
		err := k.eachPage(r, pageSize, func(keys []string) error {
			for _, key := range keys {
				typ, err := k.at(key).Type()
				if err != nil {
					return err
				}
				if typ != TypeNone && !yield(KeyInfo{Key: key, Type: typ}, nil) {
					return errStop
				}
			}
			return nil
		})
		if err != nil {
			yieldError(k.handle, err, yield)
		}
	}
}

// rangeOrdered is Range on a store that keeps the keys in order, with their types: a key is looked up only if any has
// come or gone since its page was read, or if it may have expired.
func (k Keyspace) rangeOrdered(r KeyRange, yield func(KeyInfo, error) bool) error {
	s := k.store
	var page []KeyInfo
	for {
		if err := s.guard.check(); err != nil {
			return err
		}
		if _, err := s.base.Has(""); err != nil { // it is closed
			return err
		}
		space := s.base.Space(k.ns)
		var changes uint64
		var err error
		if page, changes, err = s.ordered.page(space, r, pageSize, page[:0]); err != nil || len(page) == 0 {
			return err
		}
		for _, key := range page {
			if k.mayBeGone(space, key.Key) || s.ordered.changes.Load() != changes || s.base.Space(k.ns) != space {
				if key.Type, err = k.at(key.Key).Type(); err != nil {
					return err
				}
			}
			if key.Type != TypeNone && !yield(key, nil) {
				return nil
			}
		}
		last := page[len(page)-1].Key
		if len(page) < pageSize || r.Reverse && last == "" {
			return nil
		}
		r = r.after(last)
	}
}

// mayBeGone says whether a key that is listed may have expired, itself or all its fields, so that it has to be looked up. An expired
// key leaves the ordered keys before it loses its deadline: a call that asks here first, and finds the key listed
// afterwards, takes no expired key for a live one.
func (k Keyspace) mayBeGone(space uint32, key string) bool {
	ms, mortal := k.store.deadlines.Get(space, key)
	first, fields := k.store.fields.Get(space, key)
	if !mortal && !fields {
		return false
	}
	_, passed := k.store.clock.read()
	return mortal && ms <= passed || fields && first <= passed
}

// CountRange returns how many keys are in a range. Keys that come or go during the call may count or not, except in a
// transaction. O(log n + number of keys in the range) with [Options].OrderedKeys, O(all keys) without.
func (k Keyspace) CountRange(r KeyRange) (int, error) {
	n := 0
	err := k.eachPage(r, bulkPage, func(keys []string) error {
		for _, key := range keys {
			exists, err := k.stillThere(key)
			if err != nil {
				return err
			}
			if exists {
				n++
			}
		}
		return nil
	})
	return n, err
}

// stillThere says whether a key that has just been listed exists. In the ordered keys it exists unless it has expired:
// it leaves them before it loses its deadline.
func (k Keyspace) stillThere(key string) (bool, error) {
	if k.tx != nil || k.store.ordered == nil {
		return k.at(key).Exists()
	}
	space := k.store.base.Space(k.ns)
	if k.mayBeGone(space, key) {
		return k.at(key).Exists()
	}
	return k.store.ordered.typeOf(space, key) != TypeNone, nil
}

// DeleteRange deletes the keys of a range and returns how many there were: on a store in commits of up to 1024 keys, or fewer
// if they are long, so that others are not held up and a full disk has room for each; in a transaction as a part of it. Costs
// are those of CountRange, and O(1) a key. After an error the keys of the commits before it are gone, and counted.
func (k Keyspace) DeleteRange(r KeyRange) (n int, err error) {
	err = k.eachPage(r, bulkPage, func(keys []string) error {
		for len(keys) > 0 {
			some := deletedTogether(keys, func(key string) string { return key })
			deleted, err := k.Delete(keys[:some]...)
			n += deleted
			if err != nil {
				return err
			}
			keys = keys[some:]
		}
		return nil
	})
	return n, err
}

// bulkPage is how many keys are counted or deleted at a time.
const bulkPage = 1024

// errStop ends eachPage.
var errStop = errors.New("enough")

// eachPage calls fn with the keys of a range, up to n at a time, in order. Keys that have expired, or that a
// transaction has deleted, can be among them. Nothing is locked while fn runs.
func (k Keyspace) eachPage(r KeyRange, n int, fn func(keys []string) error) error {
	r = r.bounded()
	keys, err := k.page(r, n)
	for err == nil && len(keys) > 0 {
		if err = fn(keys[:min(n, len(keys))]); err != nil {
			break
		}
		switch last := keys[min(n, len(keys))-1]; {
		case len(keys) > n: // all of them are here
			keys = keys[n:]
		case r.Reverse && last == "" || k.core().ordered == nil:
			return nil
		default:
			r = r.after(last)
			keys, err = k.page(r, n)
		}
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (h handle) core() *core {
	if h.tx != nil {
		return h.tx.store.core
	}
	return h.store.core
}

func (h handle) at(key string) Key {
	h.key = key
	return Key{h}
}

// page returns the first n keys of a range, or all of them if they are not kept in order.
func (k Keyspace) page(r KeyRange, n int) ([]string, error) {
	c := k.core()
	if c.ordered == nil {
		var keys []string
		_, err := k.scan(0, func(_ uint64, key []byte, _ Type) bool {
			if r.contains(string(key)) {
				keys = append(keys, string(key))
			}
			return true
		})
		slices.SortFunc(keys, r.compare)
		return keys, err
	}
	if k.tx != nil {
		if err := k.tx.check(); err != nil {
			return nil, err
		}
	} else if err := k.store.guard.check(); err != nil {
		return nil, err
	}
	list, _, err := c.ordered.page(c.base.Space(k.ns), r, n, nil)
	keys := make([]string, len(list))
	for i := range list {
		keys[i] = list[i].Key
	}
	if err != nil || k.tx == nil || k.tx.effects == nil {
		return keys, err
	}
	// What the transaction has written is not in the index yet.
	for _, p := range k.tx.effects.touched {
		if p.ns == k.ns && r.contains(p.key) {
			keys = append(keys, p.key)
		}
	}
	slices.SortFunc(keys, r.compare)
	keys = slices.Compact(keys)
	return keys[:min(n, len(keys))], nil
}
