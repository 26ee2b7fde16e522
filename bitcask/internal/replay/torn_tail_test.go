package replay

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// tail is a log of unsealed segments whose frames have one record each. Its methods write it and damage it.
type tail struct {
	t      *testing.T
	fs     vfs.FS
	man    manifest.Manifest
	starts map[uint32][]int64 // of the frames; the last is the end
}

func newTail(t *testing.T) *tail {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	return &tail{t: t, fs: mem, starts: map[uint32][]int64{}}
}

// write makes a segment with n frames. Their sequence numbers begin at seq, and each frame states that the log was on disk up to
// synced.
func (x *tail) write(id uint32, seq uint64, n int, synced int64) *tail {
	sg, err := segment.Create(x.fs, "d", [16]byte{1}, id, 0)
	at := int64(format.SegmentHeaderSize)
	for i := 0; i < n && err == nil; i++ {
		x.starts[id] = append(x.starts[id], at)
		frame := make([]byte, format.FrameSumAt)
		frame = format.AppendRecord(frame, format.KindString, keydir.String, -1, 0, "key", "", []byte(strings.Repeat("value", 10)))
		format.FinishFrame(frame, format.FrameHeader{Seq: seq + uint64(i), Synced: uint32(min(at, synced))}, sg.Seed, uint32(at), []int{format.FrameSumAt}, nil)
		_, err = sg.File.WriteAt(frame, at)
		at += int64(len(frame))
	}
	x.starts[id] = append(x.starts[id], at)
	if err = errors.Join(err, sg.Close()); err != nil {
		x.t.Fatal(err)
	}
	return x
}

// change overwrites a segment with bytes from an offset on, or cuts it off there.
func (x *tail) change(id uint32, at int64, bytes []byte) *tail {
	f, err := x.fs.Open(filepath.Join("d", format.DataName(id)), vfs.ReadWrite)
	if err == nil {
		if bytes == nil {
			err = f.Truncate(at)
		} else {
			_, err = f.WriteAt(bytes, at)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return x
}

// judged reads the segments as Open does and returns where the frames of each end, -1 for a segment that is dropped, or
// the error.
func (x *tail) judged() (ends map[uint32]int64, err error) {
	env := &Environment{Manifest: &x.man}
	for id := uint32(1); x.starts[id] != nil; id++ {
		sg, err := segment.Open(x.fs, "d", [16]byte{1}, id, vfs.ReadOnly)
		if err != nil {
			x.t.Fatal(err)
		}
		defer sg.Close()
		env.Tail = append(env.Tail, sg)
	}
	ends = map[uint32]int64{}
	for _, sg := range env.Tail {
		if ends[sg.ID] = -1; sg.Dropped {
			continue
		}
		fr := segment.NewFrames(sg)
		for err == nil {
			_, err = fr.Next()
		}
		var bad *segment.BadFrame
		if err != io.EOF && !errors.As(err, &bad) {
			x.t.Fatal(err)
		}
		if err = env.judge(fr, bad); err != nil {
			return ends, err
		}
		ends[sg.ID] = sg.FramesEnd
	}
	return ends, nil
}

// TestJudge: the end of the log is whole, or a torn tail, or damage. A process that was killed has left all that it had
// written; after a power cut anything that was not synced may be missing, in any order.
func TestJudge(t *testing.T) {
	zeros := func(n int64) []byte { return make([]byte, n) }
	first := int64(format.SegmentHeaderSize)
	for name, c := range map[string]struct {
		log        func(x *tail)
		cut, after string // of a power cut and of a kill: which frames of which segments are there, or the reason
	}{
		"whole": {func(x *tail) { x.write(1, 1, 3, first) }, "3", "3"},
		"a frame that was cut off": {func(x *tail) {
			x.write(1, 1, 3, first)
			x.change(1, x.starts[1][3]-5, nil)
		}, "2", "2"},
		"a flipped bit in the last frame": {func(x *tail) {
			x.write(1, 1, 3, first)
			x.change(1, x.starts[1][3]-1, []byte{'e' ^ 1})
		}, "for one flipped bit", "for one flipped bit"},
		"a frame is missing, and one after it is there": {func(x *tail) {
			x.write(1, 1, 3, first)
			x.change(1, x.starts[1][1], zeros(x.starts[1][2]-x.starts[1][1]))
		}, "1", "before commits that were written after it"},
		"the same, and the later one says that it was on disk": {func(x *tail) {
			x.write(1, 1, 3, first+200)
			x.change(1, x.starts[1][1], zeros(x.starts[1][2]-x.starts[1][1]))
		}, "before data written once this was on disk", "before data written once this was on disk"},
		"less than the last clean close had": {func(x *tail) {
			x.write(1, 1, 3, first)
			x.man.ClosedID, x.man.ClosedLen = 1, uint64(x.starts[1][3])
			x.change(1, x.starts[1][2], nil)
		}, "before the end of the last clean close", "before the end of the last clean close"},
		"a segment that continues": {func(x *tail) { x.write(1, 1, 2, first).write(2, 3, 2, first) }, "2 2", "2 2"},
		"a segment after one whose end is missing": {func(x *tail) {
			x.write(1, 1, 3, first).write(2, 4, 2, first)
			x.change(1, x.starts[1][2], nil)
		}, "2 dropped", "which was written after it"},
		"the same, and the later one was synced": {func(x *tail) {
			x.write(1, 1, 3, first).write(2, 4, 2, first+10)
			x.change(1, x.starts[1][2], nil)
		}, "which was written once this was on disk", "which was written once this was on disk"},
	} {
		for how, want := range map[string]string{"power cut": c.cut, "kill": c.after} {
			x := newTail(t)
			c.log(x)
			if how == "kill" {
				x.man.Booted, x.man.Boot, x.man.Here = true, vfs.BootID{1}, vfs.BootID{1}
			}
			ends, err := x.judged()
			if corrupt := (*failure.CorruptError)(nil); errors.As(err, &corrupt) {
				if !strings.Contains(corrupt.Reason, want) {
					t.Errorf("%s, %s: %v, want %s", name, how, err, want)
				}
				continue
			}
			if got := x.there(ends); err != nil || got != want {
				t.Errorf("%s, %s: %s, %v; want %s", name, how, got, err, want)
			}
		}
	}
}

// there says how many frames of each segment are taken.
func (x *tail) there(ends map[uint32]int64) string {
	var text []string
	for id := uint32(1); x.starts[id] != nil; id++ {
		n := "dropped"
		for i, at := range x.starts[id] {
			if at == ends[id] {
				n = string(rune('0' + i))
			}
		}
		text = append(text, n)
	}
	return strings.Join(text, " ")
}
