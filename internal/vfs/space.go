package vfs

// Spacer is what an [FS] is as well if it knows how much space is left on a disk.
type Spacer interface {
	Space(dir string) (free int64, ok bool)
}

// SpaceOf returns how many bytes can still be written to the file system of an existing directory, by this user. ok is
// false if nobody knows. Quotas that the file system does not show as its size are not counted.
func SpaceOf(fsys FS, dir string) (free int64, ok bool) {
	if s, can := fsys.(Spacer); can {
		return s.Space(dir)
	}
	return 0, false
}

// Space implements [Spacer].
func (h *Held) Space(dir string) (free int64, ok bool) { return SpaceOf(h.view, dir) }
