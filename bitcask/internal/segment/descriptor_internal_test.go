package segment

import (
	"encoding/binary"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// parkedFile is a file without a descriptor of which no page is in memory.
type parkedFile struct {
	vfs.File
	err error // of opening it
}

func (f *parkedFile) ReadAt([]byte, int64) (int, error)            { return 0, f.err }
func (f *parkedFile) Map(int) ([]byte, error)                      { return nil, errors.New("mapped already") }
func (f *parkedFile) Unmap([]byte) error                           { return nil }
func (f *parkedFile) Resident(_ []byte, _ *vfs.ResidentPages) bool { return false }

// TestReadWithoutDescriptor: a record that is not in memory is read from a descriptor of the moment; where there is none
// to be had, it is read through the mapping. Any other failure of the file stays one.
func TestReadWithoutDescriptor(t *testing.T) {
	const at = format.SegmentHeaderSize
	rec := format.AppendRecord(make([]byte, at), format.KindString, keydir.String, -1, 0, "key", "", []byte("value"))
	for _, test := range []struct {
		err  error
		read bool
	}{{syscall.EMFILE, true}, {syscall.ENFILE, true}, {syscall.EIO, false}, {io.EOF, false}} {
		sg := New([16]byte{1}, 1, &parkedFile{err: test.err})
		sg.Data = rec
		sg.Size.Store(int64(len(rec)))
		sg.Residency.init(len(rec))
		binary.LittleEndian.PutUint32(rec[at:], sg.Seed.Sum(at, rec[at+format.RecordCRCSize:]))
		q := Query{Kind: format.KindString, Type: keydir.String, Key: "key"}
		loc := keydir.MakeLoc(1, at, uint32(len(rec)-at))
		value, _, match, err := sg.Get(nil, loc, &q, false)
		if test.read != (err == nil) || test.read && (!match || string(value) != "value") {
			t.Errorf("%v: read %q, %v, %v", test.err, value, match, err)
		}
		if same, err := sg.IsString(loc, 0, "key", nil); same != test.read || test.read != (err == nil) {
			t.Errorf("%v: is the string: %v, %v", test.err, same, err)
		}
		sg.Data = nil
		if _, _, _, err := sg.Get(nil, loc, &q, false); err == nil {
			t.Errorf("%v: read without a mapping", test.err)
		}
	}
}
