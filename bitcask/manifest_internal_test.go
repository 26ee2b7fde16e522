package bitcask

import (
	"maps"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// However many segments there are, an edit is an edit: what snapshots cost is
// a small factor of what edits cost.
func TestManifestOfManySegments(t *testing.T) {
	const segments = 10_000
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	m, err := createManifest(fs, "d", [16]byte{1}, keydir.Seed{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	var written, snapshots int64
	for id := uint32(1); id <= segments; id++ {
		before := m.size
		if err := m.log(editSeal, rotateBody(sealedInfo{id: id, length: 1000, minSeq: uint64(id), maxSeq: uint64(id), records: 1}, id+1)); err != nil {
			t.Fatal(err)
		}
		if written += m.size - before; m.size < before || m.size-before > 100 {
			written += before
			snapshots++
		}
	}
	edits := int64(segments * (editHeaderSize + sealedInfoSize + 4))
	if snapshots == 0 || snapshots > 10 || written > 4*edits {
		t.Errorf("%d snapshots, %d bytes written for %d bytes of edits", snapshots, written, edits)
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	again, torn, err := readManifest(fs, "d", vfs.ReadWrite)
	if err != nil || torn {
		t.Fatal(torn, err)
	}
	if !maps.Equal(again.sealed, m.sealed) || again.active != m.active || again.nextID != m.nextID {
		t.Errorf("read back %d segments, active %d, next %d", len(again.sealed), again.active, again.nextID)
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
}
