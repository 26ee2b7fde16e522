// Package crash builds every state of a disk that a power cut may have left.
//
// A [Disk] follows a record of a [vfstest.Recorder] and knows at each moment what is surely on it and which changes are
// not synced yet. Those changes are cut into units, each of which the cut keeps or loses by itself; a [Choice] says
// which.
//
// The model is weaker than any real file system, after ALICE (Pillai et al., OSDI 2014):
//
//   - A sync of a file makes its bytes and its length durable, not its name. Of writes since then any set of 512-byte
//     sectors may be there, whatever their order, also those of one write.
//   - A file may have grown without its bytes: then it holds zeros.
//   - A cut of the length is a unit like a write.
//   - Names (made, linked, renamed, removed, those of directories too) become durable by a sync of the directory that they are in.
//     Before that any of them may be there, and a name may be there before the bytes of its file. A rename is all or nothing.
//
// [Ordered] is closer to ext4 and its kind: changes of names become durable in their order.
//
// A sync of a file that fails loses its changes for good: the kernel reports it once, calls the pages clean, and no
// later sync writes them. They stay readable until the machine is switched off.
package crash

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/test/vfstest"
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

// Disk is the directory of a store and its neighbours, as the disk and the operating system know them.
type Disk struct {
	root  *folder
	dir   string        // of the store, from the root
	files map[int]*file // by the recorder's numbers
	units []unit        // not synced, in the order in which they came

	// Zeros is for failed syncs: the file grows all the same, by zeros.
	Zeros bool
}

// file is a file's bytes, as synced. It has no name.
type file struct{ synced []byte }

// folder is a directory's names. It has none itself.
type folder struct {
	current map[string]node // as the operating system has them
	names   map[string]node // as synced
}

func newFolder() *folder { return &folder{current: map[string]node{}, names: map[string]node{}} }

// node is the target of a name: a file, a folder, or, the zero node, nothing.
type node struct {
	file   *file
	folder *folder
}

// unit is a change that a power cut keeps or loses as a whole.
type unit struct {
	event int
	kind  unitKind
	file  *file // of data, length and cut
	off   int64
	data  []byte
	in    *folder         // of naming
	names map[string]node // of naming: what becomes of each name
}

type unitKind int

const (
	data   unitKind = iota + 1 // one sector, or part of it, of a write
	length                     // the file reaches to off, without its bytes
	cut                        // the file ends at off
	naming
)

// NewDisk returns a disk on which a store's directory, with these files, is synced. The store itself may have any name
// in the root; names in a [State] are seen from its directory.
func NewDisk(dir string, files State) *Disk {
	d := &Disk{root: newFolder(), dir: filepath.Clean(dir), files: map[int]*file{}}
	d.makeFolder(d.dir)
	for name, b := range files {
		path := filepath.Join(d.dir, name)
		if isFolder(name) {
			d.makeFolder(path)
			continue
		}
		in := d.makeFolder(filepath.Dir(path))
		in.current[filepath.Base(path)] = node{file: &file{synced: b}}
		in.names = maps.Clone(in.current)
	}
	return d
}

// makeFolder makes a directory and those above it, synced.
func (d *Disk) makeFolder(path string) *folder {
	in := d.root
	for _, name := range split(path) {
		if in.current[name].folder == nil {
			in.current[name] = node{folder: newFolder()}
			in.names[name] = in.current[name]
		}
		in = in.current[name].folder
	}
	return in
}

func split(path string) []string {
	if path == "." {
		return nil
	}
	return strings.Split(path, string(filepath.Separator))
}

// folderOf finds the directory that a name is in, as the operating system has it.
func (d *Disk) folderOf(path string) (in *folder, name string) {
	path = filepath.Clean(path)
	in = d.root
	for _, parent := range split(filepath.Dir(path)) {
		in = in.current[parent].folder
		if in == nil {
			panic("BUG: nobody made the directory of " + path)
		}
	}
	return in, filepath.Base(path)
}

// find returns the node of a name.
func (d *Disk) find(path string) node {
	if filepath.Clean(path) == "." {
		return node{folder: d.root}
	}
	in, name := d.folderOf(path)
	return in.current[name]
}

// Units is how many changes are not synced.
func (d *Disk) Units() int { return len(d.units) }

// Apply follows the recorder's i-th event and returns how many units it added.
func (d *Disk) Apply(i int, e vfstest.Event) (added int) {
	if e.Err != nil && e.Op == vfstest.OpSync {
		d.forget(d.files[e.File])
	}
	if e.Err != nil && e.Op != vfstest.OpWrite { // of a failed write the first N bytes are there
		return 0
	}
	before := len(d.units)
	switch e.Op {
	case vfstest.OpOpen, vfstest.OpLock, vfstest.OpCreate:
		in, name := d.folderOf(e.Name)
		f := in.current[name].file
		if f == nil {
			f = &file{}
			d.rename(i, in, map[string]node{name: {file: f}})
		}
		d.files[e.File] = f
	case vfstest.OpMkdir:
		d.mkdir(i, e.Name)
	case vfstest.OpRemove, vfstest.OpRemoveDir:
		in, name := d.folderOf(e.Name)
		d.rename(i, in, map[string]node{name: {}})
	case vfstest.OpRename, vfstest.OpRenameDir:
		in, name := d.folderOf(e.Name)
		into, to := d.folderOf(e.To)
		if in != into {
			panic("BUG: a rename from one directory to another")
		}
		d.rename(i, in, map[string]node{to: in.current[name], name: {}})
	case vfstest.OpLink:
		in, to := d.folderOf(e.To)
		d.rename(i, in, map[string]node{to: d.find(e.Name)})
	case vfstest.OpWrite:
		d.write(i, e)
	case vfstest.OpTruncate:
		d.units = append(d.units, unit{event: i, kind: cut, file: d.files[e.File], off: e.Off})
	case vfstest.OpSync:
		f := d.files[e.File]
		d.settle(e.Covers, func(u unit) bool { return u.file == f })
		return 0
	case vfstest.OpSyncDir:
		in := d.find(e.Name).folder
		d.settle(e.Covers, func(u unit) bool { return u.kind == naming && u.in == in })
		return 0
	}
	return len(d.units) - before
}

// forget drops the unsynced changes of a file, which never will be synced.
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
	g := copier{map[*file]*file{nil: nil}, map[*folder]*folder{nil: nil}}
	c := &Disk{root: g.folder(d.root), dir: d.dir, files: map[int]*file{}, Zeros: d.Zeros}
	for _, u := range d.units {
		u.event, u.file, u.in, u.names = -1, g.file(u.file), g.folder(u.in), g.nodes(u.names)
		c.units = append(c.units, u)
	}
	return c
}

// copier copies what leads to one file or folder in several ways so that it still does.
type copier struct {
	files   map[*file]*file
	folders map[*folder]*folder
}

func (g copier) file(f *file) *file {
	if _, done := g.files[f]; !done {
		g.files[f] = &file{synced: f.synced}
	}
	return g.files[f]
}

func (g copier) folder(f *folder) *folder {
	if _, done := g.folders[f]; !done {
		g.folders[f] = newFolder()
		*g.folders[f] = folder{current: g.nodes(f.current), names: g.nodes(f.names)}
	}
	return g.folders[f]
}

func (g copier) nodes(names map[string]node) map[string]node {
	c := make(map[string]node, len(names))
	for name, n := range names {
		c[name] = node{g.file(n.file), g.folder(n.folder)}
	}
	return c
}

// mkdir makes a directory and those above it.
func (d *Disk) mkdir(event int, path string) {
	in := d.root
	for _, name := range split(filepath.Clean(path)) {
		if in.current[name].folder == nil {
			d.rename(event, in, map[string]node{name: {folder: newFolder()}})
		}
		in = in.current[name].folder
	}
}

func (d *Disk) rename(event int, in *folder, names map[string]node) {
	apply(in.current, names)
	d.units = append(d.units, unit{event: event, kind: naming, in: in, names: names})
}

func (d *Disk) write(event int, e vfstest.Event) {
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
			apply(u.in.names, u.names)
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

func apply(names, changes map[string]node) {
	for name, n := range changes {
		if n == (node{}) {
			delete(names, name)
		} else {
			names[name] = n
		}
	}
}
