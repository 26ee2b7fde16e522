// Package crash builds every state of a disk that a power cut may have left.
//
// A [Disk] follows what a [vfs.Recorder] kept and knows at each moment what is surely on it and which changes are not
// synced yet. Those changes are cut into units, each of which the cut keeps or loses by itself; a [Choice] says which.
//
// The model is weaker than any real file system, after ALICE (Pillai et al., OSDI 2014):
//
//   - A sync of a file makes its bytes and its length durable, not its name. Of writes since then any set of 512-byte
//     sectors may be there, whatever their order, also those of one write.
//   - A file may have grown without its bytes: then it holds zeros.
//   - A cut of the length is a unit like a write.
//   - Names (made, renamed, removed) become durable by a sync of the directory. Before that any of them may be there, and a
//     name may be there before the bytes of its file. A rename is all or nothing.
//
// [Ordered] is closer to ext4 and its kind: changes of names become durable in their order.
//
// A sync of a file that fails loses for good what it was about: the kernel tells once, calls the pages clean, and no later sync
// writes them. They stay readable until the machine is switched off.
package crash

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/internal/vfs"
)

// Profile is a kind of file system.
type Profile int

// The profiles.
const (
	Weak    Profile = iota // any set of the changes of names
	Ordered                // only the first so many of them
)

// String returns the profile's name.
func (p Profile) String() string { return [...]string{"weak", "ordered"}[p] }

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// Disk is one directory, as the disk and the operating system know it.
type Disk struct {
	files   map[int]*file    // by the recorder's numbers
	current map[string]*file // as the operating system has the names
	names   map[string]*file // as synced
	units   []unit           // not synced, in the order in which they came

	// Zeros is for failed syncs: the file grows all the same, by zeros.
	Zeros bool
}

// file is a file's bytes, as synced. It has no name.
type file struct{ synced []byte }

// unit is a change that a power cut keeps or loses as a whole.
type unit struct {
	event int
	kind  unitKind
	file  *file // of data, length and cut
	off   int64
	data  []byte
	names map[string]*file // of naming: what becomes of each name; nil stands for no file
}

type unitKind int

const (
	data   unitKind = iota + 1 // one sector, or part of it, of a write
	length                     // the file reaches to off, without its bytes
	cut                        // the file ends at off
	naming
)

// NewDisk returns a disk on which these files are synced.
func NewDisk(files map[string][]byte) *Disk {
	d := &Disk{files: map[int]*file{}, current: map[string]*file{}}
	for name, b := range files {
		d.current[name] = &file{synced: b}
	}
	d.names = maps.Clone(d.current)
	return d
}

// Units is how many changes are not synced.
func (d *Disk) Units() int { return len(d.units) }

// Apply follows the recorder's i-th event and returns how many units it added.
func (d *Disk) Apply(i int, e vfs.Event) (added int) {
	if e.Err != nil && e.Op == vfs.OpSync {
		d.forget(d.files[e.File])
	}
	if e.Err != nil && e.Op != vfs.OpWrite { // of a failed write the first N bytes are there
		return 0
	}
	before := len(d.units)
	name, to := filepath.Base(e.Name), filepath.Base(e.To)
	switch e.Op {
	case vfs.OpOpen, vfs.OpLock, vfs.OpCreate:
		f := d.current[name]
		if f == nil {
			f = &file{}
			d.rename(i, map[string]*file{name: f})
		}
		d.files[e.File] = f
	case vfs.OpRemove:
		d.rename(i, map[string]*file{name: nil})
	case vfs.OpRename:
		d.rename(i, map[string]*file{to: d.current[name], name: nil})
	case vfs.OpLink:
		d.rename(i, map[string]*file{to: d.current[name]})
	case vfs.OpWrite:
		d.write(i, e)
	case vfs.OpTruncate:
		d.units = append(d.units, unit{event: i, kind: cut, file: d.files[e.File], off: e.Off})
	case vfs.OpSync:
		f := d.files[e.File]
		d.settle(e.Covers, func(u unit) bool { return u.file == f })
		return 0
	case vfs.OpSyncDir:
		d.settle(e.Covers, func(u unit) bool { return u.kind == naming })
		return 0
	}
	return len(d.units) - before
}

// forget drops what is not synced of a file, and never will be.
func (d *Disk) forget(f *file) {
	d.units = slices.DeleteFunc(slices.Clone(d.units), func(u unit) bool {
		if u.file == f && u.kind == length && d.Zeros {
			f.synced = u.on(slices.Clone(f.synced))
		}
		return u.file == f && u.kind != naming
	})
}

// Clone returns a copy to be carried on by another recorder's events, the first of which is number 0.
func (d *Disk) Clone() *Disk {
	copies := map[*file]*file{nil: nil}
	of := func(f *file) *file {
		if _, done := copies[f]; !done {
			copies[f] = &file{synced: f.synced}
		}
		return copies[f]
	}
	all := func(names map[string]*file) map[string]*file {
		c := map[string]*file{}
		for name, f := range names {
			c[name] = of(f)
		}
		return c
	}
	c := &Disk{files: map[int]*file{}, current: all(d.current), names: all(d.names), Zeros: d.Zeros}
	for _, u := range d.units {
		u.event, u.file, u.names = -1, of(u.file), all(u.names)
		c.units = append(c.units, u)
	}
	return c
}

func (d *Disk) rename(event int, names map[string]*file) {
	apply(d.current, names)
	d.units = append(d.units, unit{event: event, kind: naming, names: names})
}

func (d *Disk) write(event int, e vfs.Event) {
	f := d.files[e.File]
	for at := 0; at < e.N; {
		off := e.Off + int64(at)
		n := min(sector-int(off%sector), e.N-at)
		d.units = append(d.units, unit{event: event, kind: data, file: f, off: off, data: e.Data[at : at+n]})
		at += n
	}
	d.units = append(d.units, unit{event: event, kind: length, file: f, off: e.Off + int64(e.N)})
}

// settle makes units durable that came before an event.
func (d *Disk) settle(before int, covered func(unit) bool) {
	var left []unit // a new list: states may still be built from the old one
	for _, u := range d.units {
		switch {
		case u.event >= before || !covered(u):
			left = append(left, u)
		case u.kind == naming:
			apply(d.names, u.names)
		default:
			u.file.synced = u.on(slices.Clone(u.file.synced))
		}
	}
	d.units = left
}

// on does what the unit does to the bytes of its file.
func (u unit) on(b []byte) []byte {
	end := int(u.off) + len(u.data)
	if u.kind == cut {
		return append(b[:min(end, len(b))], make([]byte, max(0, end-len(b)))...)
	}
	if grow := end - len(b); grow > 0 {
		b = append(b, make([]byte, grow)...)
	}
	copy(b[u.off:], u.data)
	return b
}

func apply(names, changes map[string]*file) {
	for name, f := range changes {
		if f == nil {
			delete(names, name)
		} else {
			names[name] = f
		}
	}
}

// State is what a cut left: the bytes of each file by its name.
type State map[string][]byte

// Cut returns what is left if the power goes now and the units of the choice are kept. The bytes must not be changed.
func (d *Disk) Cut(p Profile, keep Choice) State {
	names := maps.Clone(d.names)
	bytes := map[*file][]byte{}
	lost := false // a change of names, in an ordered file system
	for i, u := range d.units {
		switch {
		case !keep.Has(i):
			lost = lost || u.kind == naming && p == Ordered
		case u.kind == naming:
			if !lost {
				apply(names, u.names)
			}
		default:
			b, changed := bytes[u.file]
			if !changed {
				b = slices.Clone(u.file.synced)
			}
			bytes[u.file] = u.on(b)
		}
	}
	s := State{}
	for name, f := range names {
		b, changed := bytes[f]
		if !changed {
			b = f.synced
		}
		s[name] = b
	}
	return s
}
