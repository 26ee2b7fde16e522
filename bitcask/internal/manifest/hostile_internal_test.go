package manifest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// A malicious manifest of many MiB is judged as soon as an honest one: lengths that reach far at every place, edits
// that verify but for one bit, segments that are never sealed.
func TestHostileManifest(t *testing.T) {
	size := 16 << 20
	if testing.Short() {
		size = 2 << 20
	}
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	m, err := Create(mem, "d", [16]byte{1}, keydir.Seed{2, 3})
	must(t, err)
	head := make([]byte, m.Size)
	_, err = m.File.ReadAt(head, 0)
	must(t, errors.Join(err, m.Close()))
	far := slices.Clone(head)
	for len(far) < size {
		far = append(far, 0, byte(size>>18), 0, byte(size>>18)) // half of the file, at every other place
	}
	flipped, added, sealed := slices.Clone(head), slices.Clone(head), slices.Clone(head)
	for id := uint32(1); len(flipped) < size; id++ {
		at := len(flipped)
		flipped = m.AppendEdit(flipped, 0, EditNextID, binary.LittleEndian.AppendUint32(nil, id))
		flipped[at+6] ^= byte(size >> 18) // its length
	}
	for id := uint32(1 << 21); len(added) < size; id-- {
		added = m.AppendEdit(added, 0, EditAdd, binary.LittleEndian.AppendUint32(nil, id))
	}
	for id := uint32(1); len(sealed) < size; id++ { // one for each as soon as there are as many unsealed ones as there may be
		if id > maxUnsealed {
			sealed = m.AppendEdit(sealed, 0, EditSeal, SealBody(format.SealedInfo{ID: id - maxUnsealed}, 0))
		}
		sealed = m.AppendEdit(sealed, 0, EditAdd, binary.LittleEndian.AppendUint32(nil, id))
	}
	for _, hostile := range []struct {
		name string
		b    []byte
		pass func(error) error
	}{
		{"far", far, nil}, {"far, mended", far, pass}, {"flipped", flipped, nil}, {"flipped, mended", flipped, pass},
		{"added", added, nil}, {"sealed", sealed, nil},
	} {
		fs := vfs.NewMem()
		must(t, fs.MkdirAll("d"))
		f, err := fs.Open("d/"+FileName, vfs.Create)
		must(t, err)
		_, err = f.WriteAt(hostile.b, 0)
		must(t, errors.Join(err, f.Close()))
		begin := time.Now()
		m, err := Read(fs, "d", vfs.ReadOnly, hostile.pass)
		took := time.Since(begin)
		t.Logf("%s: %v, %v", hostile.name, took, err)
		if err == nil {
			must(t, m.Close())
		} else if !failure.IsDamage(err) {
			t.Errorf("%s: %v", hostile.name, err)
		}
		if took > 10*time.Minute { // of two seconds on an idle machine, and hours without the sums of ranges
			t.Errorf("%s: judged in %v", hostile.name, took)
		}
	}
}

func pass(error) error { return nil }

// The sum of a range is that of its bytes, and the bit that is found is the one that was flipped.
func TestRangeSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 5000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	sums := newRangeSums(b)
	for from := 0; from <= len(b); from += 1 + r.IntN(40) {
		for to := from; to <= len(b); to += 1 + r.IntN(70) {
			if start := r.Uint32(); sums.sum(start, from, to) != crc32.Update(start, crc32.IEEETable, b[from:to]) {
				t.Fatalf("range from %d to %d", from, to)
			}
		}
	}
	for range 2000 {
		from := r.IntN(len(b))
		to := from + 1 + r.IntN(len(b)-from)
		end := to + r.IntN(len(b)-to+1)
		at := 8*from + r.IntN(8*(to-from))
		other := slices.Clone(b[from:end])
		other[at/8-from] ^= 1 << (at % 8)
		diff := crc32.ChecksumIEEE(other) ^ crc32.ChecksumIEEE(b[from:end])
		if bit, ok := sums.flipped(diff, from, to, end); !ok || bit != at {
			t.Fatalf("bit %d of %d to %d of %d: %d, %v", at, from, to, end, bit, ok)
		}
	}
}
