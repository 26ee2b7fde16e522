package vfs

// A BootID names one uninterrupted life of the kernel and of the mount that a directory is on. Where two of them are
// equal and not zero, no power cut and no loss of the mount lies between: everything written is still readable, synced
// or not, unless a sync has failed. The zero BootID means unknown.
type BootID [16]byte

// Booter is what an [FS] is as well if it knows the [BootID] of a directory.
type Booter interface {
	BootID(dir string) BootID
}

// BootOf returns the [BootID] of an existing directory; zero if the file system, or the operating system, has none.
func BootOf(fsys FS, dir string) BootID {
	if b, ok := fsys.(Booter); ok {
		return b.BootID(dir)
	}
	return BootID{}
}

// BootID implements [Booter].
func (h *Held) BootID(dir string) BootID { return BootOf(h.view, dir) }
