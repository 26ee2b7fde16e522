package bitcask

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
		edit(editSeal, sealBody(format.SealedInfo{ID: id, Length: 1000, MinSeq: uint64(id), MaxSeq: uint64(id), Records: 1}, id+1))
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
	again, err := readManifest(fs, "d", vfs.ReadWrite, nil)
	if err != nil || len(again.rest) > 0 {
		t.Fatal(again, err)
	}
	if !maps.Equal(again.sealed, m.sealed) || !slices.Equal(again.tail, m.tail) || again.nextID != m.nextID {
		t.Errorf("read back %d segments, unsealed %d, next %d", len(again.sealed), again.tail, again.nextID)
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
}

// A feature bit is on disk when need returns, and is written once. One that
// could not be written is not set.
func TestFeatureBits(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	fault := vfs.NewFault(mem)
	m, err := createManifest(fault, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	must(t, m.log(editCollision, make([]byte, 8)))
	fault.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpWrite}, Path: manifestTemp, Err: syscall.ENOSPC})
	if err := m.need(1 << 15); !errors.Is(err, syscall.ENOSPC) || m.features != featureBoot|featureOpenings {
		t.Errorf("on a full disk: %v, features %#x", err, m.features)
	}
	must(t, m.log(editNextID, []byte{7, 0, 0, 0})) // goes on with the old file
	must(t, m.need(1<<15))
	fault.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpWrite, vfs.OpRename}, Err: errors.New("written again")})
	must(t, m.need(1<<15))
	must(t, m.close())
	if _, err := readManifest(mem, "d", vfs.ReadOnly, nil); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "0x8000") {
		t.Errorf("read by a build that does not know the bit: %v", err)
	}
	f, err := mem.Open("d/"+manifestName, vfs.ReadOnly)
	must(t, err)
	b := make([]byte, m.size)
	_, err = f.ReadAt(b, 0)
	must(t, errors.Join(err, f.Close()))
	if typ, body, ok := m.editAt(b, manifestHeaderSize); !ok || typ != editNextID || body[0] != 7 {
		t.Errorf("the first edit is %d, %v, %v", typ, body, ok)
	}
}

// After a failed sync of the manifest there is an edit behind its end that may or may not be on disk. No other one takes its
// place: the rest of the longer one would stand behind it.
func TestNoEditAfterAFailedSync(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	fault := vfs.NewFault(mem)
	m, err := createManifest(fault, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	fault.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpSync}, Err: syscall.EIO})
	long := swapBody([]uint32{7, 8, 9}, nil)
	for _, next := range []func() error{
		func() error { return m.log(editSwap, long) },
		func() error { return m.log(editNextID, []byte{7, 0, 0, 0}) },
		func() error { return m.need(featureExtended) },
	} {
		if err := next(); !errors.Is(err, syscall.EIO) {
			t.Errorf("after a failed sync: %v", err)
		}
	}
	must(t, m.close())
	again, err := readManifest(mem, "d", vfs.ReadOnly, nil)
	must(t, err)
	if len(again.rest) > 0 || again.nextID != 1 {
		t.Errorf("%d bytes behind the edits, next id %d", len(again.rest), again.nextID)
	}
	must(t, again.close())
}

// One flipped bit in the last edit is damage, whatever the edit says and wherever the power went; half an edit is not, and in
// the life of the kernel in which it was written an edit that is all there but does not verify is.
func TestFlippedEdit(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	m, err := createManifest(mem, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	here := vfs.BootOf(mem, "d")
	must(t, m.log(editBoot, here[:]))
	last := m.size
	must(t, m.log(editCollision, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	whole := make([]byte, m.size)
	_, err = m.file.ReadAt(whole, 0)
	must(t, errors.Join(err, m.close()))
	read := func(b []byte, boot vfs.BootID) (*manifest, error) {
		fs := vfs.NewMem()
		fs.SetBoot(boot)
		must(t, fs.MkdirAll("d"))
		f, err := fs.Open("d/"+manifestName, vfs.Create)
		must(t, err)
		_, err = f.WriteAt(b, 0)
		must(t, errors.Join(err, f.Close()))
		m, err := readManifest(fs, "d", vfs.ReadOnly, nil)
		if err == nil {
			must(t, m.close())
		}
		return m, err
	}
	for _, boot := range []vfs.BootID{here, {9}} {
		for at := last; at < m.size; at++ {
			for bit := range 8 {
				b := slices.Clone(whole)
				b[at] ^= 1 << bit
				if _, err := read(b, boot); !failure.IsDamage(err) {
					t.Errorf("byte %d, bit %d, boot %x: %v", at, bit, boot, err)
				}
			}
			if m, err := read(whole[:at], boot); err != nil || m.size != last || len(m.collided) > 0 {
				t.Errorf("cut at %d, boot %x: %v", at, boot, err)
			}
			b := slices.Clone(whole)
			clear(b[at:])
			_, err := read(b, boot)
			if boot != here && err != nil && at < m.size-1 || boot == here && at > last+8 && !failure.IsDamage(err) {
				t.Errorf("zeros from %d, boot %x: %v", at, boot, err)
			}
		}
	}
}

// A manifest that is written anew has its name on disk before anything relies on it.
func TestNewManifestIsNamed(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	rec := vfs.NewRecorder(mem)
	m, err := createManifest(rec, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	before := len(rec.Events())
	must(t, m.rewrite())
	renamed, named := false, false
	for _, e := range rec.Events()[before:] {
		switch e.Op {
		case vfs.OpRename:
			renamed, named = true, false
		case vfs.OpSyncDir:
			named = true
		}
	}
	if !renamed || !named {
		t.Errorf("renamed %v, and then synced %v", renamed, named)
	}
	must(t, m.close())
}
