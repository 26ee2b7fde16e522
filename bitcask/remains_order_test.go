package bitcask_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
)

// Two power cuts in a row, with nothing in between that was ever synced, leave two files of remains that state the same
// place, the same length and the same sequence. Both are read, the second one after the first.
func TestRemainsOfOnePlace(t *testing.T) {
	const file = "000000001.data"
	x := &tornEnd{T: t, holds: map[string]string{}}
	mem := vfs.NewMem()
	options := func() *bitcask.Options {
		return seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: mem, NoIndex: true, NoHints: true})
	}
	s, err := bitcask.Open("d", options())
	x.must(err)
	x.must(s.Put("first", []byte("text")))
	x.must(s.Close())
	state, err := crash.ReadState(mem, "d")
	x.must(err)
	end := len(state[file])
	size := int64(0)
	for _, sitting := range []string{"1", "2"} {
		s, err := bitcask.Open("d", options())
		x.must(err)
		for i := 0; i < 100 && size == 0 || s.Segments()[0].Bytes < size; i++ {
			x.must(s.Put(fmt.Sprintf("of%s-%03d", sitting, i), []byte(strings.Repeat(sitting, 40))))
		}
		size = s.Segments()[0].Bytes
		x.must(s.Put("both", []byte(sitting)))
		mem = hole(t, mem, file, end-1024) // the first sector after it, or the next
		x.must(s.Close())
	}
	s, err = bitcask.Open("d", options())
	x.must(err)
	if r := s.Recovery(); len(r.Truncated) != 1 || r.Truncated[0].Kept != "000000001.torn-494.2" {
		t.Errorf("%+v", r)
	}
	x.must(s.Close())
	_, err = repair.Salvage(context.Background(), "d", "out", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	x.must(err)
	s, err = bitcask.Open("out", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	x.must(err)
	for _, sitting := range []string{"1", "2"} {
		there := 0
		for i := range 100 {
			if _, err := s.Get(fmt.Sprintf("of%s-%03d", sitting, i)); err == nil {
				there++
			}
		}
		if there < 70 {
			t.Errorf("of sitting %s there are %d keys", sitting, there)
		}
	}
	if got, err := s.Get("both"); string(got) != "2" {
		t.Errorf("both is %q, %v", got, err)
	}
	x.must(s.Close())
}
