package indexfile

import (
	"testing"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// mappedFile is a file whose mapping is in memory or not.
type mappedFile struct {
	vfs.File
	data     []byte
	resident bool
}

func (f *mappedFile) Map(length int) ([]byte, error)           { return f.data[:length], nil }
func (f *mappedFile) Unmap([]byte) error                       { return nil }
func (f *mappedFile) Resident([]byte, *vfs.ResidentPages) bool { return f.resident }
func (f *mappedFile) Size() (int64, error)                     { return int64(len(f.data)), nil }
func (f *mappedFile) Close() error                             { return nil }

// TestFindWaitsForNoDisk: a section that is not in memory is not searched.
func TestFindWaitsForNoDisk(t *testing.T) {
	seed := keydir.Seed{1, 2}
	h, loc := seed.Hash("key"), keydir.MakeLoc(1, 100, 64)
	d := keydir.NewDirectory(seed)
	d.Insert(h, keydir.Slot{Type: keydir.String, Loc: loc})
	dump := d.Dump(keydir.StripeOf(h))
	f := &mappedFile{data: dump.Append(nil, 1<<20)}
	l, err := NewReader(f, [16]byte{}, seed)
	if err != nil {
		t.Fatal(err)
	}
	l.Map()
	is := &Section{Stripe: uint32(keydir.StripeOf(h)), Length: uint64(len(f.data)), Crc: l.seal.Sum(0, f.data)}
	for _, f.resident = range []bool{false, true, false} {
		want := keydir.LookupRetry
		if f.resident && l.data != nil {
			want = keydir.LookupHit
		}
		if got, lookup := l.Find(is, h); lookup != want || want == keydir.LookupHit && got != loc {
			t.Errorf("in memory %v: %v, %v", f.resident, got, lookup)
		}
	}
	f.resident = true
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, lookup := l.Find(is, h); lookup != keydir.LookupRetry {
		t.Errorf("%v after Close", lookup)
	}
}
