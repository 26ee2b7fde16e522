package bitcask

import (
	"errors"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/internal/vfs"
)

// Loading the INDEX at Open.

// loadIndex makes the keydir what the INDEX says, and returns how far that is the log. Any error means: do without, and
// nothing has been loaded. With NoIndex nothing is loaded either, and a writer learns whether it fits so far.
func (s *opener) loadIndex() (*indexfile.Contents, error) {
	if s.opts.seam.NoIndex && s.opts.ReadOnly {
		return nil, nil
	}
	f, err := s.opts.seam.FS.Open(filepath.Join(s.dir, IndexFile), vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	l, err := indexfile.NewReader(f, s.man.Store, s.man.Seed)
	var c *indexfile.Contents
	if err == nil {
		c, err = s.loadIndexFrom(l)
	}
	if err == nil && s.lazy != nil {
		return c, nil // which keeps the file
	}
	if err = errors.Join(err, l.Close()); err != nil {
		s.unload()
		return nil, err
	}
	return c, nil
}

// unload makes the keydir empty again.
func (s *opener) unload() {
	if s.lazy != nil {
		s.lazy.release()
		s.lazy = nil
	}
	for i := range s.stripes {
		s.stripes[i].unloaded = false
	}
	s.spaces.Init(s.man.Seed)
	s.spaces.Record = 0
	s.system.Init()
	s.hintless, s.recovery.Replayed, s.recovery.Scanned = nil, 0, 0
	for _, sg := range s.segments.Load().All() {
		sg.LiveBytes.Store(0)
	}
}

func (s *opener) loadIndexFrom(l *indexfile.Reader) (*indexfile.Contents, error) {
	c, err := l.Contents()
	if err != nil {
		return nil, err
	}
	pass := s.vouch
	if s.opts.seam.NoIndex { // it is only checked: the log shows the damage
		pass = func(_ indexfile.Segment, err error) error { return err }
	}
	if s.cutAt > 0 && c.End.Sequence >= s.cutAt {
		return nil, indexfile.ErrUnfit // of a later moment
	}
	if !s.man.Gave(c.End.Opening, c.End.Sequence) || !c.Fits(s.segments.Load(), pass) {
		return nil, indexfile.ErrUnfit
	}
	if s.opts.seam.NoIndex {
		return c, nil
	}
	s.spaces.Mu.Lock()
	s.spaces.InstallLocked(c.Moved, c.Fresh)
	s.spaces.Record = c.Record
	s.spaces.Mu.Unlock()
	for i := range c.Sections {
		s.spaces.ReplaySpace(c.Sections[i].Space)
	}
	if !s.opts.seam.NoMapping {
		l.Map()
	}
	l.Locations = indexfile.NewLocations(s.segments.Load())
	if c.Record != 0 && !l.Locations.See(c.Record) {
		return nil, indexfile.ErrUnfit
	}
	for name, r := range c.System {
		if !l.Locations.See(r.Loc) {
			return nil, indexfile.ErrUnfit
		}
		s.system.Put(name, r)
	}
	if s.loadsLater(c) {
		return c, s.promise(l, c)
	}
	if err := l.LoadAll(c.Sections, &s.spaces, s.interrupted); err != nil {
		return nil, err
	}
	l.Locations.Count(s.segments.Load())
	return c, nil
}
