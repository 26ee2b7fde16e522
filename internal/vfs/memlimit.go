package vfs

import (
	"io/fs"
	"syscall"
)

// memLimit is the size of the disk of a [Mem].
type memLimit struct {
	pages int64
	page  int64 // In bytes.
	cause error
}

// SetLimit makes the file system one of so many bytes in pages of a length, as a tmpfs is: a file takes whole pages,
// until its last name and its last handle are gone. A write that needs another page fills those that are left and fails
// with [syscall.ENOSPC]; files that are longer already stay. Zero bytes remove the limit.
func (m *Mem) SetLimit(bytes, page int64) { m.SetLimitError(bytes, page, syscall.ENOSPC) }

// SetLimitError is SetLimit with another cause of the failures, such as [syscall.EDQUOT].
func (m *Mem) SetLimitError(bytes, page int64, cause error) {
	if bytes <= 0 {
		m.limit.Store(nil)
		return
	}
	m.limit.Store(&memLimit{pages: bytes / page, page: page, cause: cause})
}

// Used returns how many bytes all files take, in pages of a length.
func (m *Mem) Used(page int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usedLocked(page) * page
}

// Space implements [Spacer]: a file system without a limit has no size.
func (v memFS) Space(string) (free int64, ok bool) {
	l := v.mem.limit.Load()
	if l == nil {
		return 0, false
	}
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	return max(l.pages-v.mem.usedLocked(l.page), 0) * l.page, true
}

// usedLocked is how many pages all files take.
func (m *Mem) usedLocked(page int64) (pages int64) {
	seen := map[*memInode]bool{}
	add := func(inode *memInode) {
		if !seen[inode] {
			seen[inode] = true
			pages += (inode.length() + page - 1) / page
		}
	}
	for _, inode := range m.files {
		add(inode)
	}
	for f := range m.open {
		add(f.inode)
	}
	return pages
}

func (i *memInode) length() int64 {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.data.size
}

// grow returns how long the file may become, up to size. Until done is called no other file of a disk that can be full
// takes pages.
func (f *memFile) grow(op string, size int64) (most int64, done func(), err error) {
	m := f.fs.mem
	l := m.limit.Load()
	if l == nil {
		return size, func() {}, nil
	}
	m.mu.Lock()
	has := f.inode.length()
	pages := (has+l.page-1)/l.page + max(l.pages-m.usedLocked(l.page), 0)
	if size > has && size > pages*l.page {
		return max(pages*l.page, has), m.mu.Unlock, &fs.PathError{Op: op, Path: f.name, Err: l.cause}
	}
	return size, m.mu.Unlock, nil
}
