package bitcask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// reload reads the store whole again, as another Open would, and exchanges the content while everything is locked.
// Readers go on with the old content until then. Both are in memory for a moment. After an error before the exchange
// everything is as it was; after one that follows it look begins with start.
func (f *follower) reload() (err error) {
	s := f.s
	ctx, cancel := context.WithCancel(context.Background())
	var waits sync.WaitGroup
	waits.Go(func() { // Close does not wait for all that is read
		select {
		case <-s.work.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	defer waits.Wait()
	defer cancel()
	opts := s.opts
	opts.seam.FS = s.guard.held
	fresh, err := openUntil(ctx, s.dir, &opts)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, fresh.Close())
	}()
	if fresh.man.Store != s.man.Store {
		return fmt.Errorf("%s: %w: open the store anew", manifest.FileName, ErrForeign)
	}
	install := func() func() { return nil }
	if f.hook.Reloading != nil {
		if install, err = f.hook.Reloading(ctx, fresh); err != nil {
			return err
		}
	}
	after, err := f.exchange(ctx, fresh, install)
	f.mu.Lock()
	f.state.Reloads++
	f.mu.Unlock()
	f.advance()
	if after != nil {
		after()
	}
	return errors.Join(err, f.start())
}

// exchange gives the store what fresh has.
func (f *follower) exchange(ctx context.Context, fresh *Store, install func() (after func())) (after func(), err error) {
	s := f.s
	if err := s.maintenanceMu.LockUnless(ctx); err != nil {
		return nil, err
	}
	defer s.maintenanceMu.Unlock()
	t := s.newTx(true)
	t.locks.holdAll()
	t.locks.acquire()
	t.open = true
	defer t.Recycle()
	s.spaces.Mu.Lock()
	s.spaces.Now.Store(fresh.spaces.Now.Load())
	s.spaces.Fresh, s.spaces.Record = fresh.spaces.Fresh, fresh.spaces.Record
	s.spaces.Mu.Unlock()
	s.system.Mu.Lock()
	s.system.Names = fresh.system.Names
	s.system.Changes.Add(1)
	s.system.Mu.Unlock()
	s.man.mu.Lock()
	s.man.Features |= fresh.man.Features // those of what fresh has read
	s.man.mu.Unlock()
	s.dead.forget()
	for _, sg := range fresh.follower.o.tail { // until start looks again the writer may have rolled back what was read of them
		sg.Unsettled.Store(max(sg.Chain.From, format.SegmentHeaderSize))
	}
	old := slices.Concat(s.segments.Swap(fresh.segments.Load()).All(), f.adopt) // unlisted before they are unmapped: read_lockfree.go
	fresh.segments.Store(new(segment.Set))
	var errs []error
	if f.r != nil {
		errs = append(errs, f.r.Manifest.Close())
	}
	f.r, f.adopt, f.o = nil, nil, &opener{Store: s, tail: fresh.follower.o.tail}
	f.unlisted = append(f.unlisted, old...)
	after = install()
	active, foot := fresh.log.End()
	s.log.Follow(active, foot, fresh.log.Next()) // last, as in applyLocked
	return after, errors.Join(append(errs, f.closeUnpinned())...)
}
