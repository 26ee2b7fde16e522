package manifest

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/test/vfstest"
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
	m, err := Create(fs, "d", [16]byte{1}, keydir.Seed{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	var written, edits, snapshots int64
	edit := func(typ byte, body []byte) {
		before, length := m.Size, int64(EditHeaderSize+len(body))
		if err := m.Log(typ, body); err != nil {
			t.Fatal(err)
		}
		edits += length
		if m.Size == before+length {
			written += length
		} else {
			written += m.Size
			snapshots++
		}
	}
	for id := uint32(1); id <= segments; id++ {
		edit(EditSeal, SealBody(format.SealedInfo{ID: id, Length: 1000, MinSeq: uint64(id), MaxSeq: uint64(id), Records: 1}, id+1))
		for range 10 {
			edit(EditNextID, binary.LittleEndian.AppendUint32(nil, id))
		}
	}
	if snapshots == 0 || written > 3*edits {
		t.Errorf("%d snapshots, %d bytes written for %d bytes of edits", snapshots, written, edits)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Read(fs, "d", vfs.ReadWrite, nil)
	if err != nil || len(again.Rest) > 0 {
		t.Fatal(again, err)
	}
	if !maps.Equal(again.Sealed, m.Sealed) || !slices.Equal(again.Tail, m.Tail) || again.NextID != m.NextID {
		t.Errorf("read back %d segments, unsealed %d, next %d", len(again.Sealed), again.Tail, again.NextID)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// A feature bit is on disk when need returns, and is written once. One that
// could not be written is not set.
func TestFeatureBits(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	fault := vfstest.NewFault(mem)
	m, err := Create(fault, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	must(t, m.Log(EditCollision, make([]byte, 8)))
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: TempName, Err: syscall.ENOSPC})
	if err := m.Need(1 << 15); !errors.Is(err, syscall.ENOSPC) || m.Features != FeatureBoot|FeatureOpenings {
		t.Errorf("on a full disk: %v, features %#x", err, m.Features)
	}
	must(t, m.Log(EditNextID, []byte{7, 0, 0, 0})) // goes on with the old file
	must(t, m.Need(1<<15))
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite, vfstest.OpRename}, Err: errors.New("written again")})
	must(t, m.Need(1<<15))
	must(t, m.Close())
	if _, err := Read(mem, "d", vfs.ReadOnly, nil); !errors.Is(err, failure.ErrVersion) || !strings.Contains(err.Error(), "0x8000") {
		t.Errorf("read by a build that does not know the bit: %v", err)
	}
	f, err := mem.Open("d/"+FileName, vfs.ReadOnly)
	must(t, err)
	b := make([]byte, m.Size)
	_, err = f.ReadAt(b, 0)
	must(t, errors.Join(err, f.Close()))
	if typ, body, ok := m.EditAt(b, HeaderSize); !ok || typ != EditNextID || body[0] != 7 {
		t.Errorf("the first edit is %d, %v, %v", typ, body, ok)
	}
}

// After a failed sync of the manifest there is an edit after its end that may or may not be on disk. No other one takes
// its place: the rest of the longer one would follow it.
func TestNoEditAfterAFailedSync(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	fault := vfstest.NewFault(mem)
	m, err := Create(fault, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO})
	long := SwapBody([]uint32{7, 8, 9}, nil)
	for _, next := range []func() error{
		func() error { return m.Log(EditSwap, long) },
		func() error { return m.Log(EditNextID, []byte{7, 0, 0, 0}) },
		func() error { return m.Need(FeatureExtended) },
	} {
		if err := next(); !errors.Is(err, syscall.EIO) {
			t.Errorf("after a failed sync: %v", err)
		}
	}
	must(t, m.Close())
	again, err := Read(mem, "d", vfs.ReadOnly, nil)
	must(t, err)
	if len(again.Rest) > 0 || again.NextID != 1 {
		t.Errorf("%d bytes after the edits, next id %d", len(again.Rest), again.NextID)
	}
	must(t, again.Close())
}

// One flipped bit in the last edit is damage, whatever the edit says and wherever the power went; half an edit is not,
// and in the life of the kernel in which it was written an edit that is all there but does not verify is.
func TestFlippedEdit(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	m, err := Create(mem, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	here := vfs.BootOf(mem, "d")
	must(t, m.Log(EditBoot, here[:]))
	last := m.Size
	must(t, m.Log(EditCollision, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	whole := make([]byte, m.Size)
	_, err = m.File.ReadAt(whole, 0)
	must(t, errors.Join(err, m.Close()))
	read := func(b []byte, boot vfs.BootID) (*Manifest, error) {
		fs := vfs.NewMem()
		fs.SetBoot(boot)
		must(t, fs.MkdirAll("d"))
		f, err := fs.Open("d/"+FileName, vfs.Create)
		must(t, err)
		_, err = f.WriteAt(b, 0)
		must(t, errors.Join(err, f.Close()))
		m, err := Read(fs, "d", vfs.ReadOnly, nil)
		if err == nil {
			must(t, m.Close())
		}
		return m, err
	}
	for _, boot := range []vfs.BootID{here, {9}} {
		for at := last; at < m.Size; at++ {
			for bit := range 8 {
				b := slices.Clone(whole)
				b[at] ^= 1 << bit
				if _, err := read(b, boot); !failure.IsDamage(err) {
					t.Errorf("byte %d, bit %d, boot %x: %v", at, bit, boot, err)
				}
			}
			if m, err := read(whole[:at], boot); err != nil || m.Size != last || len(m.Collided) > 0 {
				t.Errorf("cut at %d, boot %x: %v", at, boot, err)
			}
			b := slices.Clone(whole)
			clear(b[at:])
			_, err := read(b, boot)
			if boot != here && err != nil && at < m.Size-1 || boot == here && at > last+8 && !failure.IsDamage(err) {
				t.Errorf("zeros from %d, boot %x: %v", at, boot, err)
			}
		}
	}
}

// A manifest that is written anew has its name on disk before anything relies on it.
func TestNewManifestIsNamed(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	rec := vfstest.NewRecorder(mem)
	m, err := Create(rec, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	before := len(rec.Events())
	must(t, m.Rewrite())
	renamed, named := false, false
	for _, e := range rec.Events()[before:] {
		switch e.Op {
		case vfstest.OpRename:
			renamed, named = true, false
		case vfstest.OpSyncDir:
			named = true
		}
	}
	if !renamed || !named {
		t.Errorf("renamed %v, and then synced %v", renamed, named)
	}
	must(t, m.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
