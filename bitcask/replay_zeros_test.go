package bitcask_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// lastFrame is the offset of the frame of the last key of a killed store.
func (x *tornEnd) lastFrame(keys int) int {
	at := strings.LastIndex(string(x.state[firstData]), fmt.Sprintf("string:key%d", keys-1))
	return at - 28 // 24 bytes of the frame's header, 4 of the record's after its checksum
}

// opens wants a store to open, for reading and then for writing, with all keys but so many, and after that to end at
// its frames.
func (x *tornEnd) opens(what string, mem *vfs.Mem, missing, torn, end int) {
	x.Helper()
	for _, readOnly := range []bool{true, false} {
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{ReadOnly: readOnly}, seam.Options{FS: mem}))
		if err != nil {
			x.Errorf("%s: %v", what, err)
			return
		}
		if r := s.Recovery(); r.TornBytes != int64(torn) || len(r.Truncated) != min(torn, 1) {
			x.Errorf("%s, read only %v: %+v", what, readOnly, r)
		}
		if got := s.Len(0); got != len(x.holds)-missing {
			x.Errorf("%s, read only %v: %d keys, want %d", what, readOnly, got, len(x.holds)-missing)
		}
		_, err = s.Check(context.Background(), func(f bitcask.Finding) { x.Errorf("%s, read only %v: %v", what, readOnly, f) })
		x.must(err)
		x.must(s.Close())
	}
	if got := len(snapshot(x.T, mem, "d")[firstData]); got != end {
		x.Errorf("%s: the file is %d bytes long afterwards, want %d", what, got, end)
	}
}

// Zeros after the last frame, which a killed writer leaves, are no torn tail and no damage, and a repair misses
// nothing.
func TestZerosAfterTheLastFrame(t *testing.T) {
	const keys = 20
	x := killed(t, bitcask.SyncNone, keys, nil)
	log := frames(x.state[firstData])
	for _, unit := range []int{512, 2 << 10, 16 << 10, 64 << 10, 128 << 10} {
		for _, sameBoot := range []bool{true, false} {
			what := fmt.Sprintf("zeros up to a multiple of %d, same boot %v", unit, sameBoot)
			mem, _ := x.mem(firstData, reserved(log, unit), sameBoot)
			if r := x.salvaged(what, mem, 0); r.Torn != 0 || len(r.Lost) != 0 {
				t.Errorf("%s: salvage: %+v", what, r)
			}
			x.opens(what, mem, 0, 0, len(log))
		}
	}
	// No writer leaves as many as that, or a file of such a length, where no power was cut.
	for _, b := range [][]byte{reserved(log, 200<<10), reserved(log, 16<<10)[:16<<10-1], append(reserved(log, 16<<10), 0)} {
		mem, state := x.mem(firstData, b, true)
		x.refused(fmt.Sprintf("a file of %d bytes, %d of them frames", len(b), len(log)), mem, state, firstData)
	}
}

// reserved is a file with zeros up to a multiple of a number of bytes.
func reserved(b []byte, unit int) []byte {
	return append(slices.Clone(b), make([]byte, unit-len(b)%unit)...)
}

// A commit that was being copied into zeros when the process was killed is there up to some byte, and zeros follow.
// That is a torn tail, at each byte; anything else that is not whole is damage.
func TestTornCopies(t *testing.T) {
	const keys = 20
	x := killed(t, bitcask.SyncNone, keys, nil)
	log, at := frames(x.state[firstData]), x.lastFrame(keys)
	for _, sameBoot := range []bool{true, false} {
		for cut := at + 1; cut < len(log); cut++ {
			b := reserved(log[:cut], 16<<10)
			mem, _ := x.mem(firstData, b, sameBoot)
			torn := len(strings.TrimRight(string(b[at:]), "\x00"))
			x.opens(fmt.Sprintf("cut at %d of %d..%d, same boot %v", cut, at, len(log), sameBoot), mem, 1, torn, at)
		}
	}
	for from := 40; from < at; from += 11 { // commits follow that verify
		b := slices.Clone(log)
		clear(b[from:min(from+100, at)])
		mem, state := x.mem(firstData, reserved(b, 16<<10), true)
		x.refused(fmt.Sprintf("zeros from %d on, before the commit at %d", from, at), mem, state, firstData)
	}
	for i := at; i < len(log); i++ { // no zeros after it
		b := reserved(log, 16<<10)
		b[i] ^= 0x81
		if b[len(log)-1] == 0 {
			continue
		}
		mem, state := x.mem(firstData, b, true)
		x.refused(fmt.Sprintf("two bits flipped at %d of %d..%d", i, at, len(log)), mem, state, firstData)
	}
	// One bit in the zeros is reported; anything more there is damage.
	for i := len(log); i < len(log)+2000; i += 7 {
		b := reserved(log, 16<<10)
		b[i] ^= 4
		mem, _ := x.mem(firstData, b, true)
		x.opens(fmt.Sprintf("a bit %d bytes after the end", i-len(log)), mem, 0, i-len(log)+1, len(log))
		b[i+24] ^= 1
		mem, state := x.mem(firstData, b, true)
		x.refused(fmt.Sprintf("two bits %d bytes after the end", i-len(log)), mem, state, firstData)
	}
}

// The file of a segment that is being sealed becomes shorter while a reader reads it: it loses its zeros, but no
// commit.
func TestReaderWhileZerosAreTruncated(t *testing.T) {
	x := killed(t, bitcask.SyncNone, 20, nil)
	log := frames(x.state[firstData])
	for skip := range 6 { // which of the reader's reads comes after it
		mem, _ := x.mem(firstData, reserved(log, 64<<10), true)
		fault, done := vfstest.NewFault(mem), false
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRead}, Path: firstData, Skip: skip, Do: func(vfstest.Event) {
			f, err := mem.Open("d/"+firstData, vfs.ReadWrite)
			x.must(err)
			x.must(f.Truncate(int64(len(log))))
			x.must(f.Close())
			done = true
		}})
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: fault}))
		if err != nil || s.Len(0) != len(x.holds) || s.Recovery().TornBytes != 0 {
			t.Errorf("truncated before read %d: %v", skip, err)
		}
		if err == nil {
			x.must(s.Close())
		}
		if !done {
			if skip < 2 {
				t.Errorf("the reader has made %d reads of the segment", skip)
			}
			break
		}
	}
}
