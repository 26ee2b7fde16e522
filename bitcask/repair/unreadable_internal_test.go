package repair

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
)

// A badFile fails to read a part of itself, and reads nothing of a range that it is in.
type badFile struct {
	vfs.File
	from, to int64
}

func (f *badFile) ReadAt(p []byte, off int64) (int, error) {
	if off < f.to && f.from < off+int64(len(p)) {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

// TestUnreadableBlocks: all but the blocks that fail is read, they are zeros and remembered once, and the end of the
// file is where it was.
func TestUnreadableBlocks(t *testing.T) {
	inner, err := vfs.NewMem().Open("f", vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("intact. "), 3000)
	if _, err := inner.WriteAt(want, 0); err != nil {
		t.Fatal(err)
	}
	f := &unreadable{File: &badFile{inner, 9000, 9001}, ctx: t.Context()}
	clear(want[8192:12288])
	for _, off := range []int64{0, 5, 8191, 8999, 20000} {
		got := make([]byte, len(want))
		n, err := f.ReadAt(got, off)
		if wanted := want[off:]; off > 0 && err != io.EOF || off == 0 && err != nil || !bytes.Equal(got[:n], wanted) {
			t.Errorf("from %d: %d bytes, %v", off, n, err)
		}
	}
	if len(f.holes) != 1 || f.holes[0].from != 8192 || f.holes[0].to != 12288 || !errors.Is(f.holes[0].err, syscall.EIO) {
		t.Errorf("%+v", f.holes)
	}
	if !f.anyFrom(12287) || f.anyFrom(12288) || f.reason(0, 8192, "other") != "other" {
		t.Error("what is lost is somewhere else")
	}
}
