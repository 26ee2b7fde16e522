package archive

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// A base is two objects. The data are put first, while the number of the newest record in them is not known yet. Once all
// of that is on the disk of the store, an object without contents, whose name has that number and the name of the data,
// says that they are whole. Data without it are deleted.

// baseIfDue begins to make a base if there is none, or if what came after the newest one is longer than that is, or it is
// half as old as anything is to become. It is made alongside the log.
func (s *session) baseIfDue(ctx context.Context, work *sync.WaitGroup) {
	s.mu.Lock()
	due := !s.basing && !time.Now().Before(s.baseAfter) && s.basePastLocked()
	s.basing = s.basing || due
	s.mu.Unlock()
	if !due {
		return
	}
	work.Go(func() {
		err := s.makeBase(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.basing = false
		s.baseAfter = time.Now().Add(s.baseWaitLocked(err))
	})
}

// baseWaitLocked is for how long no base is tried after one with this outcome.
func (s *session) baseWaitLocked(err error) time.Duration {
	if err == nil {
		s.baseTries = 0
		return 0
	}
	wait := min(s.o.waits(4)<<s.baseTries, time.Hour)
	s.baseTries = min(s.baseTries+1, 8)
	return wait
}

// outageTries is how often the log fails in turn, for a minute, before that is the archive's failure, and not that of a base
// that takes all the room there is.
const outageTries = 6

// baseAgainLocked has a base tried soon that has failed in an outage, once an object of the log was put, by so many tries.
func (s *session) baseAgainLocked(tries int) {
	if tries > outageTries {
		s.baseTries, s.baseAfter = 0, time.Time{}
	}
}

// basePastLocked says whether the newest base does no longer serve.
func (s *session) basePastLocked() bool {
	old := s.o.Keep > 0 && s.o.now()-s.base.from >= s.o.Keep.Milliseconds()/2
	return s.base.kind == 0 || s.since > max(s.baseSize, s.o.leastLog) || s.since > 0 && old
}

// makeBase makes a base. What is not wanted any more is deleted before, which may make the room for it, and after it. Its
// errors are reported; the log goes on without a new base.
func (s *session) makeBase(ctx context.Context) error {
	pruned := s.prune(ctx)
	err := s.putBase(ctx)
	if err == nil && pruned == nil {
		pruned = s.prune(ctx)
	}
	err = errors.Join(err, pruned)
	if err == nil || !s.ending() {
		s.failed("base", err)
	}
	return err
}

// putBase puts the two objects.
func (s *session) putBase(ctx context.Context) error {
	var random [8]byte
	if _, err := io.ReadFull(crand.Reader, random[:]); err != nil {
		return err
	}
	data := s.generation
	data.kind, data.first = kindData, binary.LittleEndian.Uint64(random[:])
	base := data
	base.kind = kindBase
	size := int64(0)
	r, w := io.Pipe()
	var made sync.WaitGroup
	var madeErr error
	made.Go(func() {
		result, err := s.s.BackupTo(ctx, &stamped{w: w, stamp: func() { base.from = max(s.o.now(), 1) }})
		base.last = result.Sequence
		madeErr = err
		w.CloseWithError(err) // nil is the end of the bytes
	})
	err := s.o.To.Put(ctx, data.name(), io.TeeReader(newEncoder(data, r), counter{&size}))
	r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	made.Wait()
	if err == nil {
		err = madeErr
	}
	if err == nil {
		err = s.s.Sync() // what the base has is on the disk, and stays
	}
	if err != nil {
		return err
	}
	s.counted(data, size)
	s.mu.Lock()
	before := s.since
	s.mu.Unlock()
	_, err = s.put(ctx, base, headerSize+blockHead, func() error {
		return s.o.To.Put(ctx, base.name(), newEncoder(base, bytes.NewReader(nil)))
	})
	if err == nil {
		s.mu.Lock()
		s.base, s.baseSize, s.since = base, size, s.since-before
		s.mu.Unlock()
	}
	return err
}

// dataOf is the object with the data of a base.
func dataOf(base id) id {
	return id{generation: base.generation, store: base.store, kind: kindData, first: base.first}
}

// stamped calls stamp before the first write: the moment of a backup is shortly before its first byte.
type stamped struct {
	w     io.Writer
	stamp func()
}

func (s *stamped) Write(p []byte) (int, error) {
	if s.stamp != nil {
		s.stamp()
		s.stamp = nil
	}
	return s.w.Write(p)
}

// counter counts the bytes that are written to it.
type counter struct{ n *int64 }

func (c counter) Write(p []byte) (int, error) {
	*c.n += int64(len(p))
	return len(p), nil
}

// prune deletes what came before the oldest base that is wanted, and data that are of no base. It is called when no base is
// being made. A crash in the middle leaves objects that are deleted the next time: what the
// deleted ones were needed for has gone before them.
func (s *session) prune(ctx context.Context) error {
	own, _, err := s.ofStore(ctx)
	if err != nil {
		return err
	}
	gone := map[id]bool{}
	for _, u := range before(own, s.firstWanted(own)) {
		if err = ctx.Err(); err != nil || s.ending() {
			break
		}
		if err = s.o.To.Delete(ctx, u.o.name()); err != nil {
			break
		}
		gone[u.o] = true
	}
	for _, inv := range own {
		inv.without(gone)
	}
	s.count(own)
	return err
}

// unwanted is an object that is to be deleted.
type unwanted struct {
	inv *inventory
	o   id
}

// before are the objects that no moment from a base on needs, in the order in which they are to be deleted.
func before(own []*inventory, first id) (gone []unwanted) {
	for _, inv := range own {
		same := inv.generation == first.generation
		if inv.generation > first.generation {
			continue
		}
		for _, o := range inv.bases {
			if !same || o.last < first.last {
				gone = append(gone, unwanted{inv, o})
			}
		}
		for _, o := range inv.logs {
			if !same || o.last <= first.last && o != inv.logs[len(inv.logs)-1] { // the last one says where to go on
				gone = append(gone, unwanted{inv, o})
			}
		}
		for _, o := range inv.data {
			of := slices.IndexFunc(inv.bases, func(base id) bool { return base.first == o.first })
			if !same || of < 0 || inv.bases[of].last < first.last {
				gone = append(gone, unwanted{inv, o})
			}
		}
	}
	return gone
}

// firstWanted is the oldest base that is wanted: the newest one that is as old as Keep, or a later one while there would be
// more than KeepBytes.
func (s *session) firstWanted(own []*inventory) (first id) {
	var bases []id
	size := int64(0)
	for _, inv := range own {
		bases = append(bases, inv.bases...)
		size += inv.bytes
	}
	for len(bases) > 1 {
		old := s.o.Keep > 0 && bases[1].from <= s.o.now()-s.o.Keep.Milliseconds()
		if !old && (s.o.KeepBytes <= 0 || size-bytesOf(before(own, bases[0])) <= s.o.KeepBytes) {
			break
		}
		bases = bases[1:]
	}
	if len(bases) > 0 {
		first = bases[0]
	}
	return first
}

func bytesOf(list []unwanted) (bytes int64) {
	for _, u := range list {
		bytes += u.inv.sizes[u.o]
	}
	return bytes
}
