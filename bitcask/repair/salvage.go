package repair

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// Salvaging copies every record of a damaged store that still verifies into a
// new store, in order of sequence, and says what it could not copy. The damaged
// store is only read.
//
// Where a segment's hint is good, its records are found through the hint, so that one bad record
// costs one record, whatever else is broken, and its key is known. Elsewhere the frames are walked,
// and after a bad place the next frame is searched for.

// Lost is a stretch of a file that could not be copied.
type Lost struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`

	// The lost record, if a hint names it. Stale: the new store holds an older version of it, or
	// something that this record had deleted.
	Named     bool   `json:"named"`
	Kind      string `json:"kind,omitempty"`
	Namespace uint32 `json:"namespace,omitempty"`
	Key       string `json:"key,omitempty"`
	Element   string `json:"element,omitempty"`
	Stale     bool   `json:"stale,omitempty"`

	// Above all that stood there: the next good record of its segment, or whatever else is known. Without a name,
	// anything written before it may be stale.
	Before uint64 `json:"before_sequence,omitempty"`
}

func (l Lost) String() string {
	s := fmt.Sprintf("%s at %d, %d bytes: %s", l.File, l.Offset, l.Bytes, l.Reason)
	if !l.Named {
		if l.Before > 0 {
			s += fmt.Sprintf("; anything written before sequence %d may be stale", l.Before)
		}
		return s
	}
	s += fmt.Sprintf("; %s of key %q", l.Kind, l.Key)
	if l.Element != "" {
		s += fmt.Sprintf(", %q", l.Element)
	}
	if l.Stale {
		s += "; something older is there in its place"
	}
	return s
}

// Result says what Salvage did.
type Result struct {
	Segments   int    `json:"segments"`
	Records    uint64 `json:"records"` // copied, without those that follow another one
	Lost       []Lost `json:"lost"`
	Replaced   uint64 `json:"replaced"`    // damaged, but of no use any more: something newer is there
	Torn       int64  `json:"torn_bytes"`  // after the last commit: never acknowledged as durable
	Remains    int    `json:"remains"`     // files of what openings have truncated, which were read ...
	Returned   uint64 `json:"returned"`    // ... and the records that were copied from them
	NoManifest bool   `json:"no_manifest"` // all segments found were taken: what a merge had left out may be back
	Mended     int    `json:"mended"`      // collections whose count was wrong
}

// Salvage makes a new store in out from what can be read of the one in dir. It ignores locks:
// nothing may be writing to dir. Errors: ErrOption, ErrNotEmpty, ErrNotFound if there is no segment in dir, ErrVersion,
// ErrNoSpace if the disk of out is full, or the file system's; a loss is no error. o is for the new store; only its SegmentSize and Logger count. When ctx
// ends, so does Salvage, with its error; out is then no store to be used, and to be deleted, as after any other error.
func Salvage(ctx context.Context, dir, out string, o *bitcask.Options) (Result, error) {
	options, err := o.WithDefaults()
	if err != nil {
		return Result{Lost: []Lost{}}, fmt.Errorf("repair %s: %w", dir, err)
	}
	v := &salvager{ctx: ctx, dir: dir, opts: options, sources: map[*segment.Segment]*segmentSource{}, named: losses{}, unlisted: map[uint32]bool{}}
	v.result.Lost = []Lost{}
	v.seam = seam.Of(&v.opts)
	v.base = v.seam.FS
	held, err := vfs.Hold(v.base, dir)
	if err == nil {
		v.seam.FS = held
		err = v.run(out)
		for _, src := range v.sources {
			err = errors.Join(err, src.close())
		}
		err = errors.Join(err, held.Close())
	}
	if err != nil {
		return v.result, fmt.Errorf("repair %s: %w", dir, failure.NameNoSpace(err))
	}
	return v.result, nil
}

type salvager struct {
	ctx     context.Context
	dir     string
	opts    bitcask.Options
	seam    *seam.Options      // of opts; FS holds dir
	base    vfs.FS             // as it was given
	store   [16]byte           // without a manifest, of the segments read last
	man     *manifest.Manifest // nil: none that can be read
	names   []string           // in dir
	sources map[*segment.Segment]*segmentSource
	cuts    []*cut // by next sequence, and in the order in which they were made

	unlisted map[uint32]bool // segments that the manifest has lost
	result   Result
	named    losses
	unnamed  []*hole
	last     uint64 // sequence of the record copied last
}

func (v *salvager) run(out string) error {
	ids, err := v.list()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.open(id); err != nil {
			return err
		}
	}
	if err := v.judgeTail(); err != nil {
		return err
	}
	if err := v.openRemains(); err != nil {
		return err
	}
	var list []*source
	for _, src := range v.sources {
		if !src.dropped {
			list = append(list, &source{sg: src.sg, next: v.bounded(src)})
		}
	}
	return v.write(list, out)
}

// write makes the new store, in a directory that is held like the one that is read.
func (v *salvager) write(list []*source, out string) (err error) {
	held, err := vfs.HoldNew(v.base, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	o := v.opts
	seam.Of(&o).FS = held
	w, err := newWriter(o, out)
	if err != nil {
		return err
	}
	err = mergeBySequence(list, func(sg *segment.Segment, e *format.Entry) error { return v.copy(w, v.sources[sg], e) })
	if err == nil {
		err = v.ctx.Err()
	}
	if err == nil {
		err = w.publish()
	}
	// What could not be read because the context has ended is no loss.
	if err := errors.Join(err, w.close(), v.ctx.Err()); err != nil {
		return err
	}
	return errors.Join(v.fixCounts(out, o), v.ctx.Err())
}

// list finds the segments: those that the manifest names, or all there are.
func (v *salvager) list() (ids []uint32, err error) {
	if v.names, err = v.seam.FS.List(v.dir); err != nil {
		return nil, err
	}
	// An edit that is one bit away from verifying is corrected.
	m, err := manifest.Read(v.seam.FS, v.dir, vfs.ReadOnly, func(error) error { return nil })
	if errors.Is(err, failure.ErrVersion) {
		return nil, err
	}
	var listed []uint32
	if err == nil {
		v.man, listed = m, m.Listed()
		if err := m.Close(); err != nil {
			return nil, err
		}
	}
	v.result.NoManifest = v.man == nil
	for _, name := range v.names {
		id, suffix, ok := format.ParseName(name)
		if !ok || suffix != format.DataSuffix || slices.Contains(listed, id) {
			continue
		}
		if v.man != nil {
			lost, err := v.holdsCommits(id)
			if err != nil {
				return nil, err
			}
			if !lost {
				continue
			}
			v.unlisted[id], v.result.NoManifest = true, true
		}
		ids = append(ids, id)
		if v.store == [16]byte{} {
			if v.store, err = v.headerOf(name); err != nil {
				return nil, err
			}
		}
	}
	if v.man == nil && v.store == [16]byte{} {
		return nil, fmt.Errorf("a segment with a header: %w", bitcask.ErrNotFound)
	}
	ids = append(ids, listed...)
	slices.Sort(ids)
	return ids, nil
}

// holdsCommits reports whether a segment that the manifest does not list is more than what an interrupted rotation or
// merge left: the manifest has lost an edit then. The output of a merge, whose records are copies, counts only if
// something that is listed is missing.
func (v *salvager) holdsCommits(id uint32) (held bool, err error) {
	missing := slices.ContainsFunc(v.man.Listed(), func(id uint32) bool { return !slices.Contains(v.names, format.DataName(id)) })
	lostEdit := len(v.man.Rest) > 0 || id >= v.man.NextID
	name := format.DataName(id)
	f, err := v.seam.FS.Open(filepath.Join(v.dir, name), vfs.ReadOnly)
	if errors.Is(err, syscall.EIO) {
		if missing || lostEdit {
			v.lose(v.missing(id), Lost{File: name, Reason: fmt.Sprintf("cannot be read: %v", err)})
		}
		return false, nil
	}
	if err != nil {
		if failure.IsDamage(err) {
			err = nil
		}
		return false, err
	}
	file := &unreadable{File: f, ctx: v.ctx}
	defer func() { err = errors.Join(err, file.Close()) }()
	sg := segment.New(v.man.StoreOf(id), id, file)
	size, err := file.Size()
	sg.Size.Store(size)
	if err == nil {
		err = sg.ReadHeader()
	}
	if err != nil && len(file.holes) == 0 {
		if failure.IsDamage(err) || errors.Is(err, failure.ErrForeign) {
			err = nil
		}
		return false, err
	}
	if !missing && (sg.Merged || !lostEdit) {
		return false, nil
	}
	_, frame := segment.NewFrames(sg).Next()
	return frame == nil || len(file.holes) > 0, segment.IgnoreEnd(frame) // what cannot be read may be commits
}

// headerOf reads which store made the segment in a file; zero if its header does not verify.
func (v *salvager) headerOf(name string) (store [16]byte, err error) {
	f, err := v.seam.FS.Open(filepath.Join(v.dir, name), vfs.ReadOnly)
	if errors.Is(err, syscall.EIO) { // open says that it is lost
		return store, nil
	}
	if err != nil {
		return store, err
	}
	store, err = readStore(&unreadable{File: f, ctx: v.ctx}, name)
	return store, errors.Join(err, f.Close())
}

func readStore(f vfs.File, name string) (store [16]byte, err error) {
	b := make([]byte, format.SegmentHeaderSize)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		if err == io.EOF {
			err = nil
		}
		return store, err
	}
	copy(store[:], b[16:])
	_, _, err = format.CheckSegmentHeader(b, name, store, binary.LittleEndian.Uint32(b[12:]))
	if errors.Is(err, failure.ErrVersion) {
		return store, err
	}
	if err != nil {
		store = [16]byte{}
	}
	return store, nil
}

// storeOf is the id of the store that made a segment. Without a manifest the segment's header says so: a copy has
// segments of two stores or more. One whose header does not verify counts as of the same store as the segment before
// it.
func (v *salvager) storeOf(id uint32, f vfs.File) ([16]byte, error) {
	store, err := readStore(f, format.DataName(id))
	if errors.Is(err, failure.ErrVersion) {
		return store, err
	}
	if v.man != nil {
		return v.man.StoreOf(id), nil
	}
	if store != [16]byte{} {
		v.store = store
	}
	return v.store, err
}

// open opens a segment. The header need not be good: every frame says itself
// which store, segment and offset it is for.
func (v *salvager) open(id uint32) error {
	name := format.DataName(id)
	f, err := v.seam.FS.Open(filepath.Join(v.dir, name), vfs.ReadOnly)
	if failure.IsNotExist(err) {
		v.lose(v.missing(id), Lost{File: name, Reason: "the file is missing"})
		return nil
	}
	if errors.Is(err, syscall.EIO) {
		v.lose(v.missing(id), Lost{File: name, Reason: fmt.Sprintf("cannot be read: %v", err)})
		return nil
	}
	if err != nil {
		return err
	}
	if err := vfs.Park(f); err != nil { // all segments are open at a time
		return errors.Join(err, f.Close())
	}
	file := &unreadable{File: f, ctx: v.ctx}
	f = file
	store, err := v.storeOf(id, f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	sg := segment.New(store, id, f)
	listed := v.man != nil && !v.unlisted[id]
	src := &segmentSource{v: v, sg: sg, file: file, active: listed, log: v.man != nil && slices.Contains(v.man.Tail, id)}
	v.sources[sg] = src
	v.result.Segments++
	size, err := f.Size()
	if err != nil {
		return err
	}
	sg.Size.Store(size)
	src.fr = segment.NewFrames(sg)
	if !listed {
		// Without the manifest the footer alone says whether, and how, it was sealed.
		if err := sg.ReadFooter(); err != nil && !failure.IsDamage(err) {
			return err
		}
		sg.Damaged = sg.ReadHeader() != nil
	} else if si, ok := v.man.Sealed[id]; ok {
		src.active = false
		if size < int64(si.Length) {
			v.lose(src, Lost{File: name, Offset: size, Bytes: int64(si.Length) - size, Reason: "the file is shorter than it was"})
		}
		sg.Size.Store(int64(si.Length)) // as the hint has it
		if sg.ReadHeader() != nil || sg.ReadFooter() != nil || sg.Info() != si {
			sg.Assume(si)
		}
	} else if v.man.ClosedID == id {
		src.closed = int64(v.man.ClosedLen)
		if size < src.closed {
			v.lose(src, Lost{File: name, Offset: size, Bytes: src.closed - size, Reason: "the file is shorter than it was"})
		}
	}
	if sg.Sealed() {
		src.last = sg.Info().MaxSeq
	} else if err := sg.FindContent(src.closed); err != nil {
		return err
	} else {
		if file.anyFrom(sg.Content) { // no zeros that a writer has left
			sg.Content = size
		}
		src.fr = segment.NewFrames(sg)
	}
	src.log = src.log || sg.ReadHeader() == nil && !sg.Merged
	return src.useHint()
}

// missing is the source of a segment without a file.
func (v *salvager) missing(id uint32) *segmentSource {
	src := &segmentSource{v: v, sg: segment.New(v.store, id, segment.MissingFile{})}
	if v.man != nil {
		src.last = v.man.Sealed[id].MaxSeq
	}
	return src
}

// judgeTail decides which of the unsealed segments may have a torn tail, as Open does: none that a
// later one proves to have been on disk. After a torn one nothing counts.
func (v *salvager) judgeTail() error {
	if v.man == nil {
		return nil
	}
	var tail []*segmentSource
	for _, id := range v.man.Tail {
		for sg, src := range v.sources {
			if sg.ID == id {
				tail = append(tail, src)
			}
		}
	}
	for i, src := range slices.Backward(tail) {
		fr := segment.NewFrames(src.sg)
		synced, err := fr.LastSynced()
		if err != nil {
			return err
		}
		if max(synced, src.closed) > format.SegmentHeaderSize || v.man.NothingLost() && fr.Records > 0 {
			for _, earlier := range tail[:i] {
				earlier.active = false
			}
			break
		}
	}
	for i, src := range tail {
		if !src.active || i+1 == len(tail) {
			continue
		}
		whole, err := src.endsBefore(tail[i+1].sg)
		if err != nil {
			return err
		}
		if whole {
			continue
		}
		for _, later := range tail[i+1:] {
			later.dropped = true
			v.result.Torn += later.fr.End - min(later.fr.End, format.SegmentHeaderSize)
		}
		return nil
	}
	return nil
}

// copy adds an entry to the new store, or notes that it is lost.
func (v *salvager) copy(w *writer, src *segmentSource, e *format.Entry) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	v.seam.Progress(int64(e.Size))
	if e.Seq <= v.last {
		return nil // the same record in two segments: a merge had made one from the other
	}
	records, reason, err := src.read(e)
	if err != nil {
		return err
	}
	if reason != "" {
		v.named.add(&e.Identity, Lost{
			File: src.sg.Name, Offset: int64(e.At), Bytes: int64(e.Size), Reason: reason, Named: true, Kind: e.Kind.String(),
			Namespace: e.Namespace, Key: string(e.Key), Element: string(e.Elem), Before: e.Seq + 1,
		})
		return nil
	}
	v.last = e.Seq
	if src.remains {
		v.result.Returned++
	}
	v.result.Replaced += v.named.replace(&e.Identity)
	v.result.Records++
	return w.add(records, e)
}
