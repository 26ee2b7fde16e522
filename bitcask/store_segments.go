package bitcask

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// The segments at Open: those that the manifest names are opened and compared with it, the leftovers of an interrupted
// rotation or merge are found and removed. Damage met here may be tolerated: damage.go.

// openSegments opens the files the manifest names, after making sure that they are all there, and finds the leftovers
// of an interrupted rotation or merge.
func (s *opener) openSegments() error {
	names, err := s.opts.seam.FS.List(s.dir)
	if err != nil {
		return err
	}
	s.present = make(map[string]bool, len(names))
	for _, name := range names {
		s.present[name] = true
	}
	var list []*segment.Segment
	defer func() { s.segments.Store(segment.NewSet(list)) }() // after an error, too: release closes them
	open := func(id uint32) (*segment.Segment, error) {
		sg, err := s.openSegment(id)
		if failure.NoDescriptors(err) {
			err = fmt.Errorf("%d of %d segments are open, and there are no more descriptors: raise the limit of open files (ulimit -n): %w", len(list), len(s.man.Sealed)+len(s.man.Tail), err)
		}
		if err == nil {
			list = append(list, sg)
		}
		return sg, err
	}
	for id, si := range s.man.Sealed {
		sg, err := open(id)
		if err != nil {
			return err
		}
		if err := s.bind(sg, si); err != nil {
			return err
		}
		if len(list) <= segment.MostMappings {
			sg.MapTo(s.opts.mapFor(sg))
		}
		if s.opts.ReadOnly && len(s.man.Sealed) <= segment.MostHeld {
			continue // a merge by the writer may remove it while it is read
		}
		if err := sg.Park(len(list)); err != nil {
			return err
		}
	}
	// The newest first: alongside a live writer each then is as long as it was
	// before anything that we see in the next was written, or longer.
	for _, id := range slices.Backward(s.man.Tail) {
		sg, err := open(id)
		if err != nil {
			return err
		}
		if err := s.bindTail(sg); err != nil {
			return err
		}
		if err := sg.FindContent(s.man.ClosedUpTo(id)); err != nil {
			return err
		}
		s.tail = slices.Insert(s.tail, 0, sg)
		sg.MapTo(s.opts.mapFor(sg))
	}
	return s.findLeftovers(names)
}

// openSegment opens a segment of the manifest. Its header is not needed to read it: every frame says itself which
// store, segment and offset it is for. Nor is the file, if the manifest says how long it was.
func (s *opener) openSegment(id uint32) (*segment.Segment, error) {
	name := format.DataName(id)
	sg, err := (*segment.Segment)(nil), s.man.Missing(name)
	if s.present[name] {
		sg, err = segment.Open(s.opts.seam.FS, s.dir, s.man.StoreOf(id), id, s.opts.mode())
	}
	if err == nil || !s.opts.ReadDamaged {
		return sg, err
	}
	sg = segment.New(s.man.StoreOf(id), id, segment.MissingFile{})
	sg.Damaged = true
	refusal, damage, size := err, err, int64(0)
	if !s.present[name] {
		damage = &CorruptError{File: name, Offset: 0, Reason: ErrMissing.Error()}
	} else if !failure.IsDamage(err) {
		return nil, err
	} else if sg.File, err = s.opts.seam.FS.Open(filepath.Join(s.dir, name), vfs.ReadOnly); err != nil {
		return nil, err
	} else if size, err = sg.File.Size(); err != nil {
		return nil, errors.Join(err, sg.Close())
	}
	sg.Size.Store(size)
	if _, sealed := s.man.Sealed[id]; size < format.SegmentHeaderSize && !sealed && s.man.ClosedID != id {
		return nil, errors.Join(refusal, sg.Close())
	}
	return sg, s.tolerate(damage)
}

// bind makes sure that a sealed segment is as the manifest says.
func (s *opener) bind(sg *segment.Segment, si format.SealedInfo) error {
	err := sg.ReadFooter()
	if err == nil && sg.Info() != si {
		err = &CorruptError{File: sg.Name, Offset: int64(si.Length), Reason: "footer does not agree with the manifest"}
	}
	if err == nil || sg.Damaged {
		err = nil
	} else if err = s.tolerate(err); err != nil {
		return err
	} else {
		sg.Damaged = true
	}
	if sg.Damaged {
		sg.Assume(si)
	}
	return nil
}

// bindTail is for a store that is opened with damage (Options.ReadDamaged): if an unsealed segment is shorter than it was
// at the last clean close, that is noted, and its length assumed. Otherwise the replay refuses such a segment.
func (s *opener) bindTail(sg *segment.Segment) error {
	if length := int64(s.man.ClosedLen); s.opts.ReadDamaged && s.man.ClosedID == sg.ID && sg.Size.Load() < length {
		sg.Damaged = true
		err := s.tolerate(&CorruptError{File: sg.Name, Offset: sg.Size.Load(), Reason: "file is shorter than it was"})
		sg.Size.Store(length)
		return err
	}
	return nil
}

// The directories within that of the store that a store leaves alone. history is reserved for the segments that merges have taken
// out. Servers keep commits in orphans that another history lacks (serverside.DB.KeepOrphans).
const (
	historyDir = "history"
	orphansDir = "orphans"
)

// TTLName is the file of deadlines alongside the log; package ttl owns it.
const TTLName = "TTL"

// findLeftovers notes files with our names that the manifest does not know, for clearAway. All that it does know are
// there. One that holds commits and was not written by a merge is not a leftover: the manifest has lost an edit.
func (s *opener) findLeftovers(names []string) error {
	for _, name := range names {
		id, suffix, ours := format.ParseName(name)
		_, _, _, remains := format.ParseRemainsName(name)
		_, sealed := s.man.Sealed[id]
		switch {
		case name == manifest.FileName || name == format.LockName || name == TTLName || name == IndexFile || name == ReserveName:
			continue
		case name == manifest.TempName || name == segment.HintTemp || name == indexfile.TempName || name == TTLName+".new" || name == format.RemainsTemp:
		case name == historyDir || name == orphansDir:
			continue
		case remains:
			s.recovery.Remains = append(s.recovery.Remains, name)
			continue
		case !ours:
			s.recovery.Unknown = append(s.recovery.Unknown, name)
			continue
		case sealed || slices.Contains(s.man.Tail, id) && suffix == format.DataSuffix:
			continue
		case suffix == format.DataSuffix:
			if err := s.checkLeftover(id); err != nil {
				return err
			}
		}
		s.leftover = append(s.leftover, name)
	}
	return nil
}

func (s *opener) checkLeftover(id uint32) error {
	sg, err := segment.Open(s.opts.seam.FS, s.dir, s.man.StoreOf(id), id, vfs.ReadOnly)
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrVersion) {
		return err
	}
	if failure.IsDamage(err) || failure.IsNotExist(err) {
		return nil // not even a header: an interrupted creation; or a writer alongside us has removed it
	}
	if err != nil {
		return err
	}
	held := sg.Size.Load() > format.SegmentHeaderSize && !sg.Merged && id >= s.man.NextID
	if held {
		// Only frames count: a crash may have left a longer file of zeros.
		_, err = segment.NewFrames(sg).Next()
		held = err == nil
	}
	if cerr := sg.Close(); cerr != nil {
		return cerr
	}
	if err := segment.IgnoreEnd(err); err != nil {
		return err
	}
	if held && !s.outdated() {
		return &CorruptError{File: manifest.FileName, Offset: s.man.Size, Reason: fmt.Sprintf("%s holds commits but is not listed", format.DataName(id))}
	}
	return nil
}

// clearAway removes the leftovers. One may go by itself: a store that has lost its LOCK to this one may just be
// publishing it.
func (s *opener) clearAway() error {
	for _, name := range s.leftover {
		err := s.opts.seam.FS.Remove(filepath.Join(s.dir, name))
		if failure.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		s.recovery.Removed = append(s.recovery.Removed, name)
	}
	if len(s.leftover) == 0 {
		return nil
	}
	return s.opts.seam.FS.SyncDir(s.dir)
}
