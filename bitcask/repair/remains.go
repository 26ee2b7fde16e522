package repair

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// Salvaging what openings have truncated (remains.go). It was written after everything that the log had at the time of
// the cut, and before everything that it has had since, though the log has given the same sequence numbers again. So
// everything newer than a cut is moved up in the new store by as many numbers as the remains take.

// cut is one file of remains. Its header does not identify it: two cuts in a row at one place may state the same.
type cut struct {
	src   *segmentSource
	h     format.RemainsHeader
	n     int    // of several at one place
	moved uint64 // added to the sequences of its records
	after uint64 // added to those of the log from here on
	takes uint64 // sequence numbers
}

// openRemains opens every file of remains that has something to read, as one more segment.
func (v *salvager) openRemains() error {
	for _, name := range v.names {
		id, offset, n, ok := format.ParseRemainsName(name)
		if !ok || id == 0 {
			continue
		}
		c, err := v.openCut(name)
		if errors.Is(err, syscall.EIO) {
			err = &failure.CorruptError{File: name, Reason: fmt.Sprintf("cannot be read: %v", err)}
		}
		if err == nil {
			err = v.checkCut(c, id, offset)
		}
		if failure.IsDamage(err) || errors.Is(err, failure.ErrForeign) {
			v.lose(nil, Lost{File: name, Reason: err.Error()})
			continue
		}
		if err != nil {
			return err
		}
		c.n = n
		v.sources[c.src.sg] = c.src
		v.result.Remains++
		v.cuts = append(v.cuts, c)
	}
	slices.SortFunc(v.cuts, func(a, b *cut) int {
		return cmp.Or(cmp.Compare(a.h.NextSeq, b.h.NextSeq), cmp.Compare(a.n, b.n), cmp.Compare(a.h.ID, b.h.ID))
	})
	var moved uint64
	for _, c := range v.cuts {
		c.moved = moved
		moved += c.takes
		c.after = moved
	}
	return nil
}

// checkCut makes sure that remains are of this store and of the place that their name says, and finds how many sequence
// numbers they take. It closes those that are not.
func (v *salvager) checkCut(c *cut, id uint32, offset int64) (err error) {
	sg := c.src.sg
	defer func() {
		if err != nil {
			err = errors.Join(err, c.src.close())
		}
	}()
	if c.h.ID != id || c.h.Offset != offset {
		return &failure.CorruptError{File: sg.Name, Offset: 0, Reason: "remains of another place than the name says"}
	}
	ours := v.man != nil && v.man.StoreOf(id) == c.h.Store
	for other := range v.sources {
		ours = ours || v.man == nil && other.StoreID == c.h.Store
	}
	if !ours {
		return fmt.Errorf("%s: %w", sg.Name, failure.ErrForeign)
	}
	fr := segment.NewFrames(sg)
	fr.Pos = c.h.Offset
	lowest, highest, err := fr.Sequences()
	if err != nil {
		return err
	}
	if highest >= c.h.NextSeq {
		c.takes = highest - c.h.NextSeq + 1
		c.src.last = highest
	}
	if lowest < c.h.NextSeq || c.takes > maxTaken {
		return &failure.CorruptError{File: sg.Name, Offset: 0, Reason: "remains with sequence numbers that did not follow those of the log"}
	}
	return nil
}

// maxTaken is more sequence numbers than what recovery truncates can ever have taken: the records of a few segments.
const maxTaken = 1 << 40

// openCut opens a file of remains.
func (v *salvager) openCut(name string) (*cut, error) {
	f, err := v.seam.FS.Open(filepath.Join(v.dir, name), vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	if err := vfs.Park(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file := &unreadable{File: f, ctx: v.ctx}
	size, err := file.Size()
	b := make([]byte, min(size, format.RemainsHeaderSize))
	if err == nil {
		_, err = file.ReadAt(b, 0)
	}
	var h format.RemainsHeader
	if err == nil {
		h, err = format.ParseRemainsHeader(b, name, size)
	}
	if err != nil && len(file.holes) > 0 { // which are all of its header
		err = file.holes[0].err
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	file.base = h.Offset - format.RemainsHeaderSize
	sg := segment.New(h.Store, h.ID, remainsFile{file, h.Offset})
	sg.Name = name
	sg.Size.Store(h.Offset + h.Length)
	src := &segmentSource{v: v, sg: sg, file: file, fr: segment.NewFrames(sg), active: true, remains: true}
	src.fr.Pos = h.Offset
	return &cut{src: src, h: h}, nil
}

// remainsFile reads remains as the segment that they were cut from, from an offset on.
type remainsFile struct {
	vfs.File
	offset int64
}

func (f remainsFile) ReadAt(b []byte, at int64) (int, error) {
	if at < f.offset {
		return 0, io.ErrUnexpectedEOF
	}
	return f.File.ReadAt(b, at-f.offset+format.RemainsHeaderSize)
}

// inTime returns the entries of a source with the sequences that they have in the new store.
func (v *salvager) inTime(src *segmentSource) func() ([]format.Entry, error) {
	if len(v.cuts) == 0 {
		return src.next
	}
	return func() ([]format.Entry, error) {
		entries, err := src.next()
		for i := range entries {
			seq := &entries[i].Seq
			by := v.moved(src, *seq)
			if *seq > format.MaxSequence || by > format.MaxSequence-*seq {
				return nil, fmt.Errorf("sequence number %d of %s, and %d more: %w", *seq, src.sg.Name, by, failure.ErrFull)
			}
			*seq += by
		}
		return entries, err
	}
}

// moved returns by how much a sequence of a source is raised.
func (v *salvager) moved(src *segmentSource, seq uint64) (by uint64) {
	for _, c := range v.cuts {
		switch {
		case c.src == src:
			return c.moved
		case !src.remains && seq >= c.h.NextSeq:
			by = c.after
		}
	}
	return by
}
