package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// session is the work on one generation. One goroutine reads the log (loop), one puts objects of it (putLogs), and one
// makes a base now and then.
type session struct {
	*Archiver
	generation id // of no kind
	feed       *feed.Feed
	last       uint64   // of the last commit that was read
	cur        contents // commits that were read and are in no object yet

	marks  []mark // whose commits have not all been read
	marked uint64 // sequence of the last one
	synced uint64 // up to there all is on the disk

	queue      chan contents
	compaction compaction  // of putLogs
	compacting atomic.Bool // one runs
	replaced   compaction  // what it has put in the place of, and is to delete; without bytes

	// Guarded by mu.
	base      id        // the newest one; its kind is 0 if there is none
	baseSize  int64     // of its data
	since     int64     // bytes of the logs after it
	basing    bool      // one is being made
	baseAfter time.Time // no base is tried before
	baseTries int       // how many have failed since the last one, up to 8
}

// errOther says that the store's log is not the one that was archived.
var errOther = errors.New("the store has not the commits that were archived: it is an older copy, or another one")

// session archives until the archiver ends, which is no error, or an error.
func (a *Archiver) session(parent context.Context) (err error) {
	ctx, cancel := context.WithCancel(parent)
	s := &session{Archiver: a, queue: make(chan contents, 2)}
	if err := s.begin(ctx); err != nil {
		cancel()
		return errors.Join(err, s.close())
	}
	a.failed("log", nil)
	var work sync.WaitGroup
	var putErr error
	work.Go(func() {
		if putErr = s.putLogs(ctx, &work); putErr != nil {
			cancel() // the loop ends, too
		}
	})
	err = s.loop(ctx, &work)
	close(s.queue)
	if err != nil {
		cancel()
	}
	work.Wait()
	cancel()
	return errors.Join(err, putErr, s.close())
}

func (s *session) close() error {
	if s.feed == nil {
		return nil
	}
	return s.feed.Close()
}

// ofStore are the generations of the store, oldest first, and the number of the next one.
func (s *session) ofStore(ctx context.Context) (own []*inventory, next uint32, err error) {
	all, err := generations(ctx, s.o.To)
	next = 1
	for _, inv := range all {
		next = max(next, inv.generation+1)
		if inv.store == s.s.StoreID() {
			own = append(own, inv)
		}
	}
	return own, next, err
}

// begin goes on with the newest generation of the store, or begins a new one.
func (s *session) begin(ctx context.Context) error {
	own, next, err := s.ofStore(ctx)
	if err != nil {
		return err
	}
	defer func() { s.count(own) }()
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if n := len(own); n > 0 && !broken && len(own[n-1].logs) > 0 { // else it has nothing to compare with the store
		at, err := s.lastCommit(ctx, own[n-1])
		if err == nil {
			return s.resume(ctx, own[n-1], at)
		}
		if !failure.IsDamage(err) {
			return err
		}
		s.o.Logger.Warn("the end of the archive is damaged: it begins again with a base", "cause", err)
	}
	s.generation = id{generation: next, store: s.s.StoreID()}
	if s.feed, err = s.s.Frames(ctx, bitcask.FeedOptions{Newest: 1}); err != nil {
		return err
	}
	s.mu.Lock()
	s.broken = false
	s.status.Generation, s.status.Sequence = generationName(next, s.generation.store), 0
	s.mu.Unlock()
	return nil
}

// resume goes on with a generation, if its last commit is the one that the store has in its place.
func (s *session) resume(ctx context.Context, inv *inventory, at place) (err error) {
	s.generation = inv.id
	if s.feed, err = s.s.Frames(ctx, bitcask.FeedOptions{After: at.first - 1}); err != nil {
		return err
	}
	s.note()
	c, err := s.feed.Next(ctx)
	if err == io.EOF {
		return fmt.Errorf("the commit with sequence %d is not known to be on the disk yet", at.first)
	}
	if err != nil {
		return err
	}
	fr := s.feed.Frame()
	if c.First != at.first || fr.Segment.ID != at.segment || fr.Offset != at.offset || !bytes.Equal(fr.Bytes, at.bytes) {
		return errOther
	}
	s.last = c.Last
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Generation, s.status.Sequence, s.since = inv.name(), s.last, inv.since
	if n := len(inv.bases); n > 0 {
		s.base = inv.bases[n-1]
		s.baseSize = inv.sizes[dataOf(s.base)]
	}
	if to := inv.logs[len(inv.logs)-1].to; to != 0 {
		s.status.Time = time.UnixMilli(to)
	}
	return nil
}

// place is where a commit stands.
type place struct {
	first   uint64
	segment uint32
	offset  int64
	bytes   []byte
}

// lastCommit is the last one of a generation.
func (s *session) lastCommit(ctx context.Context, inv *inventory) (p place, err error) {
	o := inv.logs[len(inv.logs)-1]
	err = readLog(ctx, s.o.To, o, &visitor{frames: func(header []byte, offset int64, frames *io.LimitedReader) error {
		b, err := io.ReadAll(frames)
		if err != nil {
			return err
		}
		segment := binary.LittleEndian.Uint32(header[12:])
		seed := format.NewChecksumSeed(o.store, segment)
		for len(b) > 0 {
			h, ok := format.ParseFrameHeader(b, seed, uint32(offset), int64(len(b)))
			if !ok {
				return &failure.CorruptError{File: o.name(), Reason: fmt.Sprintf("no frame for offset %d of segment %d", offset, segment)}
			}
			p = place{h.Seq, segment, offset, b[:h.Size]}
			b, offset = b[h.Size:], offset+int64(h.Size)
		}
		return nil
	}})
	if err == nil && p.first == 0 {
		err = &failure.CorruptError{File: o.name(), Reason: "it has no commit"}
	}
	return p, err
}

// loop reads the log until the archiver ends.
func (s *session) loop(ctx context.Context, work *sync.WaitGroup) error {
	tick := time.NewTicker(s.o.Every / 10)
	defer tick.Stop()
	marked := time.Time{}
	for {
		ending := false
		select {
		case <-ctx.Done():
			return nil // putLogs says why
		case <-s.end:
			ending = true
		case <-tick.C:
		}
		if ending || time.Since(marked) >= s.o.Every {
			s.note()
			marked = time.Now()
		}
		if err := s.read(ctx, ending); err != nil {
			return err
		}
		if ending {
			return nil
		}
		s.baseIfDue(ctx, work)
	}
}

// note marks how far the log is, and has all of that on the disk. A store that refuses writes cannot sync, and nothing
// more of it is archived than is on the disk for sure.
func (s *session) note() {
	seq := s.s.Sequence()
	if seq > s.marked {
		s.marks, s.marked = append(s.marks, mark{max(s.o.now(), 1), seq}), seq
		if len(s.marks) > maxMarks {
			n := 0
			s.marks = slices.DeleteFunc(s.marks, func(m mark) bool { n++; return n%2 == 0 && m.sequence != seq })
		}
	}
	if seq > s.synced && s.s.Sync() == nil {
		s.synced = seq
		s.feed.Synced(seq)
	}
}

// read reads the commits that have come, into objects that end with a mark. While the archive is slow it reads none, and
// keeps the segments. At the end it waits for the archive instead.
func (s *session) read(ctx context.Context, ending bool) error {
	for {
		if len(s.queue) > 0 && !ending {
			return s.feed.Keep(ctx, s.o.Backlog)
		}
		c, err := s.feed.Next(ctx)
		if err == io.EOF {
			if err := s.cut(ctx); err != nil || !ending || len(s.cur.buf) == 0 {
				return err
			}
			return s.push(ctx)
		}
		if err != nil {
			return err
		}
		if len(s.marks) > 0 && s.marks[0].sequence < c.First {
			if err := s.cut(ctx); err != nil {
				return err
			}
		}
		if s.last > 0 && c.First != s.last+1 {
			return fmt.Errorf("%w: sequence %d follows %d", errOther, c.First, s.last)
		}
		if fr := s.feed.Frame(); fr.Segment.StoreID == s.generation.store {
			s.cur.addFrame(c, fr)
		} // else it is of the store that this one was copied from, and in the base
		s.last = c.Last
		if len(s.cur.buf) >= objectBytes {
			s.note()
			if err := s.cut(ctx); err != nil {
				return err
			}
			if len(s.cur.buf) > 0 {
				if err := s.push(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// cut ends the object at the marks that have been reached, if there are any.
func (s *session) cut(ctx context.Context) error {
	n := 0
	for ; n < len(s.marks) && s.marks[n].sequence <= s.last; n++ {
		if len(s.cur.buf) > 0 {
			s.cur.addMark(s.marks[n])
		}
	}
	s.marks = slices.Delete(s.marks, 0, n)
	if n == 0 || len(s.cur.buf) == 0 {
		return nil
	}
	return s.push(ctx)
}

// push hands the object over. There is room, but at the end.
func (s *session) push(ctx context.Context) error {
	var collided []uint64
	man := s.feed.Manifest()
	for hash := range man.Collided {
		collided = append(collided, hash<<format.SpareHashBits)
	}
	c := s.cur
	c.buf = append(manifestEntry(uint16(man.Features), collided), c.buf...)
	s.cur = contents{}
	select {
	case s.queue <- c:
		return nil
	case <-ctx.Done():
		return nil // putLogs says why
	}
}

// putLogs puts what comes.
func (s *session) putLogs(ctx context.Context, work *sync.WaitGroup) error {
	for c := range s.queue {
		o := s.generation
		o.kind, o.first, o.last, o.from, o.to = kindLog, c.first, c.last, c.from, c.to
		size := encodedSize(int64(len(c.buf)))
		tries, err := s.put(ctx, o, size, func() error { return s.o.To.Put(ctx, o.name(), newEncoder(o, bytes.NewReader(c.buf))) })
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.since += size
		s.baseAgainLocked(tries)
		s.mu.Unlock()
		s.compact(ctx, work, o, size, c.buf)
	}
	return nil
}

// encodedSize is the size of an object that holds n bytes.
func encodedSize(n int64) int64 { return headerSize + n + (n/blockSize+1)*blockHead }
