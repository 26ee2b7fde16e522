package dump

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/vfs"
)

// Item is one thing in a file. Its slices are valid until the visitor returns.
type Item struct {
	Offset   int64
	Bytes    int64
	What     string // header, commit, a kind of record, edit, section, footer, zeros, Newer or Damage
	Sequence uint64 // 0: it has none
	Space    uint32 // of a record: which namespace it belongs to, see the records of kind namespaces
	Type     string // of the key
	Key      []byte // nil: it is not about a key
	Element  []byte // nil: none
	Value    []byte // nil: none, or not in this file
	Text     string // all else that there is to say
}

// Damage is the What of bytes that do not verify, and Newer of what verifies and only a newer version knows.
const (
	Damage = "DAMAGE"
	Newer  = "NEWER"
)

// ErrUnknown means that a file is none that this package knows.
var ErrUnknown = errors.New("neither a segment, a hint, a MANIFEST nor an INDEX")

// File calls visit for all that the file holds, in order. It ends with the first error of visit, the context's,
// ErrUnknown, or the file system's; damage is no error. At the end of a file in which it has met something of a newer
// version it returns bitcask.ErrVersion.
func File(ctx context.Context, path string, visit func(Item) error) (err error) {
	f, err := vfs.OS().Open(path, vfs.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	d := &dumper{ctx: ctx, path: path, file: f, size: size, visit: visit}
	head := make([]byte, min(size, 8))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	id, suffix, named := format.ParseName(filepath.Base(path))
	switch name := filepath.Base(path); {
	case bytes.Equal(head, []byte("STAVESEG")) || named && suffix == format.DataSuffix:
		err = d.segment(id)
	case bytes.Equal(head, []byte("STAVEHNT")):
		err = d.hint()
	case bytes.Equal(head, []byte("STAVEMAN")) || name == manifest.FileName:
		err = d.manifest()
	case bytes.Equal(head, []byte(indexfile.Magic)) || name == indexfile.FileName:
		err = d.index()
	default:
		err = fmt.Errorf("%s: %w", filepath.Base(path), ErrUnknown)
	}
	return cmp.Or(err, d.newer)
}

// A dumper is a walk through one file.
type dumper struct {
	ctx   context.Context
	path  string
	file  vfs.File
	size  int64
	visit func(Item) error
	items int
	newer error // what it has met first that only a newer version knows
}

// item passes on an item.
func (d *dumper) item(i Item) error {
	if d.items++; d.items%256 == 0 {
		if err := d.ctx.Err(); err != nil {
			return err
		}
	}
	return d.visit(i)
}

// damage passes on bytes that do not verify.
func (d *dumper) damage(at, n int64, reason string) error {
	return d.item(Item{Offset: at, Bytes: n, What: Damage, Text: reason})
}

// later passes on what only a newer version knows.
func (d *dumper) later(at, n int64, reason string) error {
	d.newer = cmp.Or(d.newer, fmt.Errorf("a newer version of Stave wrote it: %s: %w", reason, failure.ErrVersion))
	return d.item(Item{Offset: at, Bytes: n, What: Newer, Text: reason})
}

// otherVersion passes on a file that is made again where it has another version or other flags: an older one is no
// matter.
func (d *dumper) otherVersion(head []byte) error {
	kind := formats[string(head[:8])]
	version, flags := int(binary.LittleEndian.Uint16(head[8:])), binary.LittleEndian.Uint16(head[10:])
	text := fmt.Sprintf("%s of version %d, flags %#x", kind.Kind, version, flags)
	if version < kind.Current {
		return d.item(Item{Bytes: d.size, What: "header", Text: text + ": of an older version, which is made again"})
	}
	return d.later(0, d.size, text)
}

// read reads n bytes, or as many as there are.
func (d *dumper) read(at, n int64) ([]byte, error) {
	b := make([]byte, max(min(n, d.size-at), 0))
	got, err := d.file.ReadAt(b, at)
	if errors.Is(err, io.EOF) { // it has become shorter
		err = nil
	}
	return b[:got], err
}

// record is an item for a record, or for the entry of a hint.
func recordItem(id *format.Identity, at, n int64, seq uint64) Item {
	i := Item{Offset: at, Bytes: n, What: id.Kind.String(), Sequence: seq, Space: id.Namespace, Type: id.Type.Public().String(), Key: id.Key}
	if id.Kind.HasElement() {
		i.Element = id.Elem
	}
	if i.Key == nil {
		i.Key = []byte{}
	}
	return i
}
