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

// Mem is a file system in memory for tests. It behaves as [OS] does on a disk that never loses power: what was written is
// there, removed files live on while they are open, links share their bytes. It has no mappings: its files are no [Mapper].
//
// Directories must be made before files in them. The current directory "." and the root exist from the start.
type Mem struct {
	mu    sync.Mutex
	dirs  map[string]bool
	files map[string]*memInode
	locks map[string]*memLock
	open  map[*memFile]bool
	boot  BootID
}

// memInode is what a name stands for, however many names it has.
type memInode struct {
	mu   sync.RWMutex
	data []byte
}

var (
	errNegativeOffset = errors.New("negative offset")
	errNotWritable    = errors.New("not open for writing")
)

// memFile is one open handle.
type memFile struct {
	mem   *Mem
	inode *memInode
	name  string // It was opened by, for messages.
	mode  Mode

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
func (m *Mem) BootID(string) BootID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boot
}

// SetBoot says which life of the kernel the file system is in: that of another one, for instance, whose bytes it has been
// given. A [BootID] of zero says that nobody can tell.
func (m *Mem) SetBoot(id BootID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot = id
}

// NewMem returns an empty file system, in a life of its own.
func NewMem() *Mem {
	return &Mem{
		boot:  newMemBoot(),
		dirs:  map[string]bool{".": true, string(filepath.Separator): true},
		files: map[string]*memInode{},
		locks: map[string]*memLock{},
		open:  map[*memFile]bool{},
	}
}

// Clone returns a deep copy without open handles and locks, in the same life: what the next process finds after this one was killed.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.dirs, c.boot = maps.Clone(m.dirs), m.boot
	copies := map[*memInode]*memInode{}
	for _, inode := range m.files { // All of them before any is copied: the copy is of one moment.
		if copies[inode] == nil {
			inode.mu.RLock()
			defer inode.mu.RUnlock()
			copies[inode] = &memInode{}
		}
	}
	for name, inode := range m.files {
		if copies[inode].data == nil {
			copies[inode].data = slices.Clone(inode.data)
		}
		c.files[name] = copies[inode] // Names that share bytes go on sharing them.
	}
	return c
}

// Leaks returns the names of the handles and locks that are open now, sorted, one entry for each.
func (m *Mem) Leaks() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := slices.Collect(maps.Keys(m.locks))
	for f := range m.open {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// Open implements [FS].
func (m *Mem) Open(name string, mode Mode) (File, error) {
	openFlags(mode) // Panics for an unknown mode, as OS does.
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	inode, err := m.inodeLocked("open", name, mode == Create)
	if err != nil {
		return nil, err
	}
	f := &memFile{mem: m, inode: inode, name: name, mode: mode}
	m.open[f] = true
	return f, nil
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
func (m *Mem) List(dir string) ([]string, error) {
	dir = filepath.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[dir] {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	names := []string{}
	for name := range m.files {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	for name := range m.dirs {
		if name != dir && filepath.Dir(name) == dir && filepath.Dir(name) != name {
			names = append(names, filepath.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove implements [FS].
func (m *Mem) Remove(name string) error {
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.inodeLocked("remove", name, false); err != nil {
		return err
	}
	delete(m.files, name)
	return nil
}

// Rename implements [FS].
func (m *Mem) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nameLocked("rename", filepath.Clean(oldname), filepath.Clean(newname))
}

// Link implements [FS].
func (m *Mem) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nameLocked("link", filepath.Clean(oldname), filepath.Clean(newname))
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
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []string
	for d := filepath.Clean(dir); !m.dirs[d]; d = filepath.Dir(d) {
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
func (m *Mem) RenameDir(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldname, newname = filepath.Clean(oldname), filepath.Clean(newname)
	fail := func(err error) error { return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err} }
	switch {
	case !m.dirs[oldname] || !m.dirs[filepath.Dir(newname)]:
		return fail(fs.ErrNotExist)
	case m.files[newname] != nil:
		return fail(syscall.ENOTDIR)
	case m.dirs[newname] && !m.emptyLocked(newname):
		return fail(fs.ErrExist)
	}
	delete(m.dirs, oldname)
	m.dirs[newname] = true
	moveNames(m.dirs, oldname, newname)
	moveNames(m.files, oldname, newname)
	moveNames(m.locks, oldname, newname)
	for name, lock := range m.locks {
		lock.name = name
	}
	return nil
}

// RemoveDir implements [FS].
func (m *Mem) RemoveDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir = filepath.Clean(dir)
	fail := func(err error) error { return &fs.PathError{Op: "remove", Path: dir, Err: err} }
	switch {
	case !m.dirs[dir]:
		return fail(fs.ErrNotExist)
	case !m.emptyLocked(dir):
		return fail(fs.ErrExist)
	}
	delete(m.dirs, dir)
	return nil
}

func (m *Mem) emptyLocked(dir string) bool {
	within := func(name string) bool { return strings.HasPrefix(name, dir+string(filepath.Separator)) }
	return !slices.ContainsFunc(slices.Collect(maps.Keys(m.files)), within) && !slices.ContainsFunc(slices.Collect(maps.Keys(m.dirs)), within)
}

// SyncDir implements [FS].
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[filepath.Clean(dir)] {
		return &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	return nil
}

// Lock implements [FS]. The lock file stays empty, so that the same run leaves the same bytes whoever makes it.
func (m *Mem) Lock(name string) (io.Closer, error) {
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[name] != nil {
		return nil, &LockedError{Name: name}
	}
	_, err := m.inodeLocked("open", name, false)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = m.inodeLocked("open", name, true)
	}
	if err != nil {
		return nil, err
	}
	lock := &memLock{mem: m, name: name}
	m.locks[name] = lock
	return lock, nil
}

// memLock is a lock that someone holds; its fields are guarded by mem.mu.
type memLock struct {
	mem    *Mem
	name   string // Of the file, as long as it is locked.
	closed bool
}

func (l *memLock) Close() error {
	l.mem.mu.Lock()
	defer l.mem.mu.Unlock()
	if l.closed {
		return &fs.PathError{Op: "close", Path: l.name, Err: fs.ErrClosed}
	}
	l.closed = true
	delete(l.mem.locks, l.name)
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
	n := copy(p, f.inode.data[min(off, int64(len(f.inode.data))):])
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
	f.inode.mu.Lock()
	defer f.inode.mu.Unlock()
	if len(p) > 0 { // An empty write extends nothing.
		f.inode.growLocked(off + int64(len(p)))
	}
	return copy(f.inode.data[min(off, int64(len(f.inode.data))):], p), nil
}

// growLocked makes the data at least size bytes long.
func (i *memInode) growLocked(size int64) {
	if n := int(size) - len(i.data); n > 0 {
		i.data = append(i.data, make([]byte, n)...)
	}
}

func (f *memFile) Truncate(size int64) error {
	if err := f.begin("truncate", true); err != nil {
		return err
	}
	defer f.mu.RUnlock()
	if size < 0 {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: syscall.EINVAL}
	}
	f.inode.mu.Lock()
	defer f.inode.mu.Unlock()
	f.inode.growLocked(size)
	f.inode.data = f.inode.data[:size]
	return nil
}

func (f *memFile) Sync() error {
	if err := f.begin("sync", false); err != nil {
		return err
	}
	f.mu.RUnlock()
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.begin("stat", false); err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	f.inode.mu.RLock()
	defer f.inode.mu.RUnlock()
	return int64(len(f.inode.data)), nil
}

func (f *memFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	delete(f.mem.open, f)
	return nil
}
