package keydir

// A dump is sorted by hash, so a single key is found in it by walking it up to there, in a fifth of the time of
// loading it.

// FindInDump is Directory.TryGet of a stripe that is still to be loaded, in its dump. It returns LookupRetry as well for
// bytes that are no dump of the stripe, as far as it reads them; it takes no memory in proportion to them.
func FindInDump(dump []byte, stripe int, h uint64) (loc Loc, lookup Lookup) {
	items := itemContext{stripe: stripe}
	b, ok := items.open(dump)
	if !ok {
		return 0, LookupRetry
	}
	skipper := Loader{OnLoc: func(Loc) bool { return true }}
	lookup = LookupMiss
	for len(b) > 0 {
		at, t, l, n := items.next(b)
		if n == 0 {
			return 0, LookupRetry
		}
		if at>>typeBits > h>>typeBits {
			break
		}
		b = b[n:]
		same := at>>typeBits == h>>typeBits
		switch {
		case same && (t != String || lookup == LookupHit):
			return 0, LookupRetry
		case same:
			loc, lookup = l, LookupHit
		case t.hasCollection():
			if b, ok = skipper.skipCollection(t, b); !ok {
				return 0, LookupRetry
			}
		}
	}
	return loc, lookup
}

// skipCollection is readCollection of an item that nobody wants.
func (l *Loader) skipCollection(t Type, b []byte) (rest []byte, ok bool) {
	t, n, _, b, ok := itemOf(t, b)
	if !ok || n == 0 {
		return b, ok
	}
	_, end, ok := l.measure(t, n, b)
	return b[end:], ok
}
