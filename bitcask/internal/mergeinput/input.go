package mergeinput

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/kway"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Environment is what inputs know of their store.
type Environment struct {
	FS       vfs.FS
	Dir      string
	ReadOnly bool
	NoHints  bool
	Logger   *slog.Logger
	Seed     keydir.Seed
}

// Input is a segment that a merge reads: its entries from its hint, so that
// dead records cost a read of some ten bytes and no more, or none at all where all are
// dead, and the records worth copying from the data. Without a good hint the
// entries come from the data too.
type Input struct {
	Env     *Environment
	Segment *segment.Segment
	Number  uint32

	// What entries come from.
	hint       *segment.HintReader
	block      []byte // of the hint, not yet parsed
	context    segment.HintContext
	Frames     *segment.Frames       // in place of the hint
	found      []format.Entry        // of the frames, not yet taken
	Entry      format.Entry          // the one at hand
	maxSeq     uint64                // of the entries taken so far
	unreported int                   // bytes read but not yet charged to the throttle
	Read       func(bytes int) error // is charged with the bytes read; its error ends the merge

	// What a scan found, of strings and deadlines.
	ScanDecided bool // whether to make one has been decided
	Scanned     bool // there is one
	Live        liveBitmap

	Records RecordReader
}

// errDead says, of an input just opened, that nothing in it is live. It takes no more than the head of its hint and a
// scan to know.
var errDead = errors.New("nothing is live")

// open begins with the hint if there is one that fits.
func (in *Input) open() {
	if !in.Env.NoHints {
		if hs, err := segment.OpenHint(in.Env.FS, in.Env.Dir, in.Segment); err == nil && hs.Park() == nil { // there may be many inputs
			in.hint = hs
			return
		}
	}
	in.Frames = segment.NewFrames(in.Segment)
}

// Next makes the next entry the one at hand; io.EOF at the end, errDead in place of the first.
func (in *Input) Next() error {
	if in.hint == nil && in.Frames == nil {
		in.open()
		if in.Scanned && in.Live.n == 0 && in.hint != nil && in.hint.Plain {
			in.Live = liveBitmap{}
			if err := in.closeHint(); err != nil {
				return err
			}
			return errDead
		}
	}
	if n := in.unreported; n > 0 {
		in.unreported = 0
		if err := in.Read(n); err != nil {
			return err
		}
	}
	if in.hint != nil {
		err := in.nextHinted()
		if err == nil || err == io.EOF {
			return err
		}
		// Damaged, or of a newer version: the data says it all, from the next entry on.
		in.Env.Logger.Warn("hint not used", "file", format.HintName(in.Segment.ID), "err", err)
		if !errors.Is(err, failure.ErrVersion) {
			in.removeHint()
		}
		if err := in.closeHint(); err != nil {
			return err
		}
		in.Frames = segment.NewFrames(in.Segment)
	}
	for {
		if err := in.nextScanned(); err != nil {
			return err
		}
		if in.Entry.Seq > in.maxSeq {
			in.maxSeq = in.Entry.Seq
			return nil
		}
	}
}

func (in *Input) nextHinted() error {
	for len(in.block) == 0 {
		var err error
		if in.block, err = in.hint.NextBlock(); err != nil {
			return err
		}
		in.context.Begin()
		in.unreported += len(in.block)
	}
	e, n, err := in.context.Next(in.block)
	if err == nil && (e.Seq <= in.maxSeq || !in.hint.Fits(&e)) {
		err = segment.ErrHint
	}
	if err != nil {
		return err
	}
	in.Entry, in.maxSeq = e, e.Seq
	in.block = in.block[n:]
	return nil
}

func (in *Input) nextScanned() error {
	for len(in.found) == 0 {
		from := in.Frames.Pos
		found, err := in.Frames.Next()
		var bad *segment.BadFrame
		if errors.As(err, &bad) {
			return &failure.CorruptError{File: in.Segment.Name, Offset: bad.At, Reason: bad.Reason}
		}
		if err != nil {
			return err
		}
		in.unreported += int(in.Frames.Pos - from)
		in.found = found
	}
	in.Entry = in.found[0]
	in.found = in.found[1:]
	return nil
}

// Blame says which input could not be read, unless the error says so itself, or
// is about none.
func (in *Input) Blame(err error) error {
	if end, bad := (Stopped{}), (*failure.CorruptError)(nil); err == nil || errors.As(err, &end) || errors.As(err, &bad) {
		return err
	}
	return &failure.SegmentError{File: in.Segment.Name, Err: err}
}

// Close releases the hint and all memory.
func (in *Input) Close() error {
	in.Frames, in.found, in.Live, in.context = nil, nil, liveBitmap{}, segment.HintContext{}
	in.Records.Buf, in.Records.list = nil, nil
	return in.closeHint()
}

// removeHint removes a hint that is no good, so that the next Open does not read it again without a result. It only
// saves time: a failure is no reason to stop.
func (in *Input) removeHint() {
	if in.Env.ReadOnly {
		return
	}
	name := format.HintName(in.Segment.ID)
	if err := in.Env.FS.Remove(filepath.Join(in.Env.Dir, name)); err != nil {
		in.Env.Logger.Warn("bad hint not removed", "file", name, "err", err)
	}
}

func (in *Input) closeHint() error {
	hint := in.hint
	in.hint, in.block = nil, nil
	if hint == nil {
		return nil
	}
	return hint.Close()
}

// Inputs yields the entries of many segments in order of sequence, with as
// few of them open at a time as the order allows.
type Inputs struct {
	ScanLive func([]*Input) error // finds, before an input is opened, what is live in it and in those after it
	All      []*Input             // by lowest sequence; an input's number is its place here
	waiting  []*Input             // the end of all: not yet open
	stay     []*Input             // the end of all: not yet spent
	open     kway.Heap[*Input]
	consumed bool     // the present entry of the first has been returned
	Dead     []*Input // skipped since the caller's last check
}

func New(env *Environment, list []*segment.Segment, read func(bytes int) error) *Inputs {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *segment.Segment) int {
		if a.Footer.MinSeq < b.Footer.MinSeq {
			return -1
		}
		return 1
	})
	q := new(Inputs)
	for i, sg := range list {
		q.All = append(q.All, &Input{Env: env, Segment: sg, Number: uint32(i), Read: read, Records: NewRecordReader(env.Seed, sg, read)})
	}
	q.waiting, q.stay = q.All, q.All
	return q
}

// Next returns the entry with the lowest sequence that has not been returned yet, valid until the
// next call, and its input; io.EOF at the end. I3: so sequences ascend within the output, and a
// copy keeps its own.
func (q *Inputs) Next() (*Input, error) {
	if q.consumed {
		q.consumed = false
		in, _ := q.open.First()
		if err := in.Next(); err == io.EOF {
			q.open.Drop()
			if err := in.missingEntry(); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, in.Blame(err)
		} else {
			q.open.Advance(in.Entry.Seq)
		}
	}
	for len(q.waiting) > 0 && q.open.Due(q.waiting[0].Segment.Footer.MinSeq) {
		in := q.waiting[0]
		if !in.ScanDecided {
			if err := q.ScanLive(q.waiting); err != nil {
				return nil, err
			}
		}
		q.waiting = q.waiting[1:]
		switch err := in.Next(); {
		case err == nil:
			q.open.Push(in, in.Entry.Seq)
		case err == errDead:
			q.Dead = append(q.Dead, in)
		case err != io.EOF:
			return nil, in.Blame(err)
		default:
			if err := in.missingEntry(); err != nil {
				return nil, err
			}
		}
	}
	if q.open.Len() == 0 {
		return nil, io.EOF
	}
	q.consumed = true
	in, _ := q.open.First()
	return in, nil
}

// Releasable removes and returns the segments that need no more reading once all entries below seq
// have been processed. A tombstone may have been dropped because what it hides is in an input too:
// so whatever stays has only higher sequences than what goes.
func (q *Inputs) Releasable(seq uint64) (gone []*Input) {
	n := 0
	var highest uint64
	for i, in := range q.stay {
		if highest = max(highest, in.Segment.Footer.MaxSeq); highest >= seq {
			break
		}
		if i+1 == len(q.stay) || highest < q.stay[i+1].Segment.Footer.MinSeq {
			n = i + 1
		}
	}
	gone, q.stay = q.stay[:n], q.stay[n:]
	return gone
}

// Close closes what is still open.
func (q *Inputs) Close() error {
	var errs []error
	for _, in := range q.All {
		errs = append(errs, in.Close())
	}
	return errors.Join(errs...)
}

// Loc is where the keydir has an entry if it is live.
func (in *Input) Loc(x *BatchEntry) keydir.Loc { return keydir.MakeLoc(in.Segment.ID, x.At, x.Size) }

// Stopped is an error that ends a rewrite and is about none of its inputs.
type Stopped struct{ error }

func (s Stopped) Unwrap() error { return s.error }

// NewStopped is the error of a rewrite that ends for a reason that is about none of its inputs.
func NewStopped(err error) error { return Stopped{err} }
