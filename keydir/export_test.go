package keydir

// WeakHash makes all but some leading bits of the hashes of elements zero, so that they collide.
func WeakHash(d *Directory, bits int) { d.hash.mask = ^(^uint64(0) >> bits) }

// Ordered reports whether a hash or set has its elements in the order in which they were added.
func Ordered(c Collection) bool {
	g := c.set.big(c.id)
	return g == nil || g.order.kept
}

// Check verifies the invariants of a directory that lie within its memory.
func Check(d *Directory) error { return d.check() }
