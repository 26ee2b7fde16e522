package vfs

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Mem is a file system in memory. It behaves as [OS] does on a disk that never loses power: written bytes are there,
// removed files live on while they are open, links share their bytes. It has no mappings: its files are no [Mapper]. A
// file takes its length in memory, rounded up to [memPage] beyond the first page.
//
// Directories must be made before files in them. The current directory "." and the root exist from the start.
type Mem struct {
	memFS

	mu    sync.Mutex
	dirs  map[string]bool
	files map[string]*memInode
	locks map[*memInode]*memLock
	open  map[*memFile]bool
	held  map[*memDir]bool
	boot  BootID
	limit atomic.Pointer[memLimit] // nil: none.

	private bool // Made by NewPrivateMem.
}

// memFS is the file system, or a view of it on a directory that is held.
type memFS struct {
	mem *Mem
	dir *memDir // nil: none
}

// memInode is a file, however many names it has.
type memInode struct {
	mu   sync.RWMutex
	data memBytes
}

var (
	errNegativeOffset = errors.New("negative offset")
	errNotWritable    = errors.New("not open for writing")
)

// memFile is one open handle.
type memFile struct {
	memNamed
	name string // It was opened by, for messages.
	mode Mode

	window memWindow // Its one user guards it.

	mu     sync.RWMutex // Guards closed; held for reading during operations, so that Close waits for them.
	closed bool
}

// memBoots counts the lives of all file systems in memory.
var memBoots atomic.Uint64

func newMemBoot() (id BootID) {
	binary.LittleEndian.PutUint64(id[:], memBoots.Add(1))
	return id
}

// BootID implements [Booter].
func (v memFS) BootID(string) BootID {
	v.mem.mu.Lock()
	defer v.mem.mu.Unlock()
	return v.mem.boot
}

// SetBoot sets the life of the kernel that the file system is in: that of another one, for instance, whose bytes it has
// been given. A [BootID] of zero means unknown.
func (m *Mem) SetBoot(id BootID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot = id
}

// NewMem returns an empty file system, in a life of its own.
func NewMem() *Mem {
	m := &Mem{
		boot:  newMemBoot(),
		dirs:  map[string]bool{".": true, string(filepath.Separator): true},
		files: map[string]*memInode{},
		locks: map[*memInode]*memLock{},
		open:  map[*memFile]bool{},
		held:  map[*memDir]bool{},
	}
	m.memFS.mem = m
	return m
}

// Clone returns a deep copy without open handles and locks, in the same life: what the next process finds after this
// one was killed.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.dirs, c.boot, c.private = maps.Clone(m.dirs), m.boot, m.private
	c.limit.Store(m.limit.Load())
	copies := map[*memInode]*memInode{}
	for _, inode := range m.files { // All of them before any is copied: the copy is of one moment.
		if copies[inode] == nil {
			inode.mu.RLock()
			defer inode.mu.RUnlock()
			copies[inode] = &memInode{}
		}
	}
	for inode, twin := range copies {
		twin.data = inode.data.clone()
	}
	for name, inode := range m.files {
		c.files[name] = copies[inode] // Names that share bytes keep sharing them.
	}
	return c
}

// Leaks returns the names of the handles, locks and held directories that are open now, sorted, one entry for each.
func (m *Mem) Leaks() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, l := range m.locks {
		names = append(names, l.name)
	}
	for f := range m.open {
		names = append(names, f.name)
	}
	for d := range m.held {
		names = append(names, d.name)
	}
	slices.Sort(names)
	return names
}

// Open implements [FS].
func (v memFS) Open(name string, mode Mode) (file File, err error) {
	openFlags(mode) // Panics for an unknown mode, as OS does.
	err = v.oneName("open", name, func(name string) error {
		inode, err := v.mem.inodeLocked("open", name, mode == Create)
		if err != nil {
			return err
		}
		f := &memFile{memNamed: memNamed{v, inode}, name: name, mode: mode}
		v.mem.open[f], file = true, f
		return nil
	})
	return file, err
}

// inodeLocked finds the file of a name, or makes it.
func (m *Mem) inodeLocked(op, name string, create bool) (*memInode, error) {
	inode, exists := m.files[name]
	switch {
	case create && (exists || m.dirs[name]):
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrExist}
	case exists:
		return inode, nil
	case m.dirs[name]:
		return nil, &fs.PathError{Op: op, Path: name, Err: ErrNotRegular}
	case !create || !m.dirs[filepath.Dir(name)]:
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	inode = &memInode{}
	m.files[name] = inode
	return inode, nil
}

// List implements [FS].
func (v memFS) List(dir string) (names []string, err error) {
	err = v.oneName("open", dir, func(dir string) error {
		if err := v.mem.isDirLocked(dir); err != nil {
			return err
		}
		names = []string{}
		for name := range v.mem.files {
			if filepath.Dir(name) == dir {
				names = append(names, filepath.Base(name))
			}
		}
		for name := range v.mem.dirs {
			if name != dir && filepath.Dir(name) == dir && filepath.Dir(name) != name {
				names = append(names, filepath.Base(name))
			}
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

// Remove implements [FS].
func (v memFS) Remove(name string) error {
	return v.oneName("remove", name, func(name string) error {
		_, err := v.mem.inodeLocked("remove", name, false)
		if err == nil {
			delete(v.mem.files, name)
		}
		return err
	})
}

// Rename implements [FS].
func (v memFS) Rename(oldname, newname string) error {
	return v.twoNames("rename", oldname, newname, v.mem.nameLocked)
}

// Link implements [FS].
func (v memFS) Link(oldname, newname string) error {
	return v.twoNames("link", oldname, newname, v.mem.nameLocked)
}

// nameLocked gives the file oldname the name newname too, and takes the old one away for a rename.
func (m *Mem) nameLocked(op, oldname, newname string) error {
	fail := func(err error) error { return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err} }
	inode, exists := m.files[oldname]
	switch {
	case m.dirs[oldname] || m.dirs[newname]:
		return fail(ErrNotRegular)
	case !exists || !m.dirs[filepath.Dir(newname)]:
		return fail(fs.ErrNotExist)
	case op == "link" && m.files[newname] != nil:
		return fail(fs.ErrExist)
	case m.files[newname] == inode:
		return nil // Two names of one file: POSIX makes such a rename do nothing.
	}
	m.files[newname] = inode
	if op == "rename" {
		delete(m.files, oldname)
	}
	return nil
}

// MkdirAll implements [FS].
func (v memFS) MkdirAll(dir string) error { return v.oneName("mkdir", dir, v.mem.mkdirLocked) }

func (m *Mem) mkdirLocked(dir string) error {
	var missing []string
	for d := dir; !m.dirs[d]; d = filepath.Dir(d) {
		if m.files[d] != nil {
			return &fs.PathError{Op: "mkdir", Path: d, Err: syscall.ENOTDIR}
		}
		missing = append(missing, d)
	}
	for _, d := range missing {
		m.dirs[d] = true
	}
	return nil
}

// RenameDir implements [FS].
func (v memFS) RenameDir(oldname, newname string) error {
	return v.twoNames("rename", oldname, newname, v.mem.renameDirLocked)
}

func (m *Mem) renameDirLocked(op, oldname, newname string) error {
	fail := func(err error) error { return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err} }
	switch {
	case !m.dirs[oldname] || !m.dirs[filepath.Dir(newname)]:
		return fail(fs.ErrNotExist)
	case m.files[newname] != nil:
		return fail(syscall.ENOTDIR)
	case m.dirs[newname] && !m.emptyLocked(newname):
		return fail(fs.ErrExist)
	}
	m.goneLocked(newname)
	delete(m.dirs, oldname)
	m.dirs[newname] = true
	moveNames(m.dirs, oldname, newname)
	moveNames(m.files, oldname, newname)
	m.movedLocked(oldname, newname)
	return nil
}

// RemoveDir implements [FS].
func (v memFS) RemoveDir(dir string) error { return v.oneName("remove", dir, v.mem.removeDirLocked) }

func (m *Mem) removeDirLocked(dir string) error {
	fail := func(err error) error { return &fs.PathError{Op: "remove", Path: dir, Err: err} }
	switch {
	case !m.dirs[dir]:
		return fail(fs.ErrNotExist)
	case !m.emptyLocked(dir):
		return fail(fs.ErrExist)
	}
	m.goneLocked(dir)
	delete(m.dirs, dir)
	return nil
}

// moveNames changes the keys of a map that are names in a directory as the directory's name changes.
func moveNames[T any](of map[string]T, olddir, newdir string) {
	for name, v := range maps.Clone(of) {
		if rest, within := strings.CutPrefix(name, olddir+string(filepath.Separator)); within {
			delete(of, name)
			of[filepath.Join(newdir, rest)] = v
		}
	}
}

func (m *Mem) emptyLocked(dir string) bool {
	within := func(name string) bool { return strings.HasPrefix(name, dir+string(filepath.Separator)) }
	return !slices.ContainsFunc(slices.Collect(maps.Keys(m.files)), within) && !slices.ContainsFunc(slices.Collect(maps.Keys(m.dirs)), within)
}

// SyncDir implements [FS].
func (v memFS) SyncDir(dir string) error { return v.oneName("open", dir, v.mem.isDirLocked) }

func (m *Mem) isDirLocked(dir string) error {
	if !m.dirs[dir] {
		return &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	return nil
}

// Lock implements [FS]. The lock file stays empty, so that the same run leaves the same bytes in any process.
func (v memFS) Lock(name string) (lock io.Closer, err error) {
	m := v.mem
	err = v.oneName("open", name, func(name string) error {
		inode, err := m.inodeLocked("open", name, false)
		if errors.Is(err, fs.ErrNotExist) {
			inode, err = m.inodeLocked("open", name, true)
		}
		if err == nil && m.locks[inode] != nil {
			err = &LockedError{Name: name}
		}
		if err == nil {
			m.locks[inode] = &memLock{memNamed: memNamed{v, inode}, name: name}
			lock = m.locks[inode]
		}
		return err
	})
	return lock, err
}

// memLock is a held lock; its fields are guarded by the file system's mu.
type memLock struct {
	memNamed
	name   string // Of the file, as long as it is locked.
	closed bool
}

func (l *memLock) Close() error {
	l.fs.mem.mu.Lock()
	defer l.fs.mem.mu.Unlock()
	if l.closed {
		return &fs.PathError{Op: "close", Path: l.name, Err: fs.ErrClosed}
	}
	l.closed = true
	delete(l.fs.mem.locks, l.inode)
	return nil
}

// begin starts an operation on the handle; the caller calls f.mu.RUnlock when it succeeds.
func (f *memFile) begin(op string, write bool) error {
	f.mu.RLock()
	var err error
	if f.closed {
		err = fs.ErrClosed
	} else if write && f.mode == ReadOnly {
		err = errNotWritable
	}
	if err != nil {
		f.mu.RUnlock()
		return &fs.PathError{Op: op, Path: f.name, Err: err}
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.begin("read", false); err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: errNegativeOffset}
	}
	f.inode.mu.RLock()
	defer f.inode.mu.RUnlock()
	n := f.inode.data.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.begin("write", true); err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	if off < 0 {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: errNegativeOffset}
	}
	end, done, full := f.grow("write", off+int64(len(p)))
	defer done()
	if full != nil {
		p = p[:min(max(end-off, 0), int64(len(p)))]
	}
	f.inode.mu.Lock()
	defer f.inode.mu.Unlock()
	if len(p) > 0 { // An empty write extends nothing.
		f.inode.data.writeAt(p, off)
	}
	return len(p), full
}

func (f *memFile) Truncate(size int64) error {
	if err := f.begin("truncate", true); err != nil {
		return err
	}
	defer f.mu.RUnlock()
	if size < 0 {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: syscall.EINVAL}
	}
	_, done, err := f.grow("truncate", size)
	defer done()
	if err != nil {
		return err
	}
	f.inode.mu.Lock()
	defer f.inode.mu.Unlock()
	f.inode.data.truncate(size)
	return nil
}

func (f *memFile) Sync() error {
	err := f.begin("sync", false)
	if err == nil {
		f.mu.RUnlock()
	}
	return err
}

func (f *memFile) Size() (int64, error) {
	if err := f.begin("stat", false); err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	return f.inode.length(), nil
}

func (f *memFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	f.fs.mem.mu.Lock()
	defer f.fs.mem.mu.Unlock()
	delete(f.fs.mem.open, f)
	return nil
}
