package commitlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// fixture is a log without a store: segments in memory, and the types of the edits that it makes.
type fixture struct {
	commitlog.Log
	fault    *vfstest.Fault
	segments atomic.Pointer[segment.Set]
	mu       sync.Mutex // guards edits
	edits    []byte
	stop     chan struct{}
	work     sync.WaitGroup
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	mem := vfs.NewMem()
	f := &fixture{fault: vfstest.NewFault(mem), stop: make(chan struct{})}
	if err := mem.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	f.segments.Store(new(segment.Set))
	f.Init(commitlog.Environment{
		SegmentSize: func() int64 { return 4 << 10 }, Logger: slog.New(slog.DiscardHandler), Segments: &f.segments, Stop: f.stop,
		LogEdit: func(typ byte, _ []byte) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.edits = append(f.edits, typ)
			return nil
		},
		AddSegment: func() (*segment.Segment, error) {
			all := f.segments.Load()
			sg, err := segment.Create(f.fault, "d", [16]byte{1}, uint32(len(all.All())+1), 0)
			if err == nil {
				f.segments.Store(all.With([]*segment.Segment{sg}, nil))
			}
			return sg, err
		},
		CheckDirectory: f.Err, Unlinked: func(*segment.Segment) bool { return false }, Sealed: func() {},
	})
	if _, err := f.Start(nil, 0, 0); err != nil {
		t.Fatal(err)
	}
	f.work.Go(f.Run)
	return f
}

// end ends the goroutine of the log.
func (f *fixture) end() {
	close(f.stop)
	f.work.Wait()
}

// frame is a commit of puts; values that are long stand out of line.
func frame(key string, values ...[]byte) *commitlog.Frame {
	buf, start := make([]byte, format.FrameHeaderSize), 0
	if len(values) == 1 {
		start = format.FrameHeaderSize - format.FrameSumAt
	}
	f, apart := new(commitlog.Frame), 0
	for i, value := range values {
		f.Records = append(f.Records, len(buf)-start)
		name := fmt.Sprint(key, ".", i)
		buf = format.AppendRecordHeader(buf, format.KindString, keydir.String, -1, 0, len(name), 0, len(value))
		buf = format.AppendName(buf, format.KindString, keydir.String, name, "")
		if len(value) > 100 {
			f.Values = append(f.Values, value)
			apart += len(value)
			continue
		}
		f.Values = append(f.Values, nil)
		buf = append(buf, value...)
	}
	f.Bytes = buf[start:]
	if f.Size = int64(len(f.Bytes) + apart); apart == 0 {
		f.Values = nil
	}
	return f
}

// TestFramesOfManyWriters: their frames follow one another in the segments, whole, with sequence numbers that have no
// gap, each where its writer has been told.
func TestFramesOfManyWriters(t *testing.T) {
	f := newFixture(t)
	short, long := []byte("value"), bytes.Repeat([]byte("long"), 100)
	var mu sync.Mutex
	told := map[string]string{}
	var writers sync.WaitGroup
	const each = 200
	for w := range 4 {
		writers.Go(func() {
			for i := range each {
				key := fmt.Sprint(w, "-", i)
				values := [][][]byte{{short}, {long}, {short, long, short}, {long, short, long}}[i%4]
				sg, _, seq, err := f.Append(frame(key, values...))
				if err == nil && i%10 == 0 {
					err = f.WaitSynced(seq + uint64(len(values)))
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for n := range values {
					told[fmt.Sprint(key, ".", n)] = fmt.Sprintf("%s, sequence %d", sg.Name, seq+uint64(n))
				}
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	f.end()
	next := uint64(1)
	for _, sg := range f.segments.Load().All() {
		fr := segment.NewFrames(sg)
		for {
			entries, err := fr.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(sg.Name, err)
			}
			for i := range entries {
				e := &entries[i]
				if got := fmt.Sprintf("%s, sequence %d", sg.Name, e.Seq); e.Seq != next || told[string(e.Key)] != got {
					t.Fatalf("%s: %s, want sequence %d; its writer has been told %s", e.Key, got, next, told[string(e.Key)])
				}
				next++
			}
		}
	}
	if want := uint64(4*each*2 + 1); next != want || f.Next() != want || f.Stats().Sequence != want-1 {
		t.Errorf("next sequence %d, the log says %d and %+v, want %d", next, f.Next(), f.Stats(), want)
	}
	sealed := len(f.segments.Load().All()) - 2 // one is active, one ready
	if got := bytes.Count(f.edits, []byte{manifest.EditSeal}); got < sealed || sealed < 10 {
		t.Errorf("%d segments sealed, want %d", got, sealed)
	}
}

// TestFailureStays: a log that has failed takes no more commits, and says why.
func TestFailureStays(t *testing.T) {
	f := newFixture(t)
	defer f.end()
	if _, _, _, err := f.Append(frame("a", []byte("1"))); err != nil {
		t.Fatal(err)
	}
	f.fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Err: syscall.EIO})
	for range 2 {
		if _, _, _, err := f.Append(frame("b", []byte("2"))); !errors.Is(err, failure.ErrFailed) || !errors.Is(err, syscall.EIO) {
			t.Errorf("append: %v", err)
		}
	}
	if _, _, err := f.Cut(nil); !errors.Is(err, failure.ErrFailed) || !errors.Is(f.Err(), syscall.EIO) {
		t.Errorf("cut: %v, cause %v", err, f.Err())
	}
	if list, next := f.Segments(); next != 2 || list[0].Foot.Records != 1 {
		t.Errorf("next sequence %d, %d records", next, list[0].Foot.Records)
	}
}
