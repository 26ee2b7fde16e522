package bitcask

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Rebuilding stripes of the keydir from the log, when their sections of the INDEX turn out to be damaged after Open.

// rebuild returns what the log says of a stripe, by space, as dumps. The first call replays the log for all stripes
// that cannot be loaded: as long as they are not, they do not change. The caller holds the lock of stripe i.
func (z *lazyIndex) rebuild(w *indexfile.Work, i int, damage error) (map[uint32][]byte, error) {
	if !z.opened { // at Open it makes all of the INDEX useless, as ever
		return nil, fmt.Errorf("%w: %w", indexfile.ErrUnfit, damage)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.rebuilt[i] != nil {
		return z.rebuilt[i], nil
	}
	if z.failed != nil && (failure.IsDamage(z.failed) || time.Since(z.failedAt) < lazyRetry) {
		return nil, z.failed
	}
	z.messages = append(z.messages, func() { z.s.opts.Logger.Warn("index damaged", "file", IndexFile, "err", damage) })
	z.damaged = true
	var wanted [keydir.Stripes]bool
	for stripe := range wanted {
		for k := range z.sections[stripe] {
			wanted[stripe] = wanted[stripe] || w.Verify(&z.sections[stripe][k]) != nil
		}
	}
	wanted[i] = true
	begin := time.Now()
	if err := z.replay(&wanted); err != nil {
		z.failed, z.failedAt = fmt.Errorf("rebuilding a damaged %s: %w", IndexFile, err), time.Now()
		return nil, z.failed
	}
	took := time.Since(begin)
	z.messages = append(z.messages, func() { z.s.opts.Logger.Info("index rebuilt", "file", IndexFile, "took", took) })
	return z.rebuilt[i], nil
}

// replay replays the log, as it was at Open, for some stripes alone, into a store without files of its own, and dumps
// them.
func (z *lazyIndex) replay(wanted *[keydir.Stripes]bool) error {
	s := z.s
	opts := s.opts
	opts.ReadOnly, opts.Loading = true, nil
	opts.Logger = slog.New(slog.DiscardHandler) // a stripe is locked; the next Open that reads a bad hint says so
	c := &opener{Store: newStore(s.dir, opts), only: wanted}
	c.man.Manifest = s.man.inherited()
	c.spaces.Init(c.man.Seed)
	c.system.Init()
	if err := c.openAsOf(z.log, s.segments.Load()); err != nil {
		return err
	}
	c.startReplay(0)
	if err := c.replayLog(new(indexfile.Contents)); err != nil {
		return err
	}
	for stripe := range wanted {
		if !wanted[stripe] {
			continue
		}
		z.rebuilt[stripe] = map[uint32][]byte{}
		for id, sp := range c.spaces.Now.Load().ByID {
			var b []byte
			for dump := sp.Dir.Dump(stripe); !dump.Done(); {
				b = dump.Append(b, indexfile.DumpStep)
			}
			if len(b) > 0 {
				z.rebuilt[stripe][id] = b
			}
		}
	}
	return nil
}

// openAsOf lists the segments of an open store as they were at an earlier moment. They share its handles, which are
// never closed here, and have sizes and counts of their own. What is in them was verified, or written, before that
// moment: a frame that does not verify is damage, and no torn tail.
func (s *opener) openAsOf(log []lazySegment, now *segment.Set) error {
	var list []*segment.Segment
	for _, was := range log {
		of := now.Find(was.id)
		if of == nil {
			return fmt.Errorf("BUG: segment %d went before all stripes were loaded", was.id)
		}
		sg := segment.New(of.StoreID, of.ID, of.File)
		sg.Nonce, sg.Merged, sg.Footer = of.Nonce, of.Merged, was.foot
		sg.FramesEnd = was.end
		sg.Size.Store(was.end)
		if was.sealed {
			sg.MarkSealed()
		} else {
			sg.Cut = true
			s.tail = append(s.tail, sg)
		}
		list = append(list, sg)
	}
	s.segments.Store(segment.NewSet(list))
	return nil
}
