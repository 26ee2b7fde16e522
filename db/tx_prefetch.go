package db

func (t *Tx) prefetch() {
	if !t.over {
		t.base.PrefetchAll(t.ns)
	}
}
