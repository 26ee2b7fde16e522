package vfstest

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stavedb/stave/internal/vfs"
)

// Recorder wraps a file system and keeps every operation in the order in which they took effect, with the bytes
// written.
//
// [Recorder.Trace] gives the log as text, for golden files in which the order of syncs is a reviewable diff.
// [Recorder.Events] gives it as data: with a copy of the file system from before, the events rebuild each state in
// between, and, since they include which bytes and names each sync covered, each state that a power cut could have
// left.
//
// Operations that change something run one at a time, so that the log's order is theirs; reads and syncs do not, so
// that writers can continue during a slow sync. Beneath a [Fault] the log has what happened, on top of it what the
// store saw. Bytes that the system writes into a lock file are not recorded.
type Recorder struct {
	recordedFS
	only []Op

	mu     sync.Mutex // Held during operations that change something.
	events []Event
	ids    map[string]int // Event.File by clean name.
	nextID int
}

// NewRecorder returns a file system that does what inner does and records operations of the given kinds. Default: all.
func NewRecorder(inner vfs.FS, only ...Op) *Recorder {
	r := &Recorder{only: only, ids: map[string]int{}}
	r.recordedFS = recordedFS{recorder: r, inner: inner}
	return r
}

// Events returns what was recorded so far. The bytes are shared: do not change them.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Trace returns the events of the given kinds as text, one a line; of all kinds by default.
func (r *Recorder) Trace(only ...Op) string {
	var b strings.Builder
	for _, e := range r.Events() {
		if len(only) == 0 || slices.Contains(only, e.Op) {
			b.WriteString(filepath.ToSlash(e.String()) + "\n")
		}
	}
	return b.String()
}

// Mark puts a line of the test's own into the log, such as "ack 17": the promises from that point on.
func (r *Recorder) Mark(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(Event{Op: OpMark, Name: text})
}

func (r *Recorder) addLocked(e Event) {
	if len(r.only) == 0 || slices.Contains(r.only, e.Op) {
		r.events = append(r.events, e)
	}
}

// change does an operation that changes something and then, under the same lock, records it.
func (r *Recorder) change(e Event, do func(e *Event) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Err = do(&e)
	r.addLocked(e)
	return e.Err
}

// observe does an operation that changes nothing, without holding the lock.
func (r *Recorder) observe(e Event, do func(e *Event) error) error {
	r.mu.Lock()
	if e.Op == OpSync || e.Op == OpSyncDir {
		e.Covers = len(r.events)
	}
	r.mu.Unlock()
	e.Err = do(&e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(e)
	return e.Err
}

// idLocked returns the number of the file that has this name now.
func (r *Recorder) idLocked(name string) int {
	name = filepath.Clean(name)
	if r.ids[name] == 0 {
		r.nextID++
		r.ids[name] = r.nextID
	}
	return r.ids[name]
}

// recordedFS is what a Recorder records of: the file system that it wraps, or a view of that on a directory.
type recordedFS struct {
	recorder *Recorder
	inner    vfs.FS
}

// Open implements [vfs.FS].
func (v recordedFS) Open(name string, mode vfs.Mode) (vfs.File, error) {
	var file *recordedFile
	err := v.recorder.change(Event{Op: openOp(mode), Name: name}, func(e *Event) error {
		inner, err := v.inner.Open(name, mode)
		if err != nil {
			return err
		}
		if mode == vfs.Create {
			delete(v.recorder.ids, filepath.Clean(name)) // Whatever had the name is gone, or the create would have failed.
		}
		e.File = v.recorder.idLocked(name)
		file = &recordedFile{recorder: v.recorder, name: name, id: e.File, inner: inner}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m, ok := file.inner.(vfs.Mapper); ok {
		return &recordedMapper{file, m}, nil
	}
	return file, nil
}

// List implements [vfs.FS].
func (v recordedFS) List(dir string) (names []string, err error) {
	err = v.recorder.observe(Event{Op: OpList, Name: dir}, func(*Event) (err error) {
		names, err = v.inner.List(dir)
		return err
	})
	return names, err
}

// Remove implements [vfs.FS].
func (v recordedFS) Remove(name string) error {
	return v.recorder.change(Event{Op: OpRemove, Name: name}, func(e *Event) error {
		if err := v.inner.Remove(name); err != nil {
			return err
		}
		e.File = v.recorder.idLocked(name)
		delete(v.recorder.ids, filepath.Clean(name))
		return nil
	})
}

// Rename implements [vfs.FS].
func (v recordedFS) Rename(oldname, newname string) error {
	return v.recorder.change(Event{Op: OpRename, Name: oldname, To: newname}, func(e *Event) error {
		if err := v.inner.Rename(oldname, newname); err != nil {
			return err
		}
		e.File = v.recorder.idLocked(oldname)
		if v.recorder.ids[filepath.Clean(newname)] != e.File { // Else both are names of one file and both stay.
			delete(v.recorder.ids, filepath.Clean(oldname))
		}
		v.recorder.ids[filepath.Clean(newname)] = e.File
		return nil
	})
}

// Link implements [vfs.FS].
func (v recordedFS) Link(oldname, newname string) error {
	return v.recordLink(oldname, newname, func() error { return v.inner.Link(oldname, newname) })
}

func (v recordedFS) recordLink(oldname, newname string, link func() error) error {
	return v.recorder.change(Event{Op: OpLink, Name: oldname, To: newname}, func(e *Event) error {
		if err := link(); err != nil {
			return err
		}
		e.File = v.recorder.idLocked(oldname)
		v.recorder.ids[filepath.Clean(newname)] = e.File
		return nil
	})
}

// MkdirAll implements [vfs.FS].
func (v recordedFS) MkdirAll(dir string) error {
	return v.recorder.change(Event{Op: OpMkdir, Name: dir}, func(*Event) error { return v.inner.MkdirAll(dir) })
}

// RenameDir implements [vfs.FS].
func (v recordedFS) RenameDir(oldname, newname string) error {
	return v.recorder.change(Event{Op: OpRenameDir, Name: oldname, To: newname}, func(*Event) error {
		if err := v.inner.RenameDir(oldname, newname); err != nil {
			return err
		}
		ids := v.recorder.ids
		for name, id := range maps.Clone(ids) {
			if rest, within := strings.CutPrefix(name, filepath.Clean(oldname)+string(filepath.Separator)); within {
				delete(ids, name)
				ids[filepath.Join(newname, rest)] = id
			}
		}
		return nil
	})
}

// RemoveDir implements [vfs.FS].
func (v recordedFS) RemoveDir(dir string) error {
	return v.recorder.change(Event{Op: OpRemoveDir, Name: dir}, func(*Event) error { return v.inner.RemoveDir(dir) })
}

// SyncDir implements [vfs.FS].
func (v recordedFS) SyncDir(dir string) error {
	return v.recorder.observe(Event{Op: OpSyncDir, Name: dir}, func(*Event) error { return v.inner.SyncDir(dir) })
}

// Lock implements [vfs.FS].
func (v recordedFS) Lock(name string) (io.Closer, error) {
	var inner io.Closer
	id := 0
	err := v.recorder.change(Event{Op: OpLock, Name: name}, func(e *Event) (err error) {
		if inner, err = v.inner.Lock(name); err == nil {
			id = v.recorder.idLocked(name)
			e.File = id
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	unlock := func() error {
		return v.recorder.change(Event{Op: OpUnlock, Name: name}, func(e *Event) error {
			e.File = id
			return inner.Close()
		})
	}
	return &wrappedLock{inner: inner, unlock: unlock}, nil
}

// BootID implements [vfs.Booter].
func (v recordedFS) BootID(dir string) vfs.BootID { return vfs.BootOf(v.inner, dir) }

// Space implements [vfs.Spacer].
func (v recordedFS) Space(dir string) (free int64, ok bool) { return vfs.SpaceOf(v.inner, dir) }

// recordedHeld is a Recorder's view of a directory that the file system below holds. Names are recorded as they are
// given.
type recordedHeld struct {
	recordedFS
	held *vfs.Held
}

// HoldDir implements [vfs.Holder].
func (v recordedFS) HoldDir(dir string) (vfs.HeldView, error) {
	held, err := vfs.Hold(v.inner, dir)
	if err != nil {
		return nil, err
	}
	return recordedHeld{recordedFS{v.recorder, held}, held}, nil
}

func (v recordedHeld) Where() (vfs.Where, error) { return v.held.Where() }

func (v recordedHeld) Watch(name string, notify func()) (stop func()) {
	return v.held.Watch(name, notify)
}

func (v recordedHeld) Release() error { return v.held.Close() }

func (v recordedHeld) LinkTo(oldname string, to vfs.FS, newname string) error {
	other, ok := to.(recordedHeld)
	if !ok {
		return vfs.ErrOtherSystem
	}
	return v.recordLink(oldname, newname, func() error { return v.held.LinkTo(oldname, other.held, newname) })
}

type recordedFile struct {
	recorder *Recorder
	name     string // It was opened by; a rename later on does not change it.
	id       int
	inner    vfs.File
}

func (f *recordedFile) event(op Op) Event { return Event{Op: op, Name: f.name, File: f.id} }

func (f *recordedFile) ReadAt(p []byte, off int64) (int, error) {
	e := f.event(OpRead)
	e.Off, e.Len = off, len(p)
	n := 0
	err := f.recorder.observe(e, func(e *Event) (err error) {
		n, err = f.inner.ReadAt(p, off)
		e.N = n
		return err
	})
	return n, err
}

func (f *recordedFile) WriteAt(p []byte, off int64) (int, error) {
	e := f.event(OpWrite)
	e.Off, e.Len, e.Data = off, len(p), slices.Clone(p)
	n := 0
	err := f.recorder.change(e, func(e *Event) (err error) {
		n, err = f.inner.WriteAt(p, off)
		e.N = n
		return err
	})
	return n, err
}

func (f *recordedFile) Truncate(size int64) error {
	e := f.event(OpTruncate)
	e.Off = size
	return f.recorder.change(e, func(*Event) error { return f.inner.Truncate(size) })
}

func (f *recordedFile) Sync() error {
	return f.recorder.observe(f.event(OpSync), func(*Event) error { return f.inner.Sync() })
}

func (f *recordedFile) Size() (size int64, err error) {
	err = f.recorder.observe(f.event(OpSize), func(*Event) (err error) {
		size, err = f.inner.Size()
		return err
	})
	return size, err
}

func (f *recordedFile) Close() error {
	return f.recorder.observe(f.event(OpClose), func(*Event) error { return f.inner.Close() })
}

func (f *recordedFile) HasName(name string) (bool, error) { return vfs.HasName(f.inner, name) }

func (f *recordedFile) HasAnyName() bool { return vfs.HasAnyName(f.inner) }

// recordedMapper is a recordedFile whose inner file can be mapped. Reads through a mapping leave no events.
type recordedMapper struct {
	*recordedFile
	mapper vfs.Mapper
}

func (f *recordedMapper) Map(length int) (mapping []byte, err error) {
	e := f.event(OpMap)
	e.Len = length
	err = f.recorder.observe(e, func(*Event) (err error) {
		mapping, err = f.mapper.Map(length)
		return err
	})
	return mapping, err
}

func (f *recordedMapper) Unmap(mapping []byte) error { return f.mapper.Unmap(mapping) }

func (f *recordedMapper) Resident(part []byte, pages *vfs.ResidentPages) bool {
	return f.mapper.Resident(part, pages)
}
