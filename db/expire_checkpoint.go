package db

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/ttl"
)

// checkpoint says what a TTL file that was read covers.
type checkpoint struct {
	fits   bool
	stale  bool            // there is a file, and it is not used
	upTo   ttl.Mark        // complete up to this state of the log
	spaces map[uint32]bool // that it has deadlines of
}

// readCheckpoint reads the TTL file into the index. A file that is missing,
// damaged or another store's costs a rescan, never a deadline: the zero
// checkpoint means that the log says it all. So does one that is not complete
// up to after, from where on the log will be replayed.
func (c *core) readCheckpoint(dir string, store [16]byte, after uint64) checkpoint {
	upTo, entries, err := ttl.Read(c.opts.seam.FS, dir, store)
	if err == nil && upTo.Sequence < after {
		return checkpoint{stale: true}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint{}
	}
	if err != nil {
		c.opts.Logger.Warn("TTL file not used", "dir", dir, "err", err)
		return checkpoint{stale: true}
	}
	cp := checkpoint{fits: true, upTo: upTo, spaces: map[uint32]bool{}}
	for _, e := range entries {
		c.deadlines.Set(e.Namespace, e.Key, e.Deadline)
		cp.spaces[e.Namespace] = true
	}
	return cp
}

// replayed takes a change of deadlines from the log, unless the checkpoint
// has it.
func (c *core) replayed(cp checkpoint, ev bitcask.DeadlineEvent) {
	if ev.Sequence > cp.upTo.Sequence {
		noteReplayed(c.deadlines, ev)
	}
}

// noteReplayed brings deadlines in step with a change of one.
func noteReplayed(d *ttl.Deadlines, ev bitcask.DeadlineEvent) {
	switch {
	case ev.Dropped:
		d.DropNamespace(ev.Space)
	case ev.Deadline == 0:
		d.Clear(ev.Space, ev.Key)
	default:
		d.Set(ev.Space, strings.Clone(ev.Key), ev.Deadline)
	}
}

// agrees reports whether index and log agree: a TTL file of a state that the log
// has not been in (a mixed-up restore) does not count, nor does one of an earlier
// time if a merge has since removed the tombstones of deadlines that it holds.
// The index has every deadline of the log, so to compare the numbers is enough.
func (c *core) agrees(base *bitcask.Store, cp checkpoint) bool {
	if !cp.fits {
		return true
	}
	if !base.Reached(bitcask.Mark(cp.upTo)) {
		return false
	}
	for space := range cp.spaces {
		ns, named := base.NamespaceOf(space)
		switch {
		case !named: // flushed, and perhaps nothing is left of that in the log
			c.deadlines.DropNamespace(space)
		case base.Deadlines(ns) != c.deadlines.Len(space):
			return false
		}
	}
	for _, ns := range base.Namespaces() {
		if base.Deadlines(ns) != c.deadlines.Len(base.Space(ns)) {
			return false
		}
	}
	return true
}

// writeCheckpoint writes the TTL file. Writers wait for it, so that index, log and sequence are
// those of one moment.
func (s *Store) writeCheckpoint() error {
	t, err := s.base.BeginHold()
	if err != nil {
		return err
	}
	defer t.End()
	// The log first: a checkpoint that is ahead of the log would be refused.
	if err := s.base.Sync(); err != nil {
		return err
	}
	upTo, err := s.base.Mark()
	if err != nil {
		return err
	}
	return ttl.Write(s.opts.seam.FS, s.base.Dir(), s.base.StoreID(), ttl.Mark(upTo), s.deadlines)
}

// closeCheckpoint writes the TTL file at Close, unless the disk is full: without it the next Open reads the deadlines
// from the log.
func (s *Store) closeCheckpoint() error {
	if s.base.Full() {
		s.opts.Logger.Warn("TTL file not written: the disk is full", "dir", s.base.Dir())
		return nil
	}
	err := s.writeCheckpoint()
	if bitcask.NoSpace(err) {
		s.opts.Logger.Warn("TTL file not written", "dir", s.base.Dir(), "err", err)
		return nil
	}
	return err
}
