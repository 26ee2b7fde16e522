package bitcask

import (
	"container/heap"
	"errors"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// input is a segment that a merge reads: its entries from its hint, so that
// dead records cost a look at some ten bytes and no more, or none at all where all are
// dead, and the records worth copying from the data. Without a good hint the
// entries come from the data too.
type input struct {
	s      *Store
	sg     *segment.Segment
	number uint32

	// What entries come from.
	hint       *segment.HintReader
	block      []byte // of the hint, not yet parsed
	context    segment.HintContext
	frames     *segment.Frames       // in place of the hint
	found      []format.Entry        // of the frames, not yet taken
	entry      format.Entry          // the one at hand
	maxSeq     uint64                // of the entries taken so far
	unreported int                   // bytes read of which read has not been told yet
	read       func(bytes int) error // is told what has been read; its error ends it all

	// What a scan found, of strings and deadlines.
	scanDecided bool // whether to make one has been decided
	scanned     bool // there is one
	live        liveBitmap

	records recordReader
}

// errDead says, of an input just opened, that nothing in it is live. It takes no more than the head of its hint and a scan to know.
var errDead = errors.New("nothing is live")

// open begins with the hint if there is one that fits.
func (in *input) open() {
	if !in.s.opts.NoHints {
		if hs, err := segment.OpenHint(in.s.opts.FS, in.s.dir, in.sg); err == nil {
			in.hint = hs
			return
		}
	}
	in.frames = segment.NewFrames(in.sg)
}

// next makes the next entry the one at hand; io.EOF at the end, errDead in place of the first.
func (in *input) next() error {
	if in.hint == nil && in.frames == nil {
		in.open()
		if in.scanned && in.live.n == 0 && in.hint != nil && in.hint.Plain {
			in.live = liveBitmap{}
			if err := in.closeHint(); err != nil {
				return err
			}
			return errDead
		}
	}
	if n := in.unreported; n > 0 {
		in.unreported = 0
		if err := in.read(n); err != nil {
			return err
		}
	}
	if in.hint != nil {
		err := in.nextHinted()
		if err == nil || err == io.EOF {
			return err
		}
		// Damaged, or of a newer version: the data says it all, from the next entry on.
		in.s.opts.Logger.Warn("hint not used", "file", format.HintName(in.sg.ID), "err", err)
		if !errors.Is(err, ErrVersion) {
			in.s.removeHint(in.sg)
		}
		if err := in.closeHint(); err != nil {
			return err
		}
		in.frames = segment.NewFrames(in.sg)
	}
	for {
		if err := in.nextScanned(); err != nil {
			return err
		}
		if in.entry.Seq > in.maxSeq {
			in.maxSeq = in.entry.Seq
			return nil
		}
	}
}

func (in *input) nextHinted() error {
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
	in.entry, in.maxSeq = e, e.Seq
	in.block = in.block[n:]
	return nil
}

func (in *input) nextScanned() error {
	for len(in.found) == 0 {
		from := in.frames.Pos
		found, err := in.frames.Next()
		var bad *segment.BadFrame
		if errors.As(err, &bad) {
			return &CorruptError{File: in.sg.Name, Offset: bad.At, Reason: bad.Reason}
		}
		if err != nil {
			return err
		}
		in.unreported += int(in.frames.Pos - from)
		in.found = found
	}
	in.entry = in.found[0]
	in.found = in.found[1:]
	return nil
}

// blame says which input could not be read, unless the error says so itself, or
// is about none.
func (in *input) blame(err error) error {
	if end, bad := (stopped{}), (*CorruptError)(nil); err == nil || errors.As(err, &end) || errors.As(err, &bad) {
		return err
	}
	return &SegmentError{in.sg.Name, err}
}

// close lets go of the hint and of all memory.
func (in *input) close() error {
	in.frames, in.found, in.live, in.context = nil, nil, liveBitmap{}, segment.HintContext{}
	in.records.buf, in.records.list = nil, nil
	return in.closeHint()
}

func (in *input) closeHint() error {
	hint := in.hint
	in.hint, in.block = nil, nil
	if hint == nil {
		return nil
	}
	return hint.Close()
}

// inputs gives out the entries of many segments in order of sequence, with as
// few of them open at a time as the order allows.
type inputs struct {
	scanLive func([]*input) error // is asked, before an input is opened, what is live in it and in those behind it
	all      []*input             // by lowest sequence; an input's number is its place here
	waiting  []*input             // the end of all: not yet open
	stay     []*input             // the end of all: not yet spent
	open     inputHeap
	consumed bool     // the entry at hand of open[0] has been given out
	dead     []*input // passed over since the caller last looked
}

func newInputs(s *Store, list []*segment.Segment, read func(bytes int) error) *inputs {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *segment.Segment) int {
		if a.Footer.MinSeq < b.Footer.MinSeq {
			return -1
		}
		return 1
	})
	q := new(inputs)
	for i, sg := range list {
		q.all = append(q.all, &input{s: s, sg: sg, number: uint32(i), read: read, records: newRecordReader(s, sg, read)})
	}
	q.waiting, q.stay = q.all, q.all
	return q
}

// next returns the entry with the lowest sequence that has not been given out
// yet, valid until it is called again, and the input it is from; io.EOF at the
// end.
func (q *inputs) next() (*input, error) {
	if q.consumed {
		q.consumed = false
		if err := q.open[0].next(); err == io.EOF {
			if err := heap.Pop(&q.open).(*input).missingEntry(); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, q.open[0].blame(err)
		} else if len(q.open) > 1 {
			heap.Fix(&q.open, 0)
		}
	}
	for len(q.waiting) > 0 && (len(q.open) == 0 || q.waiting[0].sg.Footer.MinSeq <= q.open[0].entry.Seq) {
		in := q.waiting[0]
		if !in.scanDecided {
			if err := q.scanLive(q.waiting); err != nil {
				return nil, err
			}
		}
		q.waiting = q.waiting[1:]
		switch err := in.next(); {
		case err == nil:
			heap.Push(&q.open, in)
		case err == errDead:
			q.dead = append(q.dead, in)
		case err != io.EOF:
			return nil, in.blame(err)
		default:
			if err := in.missingEntry(); err != nil {
				return nil, err
			}
		}
	}
	if len(q.open) == 0 {
		return nil, io.EOF
	}
	q.consumed = true
	return q.open[0], nil
}

// releasable takes out and returns the segments that nothing is to be read of any
// more once all entries below seq have been dealt with. A tombstone may have
// been dropped because what it hides is in an input too: so whatever stays has
// only higher sequences than what goes.
func (q *inputs) releasable(seq uint64) (gone []*input) {
	n := 0
	var highest uint64
	for i, in := range q.stay {
		if highest = max(highest, in.sg.Footer.MaxSeq); highest >= seq {
			break
		}
		if i+1 == len(q.stay) || highest < q.stay[i+1].sg.Footer.MinSeq {
			n = i + 1
		}
	}
	gone, q.stay = q.stay[:n], q.stay[n:]
	return gone
}

// close closes what is open.
func (q *inputs) close() error {
	var errs []error
	for _, in := range q.all {
		errs = append(errs, in.close())
	}
	return errors.Join(errs...)
}

// inputHeap orders inputs by the sequence of the entry at hand.
type inputHeap []*input

func (h inputHeap) Len() int           { return len(h) }
func (h inputHeap) Less(i, j int) bool { return h[i].entry.Seq < h[j].entry.Seq }
func (h inputHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *inputHeap) Push(x any)        { *h = append(*h, x.(*input)) }
func (h *inputHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// loc is where the keydir has an entry if it is live.
func (in *input) loc(x *batchEntry) keydir.Loc { return keydir.MakeLoc(in.sg.ID, x.at, x.size) }
