package ttl

// Next returns the earliest deadline of all. O(number of namespaces).
func (d *Deadlines) Next() (ms int64, ok bool) {
	for _, sp := range *d.spaces.Load() {
		if sp.count.Load() == 0 {
			continue
		}
		for i := range sp.shards {
			if at := sp.shards[i].earliest.Load(); !ok || at < ms {
				ms, ok = at, true
			}
		}
	}
	return ms, ok
}

// Due appends to dst up to max entries whose deadline is not after now, the earliest first. The order of equal
// deadlines is arbitrary. The entries are not removed.
func (d *Deadlines) Due(now int64, max int, dst []Entry) []Entry {
	c := newDueCursor(now, []Queue{{Deadlines: d}})
	for ; max > 0; max-- {
		e, _, ok := c.next()
		if !ok {
			break
		}
		dst = append(dst, e)
	}
	return dst
}
