package vfstest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stavedb/stave/internal/vfs"
)

// Fault wraps a file system and makes operations fail by rules. It counts operations, so that a test can run a workload
// once to learn their number and then again for each of them with that one failing.
type Fault struct {
	faultFS

	mu     sync.Mutex
	rules  []*activeRule
	ops    int
	failed int
}

// Rule says which operations fail, and how. The zero value matches every operation and lets the first one pass with no
// error:
// set Err, or Do.
type Rule struct {
	Ops    []Op   // The kinds it is about. Default: all.
	Path   string // A [filepath.Match] pattern for the base name, of either name for a rename or link. Default: all.
	Skip   int    // So many matching operations pass before one fails: its 0-based index. Default: the first fails.
	Sticky bool   // All later matching operations fail as well. Default: one.

	Err error // The cause of the failure, such as [syscall.ENOSPC]. Default: none; the rule only calls Do.
	// Partial is how many bytes a failing read or write transfers first. Default: none.
	Partial int
	// Applied carries the operation out in full and reports the failure all the same. Default: a failing operation has
	// no effect other than Partial. A failing close always closes.
	Applied bool

	// Do is called before the operation, in its goroutine and without locks of the Fault: to wait, to look, to change
	// files without the caller's knowledge. Default: none.
	Do func(Event)
}

type activeRule struct {
	Rule
	seen int
}

// NewFault returns a file system that does what inner does, except where a rule says otherwise. Of several rules that
// match an operation the first decides; every one of them counts it.
func NewFault(inner vfs.FS, rules ...Rule) *Fault {
	f := new(Fault)
	f.faultFS = faultFS{fault: f, inner: inner}
	for _, r := range rules {
		f.Inject(r)
	}
	return f
}

// Inject adds a rule. It counts operations from now on.
func (f *Fault) Inject(r Rule) {
	if _, err := filepath.Match(r.Path, ""); err != nil {
		panic("BUG: vfstest.Rule has a bad pattern: " + r.Path)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &activeRule{Rule: r})
}

// Heal takes all rules away.
func (f *Fault) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Ops returns how many operations were asked for, failed ones included.
func (f *Fault) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Failed returns how many operations were made to fail.
func (f *Fault) Failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// check counts the operation and returns the rule that decides it, or nil.
func (f *Fault) check(e Event) *Rule {
	f.mu.Lock()
	f.ops++
	var hit *Rule
	for _, r := range f.rules {
		if !r.matches(e) {
			continue
		}
		r.seen++
		if n := r.seen - 1; hit == nil && (n == r.Skip || n > r.Skip && r.Sticky) {
			hit = &r.Rule
		}
	}
	if hit != nil && hit.Err != nil {
		f.failed++
	}
	f.mu.Unlock()
	if hit != nil && hit.Do != nil {
		hit.Do(e)
	}
	if hit == nil || hit.Err == nil {
		return nil
	}
	return hit
}

func (r *Rule) matches(e Event) bool {
	if len(r.Ops) > 0 && !slices.Contains(r.Ops, e.Op) {
		return false
	}
	return r.Path == "" || baseMatches(r.Path, e.Name) || e.To != "" && baseMatches(r.Path, e.To)
}

func baseMatches(pattern, name string) bool {
	ok, err := filepath.Match(pattern, filepath.Base(name))
	return ok && err == nil
}

// run does an operation that has no partial outcome.
func (f *Fault) run(e Event, do func() error) error {
	r := f.check(e)
	if r == nil {
		return do()
	}
	if r.Applied || e.Op == OpClose || e.Op == OpUnlock {
		if err := do(); err != nil && !r.Applied {
			return err
		}
	}
	return fail(e, r.Err)
}

// fail wraps the cause the way the os package does.
func fail(e Event, cause error) error {
	if e.To != "" {
		return &os.LinkError{Op: e.Op.String(), Old: e.Name, New: e.To, Err: cause}
	}
	return &fs.PathError{Op: e.Op.String(), Path: e.Name, Err: cause}
}

// faultFS is what a Fault does to one file system: the one that it wraps, or a view of that on a directory.
type faultFS struct {
	fault *Fault
	inner vfs.FS
}

// Open implements [vfs.FS]. A failing open that is Applied leaves a created file, but no handle.
func (v faultFS) Open(name string, mode vfs.Mode) (vfs.File, error) {
	e := Event{Op: openOp(mode), Name: name}
	var inner vfs.File
	err := v.fault.run(e, func() (err error) {
		inner, err = v.inner.Open(name, mode)
		return err
	})
	if err != nil {
		if inner != nil {
			inner.Close() // The caller gets no handle to close.
		}
		return nil, err
	}
	file := &faultFile{fault: v.fault, name: name, inner: inner}
	if m, ok := inner.(vfs.Mapper); ok {
		return &faultMapper{file, m}, nil
	}
	return file, nil
}

func openOp(mode vfs.Mode) Op {
	if mode == vfs.Create {
		return OpCreate
	}
	return OpOpen
}

// List implements [vfs.FS].
func (v faultFS) List(dir string) (names []string, err error) {
	err = v.fault.run(Event{Op: OpList, Name: dir}, func() (err error) {
		names, err = v.inner.List(dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// Remove implements [vfs.FS].
func (v faultFS) Remove(name string) error {
	return v.fault.run(Event{Op: OpRemove, Name: name}, func() error { return v.inner.Remove(name) })
}

// Rename implements [vfs.FS].
func (v faultFS) Rename(oldname, newname string) error {
	return v.fault.run(Event{Op: OpRename, Name: oldname, To: newname}, func() error { return v.inner.Rename(oldname, newname) })
}

// Link implements [vfs.FS].
func (v faultFS) Link(oldname, newname string) error {
	return v.fault.run(Event{Op: OpLink, Name: oldname, To: newname}, func() error { return v.inner.Link(oldname, newname) })
}

// MkdirAll implements [vfs.FS].
func (v faultFS) MkdirAll(dir string) error {
	return v.fault.run(Event{Op: OpMkdir, Name: dir}, func() error { return v.inner.MkdirAll(dir) })
}

// RenameDir implements [vfs.FS].
func (v faultFS) RenameDir(oldname, newname string) error {
	return v.fault.run(Event{Op: OpRenameDir, Name: oldname, To: newname}, func() error { return v.inner.RenameDir(oldname, newname) })
}

// RemoveDir implements [vfs.FS].
func (v faultFS) RemoveDir(dir string) error {
	return v.fault.run(Event{Op: OpRemoveDir, Name: dir}, func() error { return v.inner.RemoveDir(dir) })
}

// SyncDir implements [vfs.FS].
func (v faultFS) SyncDir(dir string) error {
	return v.fault.run(Event{Op: OpSyncDir, Name: dir}, func() error { return v.inner.SyncDir(dir) })
}

// Lock implements [vfs.FS].
func (v faultFS) Lock(name string) (io.Closer, error) {
	var inner io.Closer
	err := v.fault.run(Event{Op: OpLock, Name: name}, func() (err error) {
		inner, err = v.inner.Lock(name)
		return err
	})
	if err != nil {
		if inner != nil {
			inner.Close() // The caller gets no handle to close.
		}
		return nil, err
	}
	unlock := func() error { return v.fault.run(Event{Op: OpUnlock, Name: name}, inner.Close) }
	return &wrappedLock{inner: inner, unlock: unlock}, nil
}

// wrappedLock is a lock of the file system below.
type wrappedLock struct {
	inner  io.Closer
	unlock func() error
}

func (l *wrappedLock) Close() error { return l.unlock() }

func (l *wrappedLock) HasName(name string) (bool, error) { return vfs.HasName(l.inner, name) }

func (l *wrappedLock) HasAnyName() bool { return vfs.HasAnyName(l.inner) }

// BootID implements [vfs.Booter].
func (v faultFS) BootID(dir string) vfs.BootID { return vfs.BootOf(v.inner, dir) }

// Space implements [vfs.Spacer].
func (v faultFS) Space(dir string) (free int64, ok bool) { return vfs.SpaceOf(v.inner, dir) }

// faultHeld is a Fault's view of a directory that the file system below holds.
type faultHeld struct {
	faultFS
	held *vfs.Held
}

// HoldDir implements [vfs.Holder].
func (v faultFS) HoldDir(dir string) (vfs.HeldView, error) {
	held, err := vfs.Hold(v.inner, dir)
	if err != nil {
		return nil, err
	}
	return faultHeld{faultFS{v.fault, held}, held}, nil
}

func (v faultHeld) Where() (vfs.Where, error) { return v.held.Where() }

func (v faultHeld) Watch(name string, notify func()) (stop func()) { return v.held.Watch(name, notify) }

func (v faultHeld) Release() error { return v.held.Close() }

func (v faultHeld) LinkTo(oldname string, to vfs.FS, newname string) error {
	other, ok := to.(faultHeld)
	if !ok {
		return vfs.ErrOtherSystem
	}
	return v.fault.run(Event{Op: OpLink, Name: oldname, To: newname}, func() error { return v.held.LinkTo(oldname, other.held, newname) })
}

type faultFile struct {
	fault *Fault
	name  string
	inner vfs.File
}

// transfer does a read or write, of which a failing one may do a part.
func (f *faultFile) transfer(op Op, p []byte, off int64, do func([]byte, int64) (int, error)) (int, error) {
	e := Event{Op: op, Name: f.name, Off: off, Len: len(p)}
	r := f.fault.check(e)
	if r == nil {
		return do(p, off)
	}
	n := 0
	if part := min(r.Partial, len(p)); r.Applied || part > 0 {
		if r.Applied {
			part = len(p)
		}
		var err error
		if n, err = do(p[:part], off); err != nil && err != io.EOF {
			return n, err
		}
	}
	return n, fail(e, r.Err)
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	return f.transfer(OpRead, p, off, f.inner.ReadAt)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	return f.transfer(OpWrite, p, off, f.inner.WriteAt)
}

func (f *faultFile) Truncate(size int64) error {
	return f.fault.run(Event{Op: OpTruncate, Name: f.name, Off: size}, func() error { return f.inner.Truncate(size) })
}

func (f *faultFile) Sync() error {
	return f.fault.run(Event{Op: OpSync, Name: f.name}, f.inner.Sync)
}

func (f *faultFile) Size() (size int64, err error) {
	err = f.fault.run(Event{Op: OpSize, Name: f.name}, func() (err error) {
		size, err = f.inner.Size()
		return err
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

func (f *faultFile) Close() error {
	return f.fault.run(Event{Op: OpClose, Name: f.name}, f.inner.Close)
}

func (f *faultFile) HasName(name string) (bool, error) { return vfs.HasName(f.inner, name) }

func (f *faultFile) HasAnyName() bool { return vfs.HasAnyName(f.inner) }

// faultMapper is a faultFile whose inner file can be mapped; one that cannot must not look as if it could.
type faultMapper struct {
	*faultFile
	mapper vfs.Mapper
}

func (f *faultMapper) Map(length int) (mapping []byte, err error) {
	err = f.fault.run(Event{Op: OpMap, Name: f.name, Len: length}, func() (err error) {
		mapping, err = f.mapper.Map(length)
		return err
	})
	if err != nil && mapping != nil {
		return nil, errors.Join(err, f.mapper.Unmap(mapping)) // The caller gets no mapping to unmap.
	}
	return mapping, err
}

func (f *faultMapper) Unmap(mapping []byte) error { return f.mapper.Unmap(mapping) }

func (f *faultMapper) Resident(part []byte, pages *vfs.ResidentPages) bool {
	return f.mapper.Resident(part, pages)
}
