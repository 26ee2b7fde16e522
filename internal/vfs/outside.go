package vfs

// NewPrivateMem is [NewMem] for a store that no other program can reach: [Outside] of it is the operating
// system.
func NewPrivateMem() *Mem {
	m := NewMem()
	m.private = true
	return m
}

// Outside is the file system for a copy of files of fsys: the operating system for a [Mem] made by [NewPrivateMem],
// fsys itself for all others.
func Outside(fsys FS) FS {
	if m, ok := fsys.(*Mem); ok && m.private {
		return OS()
	}
	return fsys
}
