package bitcask

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// However many segments there are, an edit is an edit: what snapshots cost is
// a small factor of what edits cost.
func TestManifestOfManySegments(t *testing.T) {
	const segments = 3000
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	m, err := createManifest(fs, "d", [16]byte{1}, keydir.Seed{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	var written, edits, snapshots int64
	edit := func(typ byte, body []byte) {
		before, length := m.size, int64(editHeaderSize+len(body))
		if err := m.log(typ, body); err != nil {
			t.Fatal(err)
		}
		edits += length
		if m.size == before+length {
			written += length
		} else {
			written += m.size
			snapshots++
		}
	}
	for id := uint32(1); id <= segments; id++ {
		edit(editSeal, sealBody(sealedInfo{id: id, length: 1000, minSeq: uint64(id), maxSeq: uint64(id), records: 1}, id+1))
		for range 10 {
			edit(editNextID, binary.LittleEndian.AppendUint32(nil, id))
		}
	}
	if snapshots == 0 || written > 3*edits {
		t.Errorf("%d snapshots, %d bytes written for %d bytes of edits", snapshots, written, edits)
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	again, torn, err := readManifest(fs, "d", vfs.ReadWrite, nil)
	if err != nil || torn {
		t.Fatal(torn, err)
	}
	if !maps.Equal(again.sealed, m.sealed) || !slices.Equal(again.tail, m.tail) || again.nextID != m.nextID {
		t.Errorf("read back %d segments, unsealed %d, next %d", len(again.sealed), again.tail, again.nextID)
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
}
