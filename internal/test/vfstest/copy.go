package vfstest

import (
	"errors"
	"slices"

	"github.com/stavedb/stave/internal/vfs"
)

// A wrapped file is a [vfs.Copier] whether the file below is one or not: Window says so.

func windowOf(inner vfs.File, off int64, n int) error {
	if c, ok := inner.(vfs.Copier); ok {
		return c.Window(off, n)
	}
	return errors.ErrUnsupported
}

// Window implements [vfs.Copier]. It leaves no event: it changes nothing.
func (f *recordedFile) Window(off int64, n int) error { return windowOf(f.inner, off, n) }

// Populate implements [vfs.Copier].
func (f *recordedFile) Populate(off int64) error { return f.inner.(vfs.Copier).Populate(off) }

// CopyAt implements [vfs.Copier]. The event is that of a write.
func (f *recordedFile) CopyAt(p []byte, off int64) error {
	e := f.event(OpWrite)
	e.Off, e.Len, e.Data = off, len(p), slices.Clone(p)
	return f.recorder.change(e, func(e *Event) error {
		err := f.inner.(vfs.Copier).CopyAt(p, off)
		if err == nil {
			e.N = len(p)
		}
		return err
	})
}

// EndWindow implements [vfs.Copier].
func (f *recordedFile) EndWindow() error { return endWindowOf(f.inner) }

func endWindowOf(inner vfs.File) error {
	if c, ok := inner.(vfs.Copier); ok {
		return c.EndWindow()
	}
	return nil
}

// Window implements [vfs.Copier]. For a [Rule] it is an OpMap.
func (f *faultFile) Window(off int64, n int) error {
	return f.fault.run(Event{Op: OpMap, Name: f.name, Off: off, Len: n}, func() error { return windowOf(f.inner, off, n) })
}

// Populate implements [vfs.Copier]. For a [Rule] it is an OpMap.
func (f *faultFile) Populate(off int64) error {
	return f.fault.run(Event{Op: OpMap, Name: f.name, Off: off}, func() error { return f.inner.(vfs.Copier).Populate(off) })
}

// CopyAt implements [vfs.Copier]. For a [Rule] it is an OpWrite.
func (f *faultFile) CopyAt(p []byte, off int64) error {
	_, err := f.transfer(OpWrite, p, off, func(p []byte, off int64) (int, error) {
		return len(p), f.inner.(vfs.Copier).CopyAt(p, off)
	})
	return err
}

// EndWindow implements [vfs.Copier].
func (f *faultFile) EndWindow() error { return endWindowOf(f.inner) }
