package crash

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/vfs"
)

// State is the result of a cut: the bytes of each file by its name, as seen from the store's directory:
// "../copy/MANIFEST" is in a neighbouring directory. A name that ends with a slash is of an empty directory.
type State map[string][]byte

func isFolder(name string) bool { return strings.HasSuffix(name, "/") }

// Mem returns a file system that holds the state, the store's directory being dir.
func (s State) Mem(dir string) (*vfs.Mem, error) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll(dir); err != nil {
		return nil, err
	}
	for name, b := range s {
		if err := write(mem, filepath.Join(dir, name), isFolder(name), b); err != nil {
			return nil, err
		}
	}
	return mem, nil
}

func write(mem *vfs.Mem, path string, folder bool, b []byte) error {
	if folder {
		return mem.MkdirAll(path)
	}
	if err := mem.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := mem.Open(path, vfs.Create)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}

// ReadState reads all files of a directory.
func ReadState(fsys vfs.FS, dir string) (State, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	s := State{}
	for _, name := range names {
		if s[name], err = readFile(fsys, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func readFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name, vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	n, err := f.Size()
	b := make([]byte, max(n, 0))
	if err == nil {
		var got int
		if got, err = f.ReadAt(b, 0); err == io.EOF { // it has become shorter since: a segment that is being sealed
			b, err = b[:got], nil
		}
	}
	return b, errors.Join(err, f.Close())
}

// Sum is a hash of the state, to compare states.
func (s State) Sum(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var n [8]byte
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for _, b := range [][]byte{[]byte(name), s[name]} {
			binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
			h.Write(n[:])
			h.Write(b)
		}
	}
	return h.Sum64()
}
