package db

// Prefetch loads what look-ups of the keys that Begin got will read, so that a transaction on many keys does not wait
// for each of them. It changes nothing.
func (t *Tx) Prefetch() {
	if !t.over {
		t.base.PrefetchAll(t.ns)
	}
}
