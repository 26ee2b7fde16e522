package bitcask

import (
	"cmp"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/internal/vfs"
)

// Salvaging what openings have truncated (remains.go). What stands in there was written after everything that the log had at
// the time of the cut, and before everything that it has had since, though the log has given the same sequence numbers once
// more. So whatever is newer than a cut is moved up in the new store by as many numbers as the remains take.

// cut is one file of remains.
type cut struct {
	h     remainsHeader
	n     int    // of several at one place
	moved uint64 // what is added to the sequences of its records
	after uint64 // what is added to those of the log from here on
}

// openRemains opens every file of remains that has something to read, as one more segment.
func (v *salvager) openRemains() error {
	for _, name := range v.names {
		id, _, n, ok := parseRemainsName(name)
		if !ok || id == 0 {
			continue
		}
		src, h, err := v.openCut(name)
		if damaged(err) {
			v.lose(Lost{File: name, Reason: err.Error()})
			continue
		}
		if err != nil {
			return err
		}
		v.sources[src.sg] = src
		v.result.Remains++
		v.cuts = append(v.cuts, cut{h: h, n: n})
	}
	slices.SortFunc(v.cuts, func(a, b cut) int {
		return cmp.Or(cmp.Compare(a.h.nextSeq, b.h.nextSeq), cmp.Compare(a.n, b.n), cmp.Compare(a.h.id, b.h.id))
	})
	return v.measureCuts()
}

// openCut opens a file of remains.
func (v *salvager) openCut(name string) (_ *salvageSource, h remainsHeader, err error) {
	f, err := v.opts.FS.Open(filepath.Join(v.dir, name), vfs.ReadOnly)
	if err != nil {
		return nil, h, err
	}
	size, err := f.Size()
	b := make([]byte, min(size, remainsHeaderSize))
	if err == nil {
		_, err = f.ReadAt(b, 0)
	}
	if err == nil {
		h, err = parseRemainsHeader(b, name, size)
	}
	if err != nil {
		return nil, h, errors.Join(err, f.Close())
	}
	sg := newSegment(h.store, h.id, remainsFile{f, h.offset})
	sg.name = name
	sg.size.Store(h.offset + h.length)
	src := &salvageSource{v: v, sg: sg, fr: newFrames(sg), active: true, remains: true, cut: h}
	src.fr.pos = h.offset
	return src, h, nil
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
	return f.File.ReadAt(b, at-f.offset+remainsHeaderSize)
}

// measureCuts finds how many sequence numbers each of the remains takes.
func (v *salvager) measureCuts() error {
	var moved uint64
	for i := range v.cuts {
		c := &v.cuts[i]
		c.moved = moved
		for _, src := range v.sources {
			if !src.remains || src.cut != c.h {
				continue
			}
			fr := newFrames(src.sg)
			fr.pos = c.h.offset
			highest, err := fr.highestSequence()
			if err != nil {
				return err
			}
			if highest >= c.h.nextSeq {
				moved += highest - c.h.nextSeq + 1
			}
		}
		c.after = moved
	}
	return nil
}

// highestSequence is a bound of the sequences in all frames from here on, those behind bad places included.
func (fr *frames) highestSequence() (highest uint64, err error) {
	for ; fr.end-fr.pos >= frameHeaderSize; fr.pos++ {
		b, err := fr.window(frameHeaderSize)
		if err != nil {
			return 0, ignoreBad(err)
		}
		if h, ok := parseFrameHeader(b, fr.sg.seal, uint32(fr.pos), fr.end-fr.pos); ok {
			highest = max(highest, h.seq+uint64(h.size)/minRecordSize)
		}
	}
	return highest, nil
}

// minRecordSize is less than the shortest record takes, in bytes.
const minRecordSize = 8

// inTime returns the entries of a source with the sequences that they have in the new store.
func (v *salvager) inTime(src *salvageSource) func() ([]entry, error) {
	if len(v.cuts) == 0 {
		return src.next
	}
	return func() ([]entry, error) {
		entries, err := src.next()
		for i := range entries {
			entries[i].seq += v.moved(src, entries[i].seq)
		}
		return entries, err
	}
}

// moved is what is added to a sequence of a source.
func (v *salvager) moved(src *salvageSource, seq uint64) (by uint64) {
	for i := range v.cuts {
		c := &v.cuts[i]
		switch {
		case src.remains && src.cut == c.h:
			return c.moved
		case !src.remains && seq >= c.h.nextSeq:
			by = c.after
		}
	}
	return by
}
