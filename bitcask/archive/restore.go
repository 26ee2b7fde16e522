package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// A restored store has the segments of the base, those that were appended to after it, as far as the wanted commit, and a
// manifest that lists them. Nothing is replayed: frames stand where they stood, and every checksum still holds. The
// segment that was the active one when the base was made has a footer in the base, in whose place later frames go.
//
// The manifest is written last, so what a crash leaves is no store.

// Restored says what Restore has made.
type Restored struct {
	Moment
	Segments int   `json:"segments"`
	Bytes    int64 `json:"bytes"`
	Objects  int   `json:"objects"` // that were read
	// Damaged are objects of newer bases that were damaged or missing. The moment was made from an older base, and is whole;
	// the archive is to be looked after.
	Damaged []string `json:"damaged,omitempty"`
}

// Restore makes a store in dir, which must not exist, or be an empty directory, with the state of a moment. It is durable
// when Restore returns, but for the name of dir, and a store of its own: it has an id of its own. After an error dir is
// empty. Errors: ErrNotEmpty; *UnrestorableError, which has the *CorruptError if an object is damaged; ErrVersion; those
// of the archive, the file system, and the context. In the place of a base that is damaged an older one serves, with the log
// since then.
func Restore(ctx context.Context, from Store, dir string, t Target) (Restored, error) {
	return restore(ctx, vfs.OS(), from, dir, t)
}

func restore(ctx context.Context, fsys vfs.FS, from Store, dir string, t Target) (result Restored, err error) {
	c, err := choose(ctx, from, t)
	for n := 0; n < mostLists && failure.IsNotExist(err); n++ { // what was listed was deleted before it was read
		c, err = choose(ctx, from, t)
	}
	if err != nil {
		return result, err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return result, err
	}
	names, err := fsys.List(dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s: %w", dir, failure.ErrNotEmpty)
	}
	if err != nil {
		return result, err
	}
	var damaged []string
	var earlier error
	for {
		r := &restorer{ctx: ctx, from: from, fs: fsys, dir: dir, choice: c, open: map[uint32]*segment.Segment{}, buf: make([]byte, blockSize)}
		if err = r.run(); err == nil {
			r.result.Damaged = damaged
			return r.result, nil
		}
		if cleared := r.clear(); cleared != nil {
			return result, errors.Join(c.unrestorable(t, r.object, err), cleared)
		}
		older, ok := c.older()
		if r.object.kind == kindLog || !isGone(err) || !ok {
			return result, c.unrestorable(t, r.object, errors.Join(err, earlier))
		}
		damaged, earlier, c = append(damaged, r.object.name()), errors.Join(earlier, err), older
	}
}

// isGone says whether an object is damaged or missing.
func isGone(err error) bool { return failure.IsDamage(err) || failure.IsNotExist(err) }

// older is the same moment from the base before, if the span has one.
func (c *choice) older() (older choice, ok bool) {
	sp := *c.span
	sp.bases = slices.DeleteFunc(slices.Clone(sp.bases), func(base id) bool { return base == c.base })
	older = sp.choose(c.upTo)
	older.time = c.time
	return older, older.base.kind == kindBase
}

// clear removes what a run has left.
func (r *restorer) clear() (err error) {
	for _, sg := range r.open {
		err = errors.Join(err, sg.Close())
	}
	names, listErr := r.fs.List(r.dir)
	for _, name := range names {
		err = errors.Join(err, r.fs.Remove(filepath.Join(r.dir, name)))
	}
	return errors.Join(err, listErr)
}

// unrestorable says what can be restored instead, if an object is damaged or missing.
func (c *choice) unrestorable(t Target, object id, err error) error {
	if !isGone(err) {
		return err
	}
	e := &UnrestorableError{Want: t.String(), Object: object.name(), Err: err}
	before, after := object.first-1, uint64(0)
	if object.kind != kindLog {
		before = c.base.last - 1
	}
	for _, o := range c.span.logs {
		if o.to != 0 && o.last <= before && o.last >= c.span.First.Sequence {
			e.Before = &Moment{c.span.First.Generation, o.last, time.UnixMilli(o.to)}
		}
	}
	for _, base := range c.span.bases {
		if base != c.base && base.last <= before && (e.Before == nil || e.Before.Sequence < base.last) {
			e.Before = &Moment{c.span.First.Generation, base.last, time.UnixMilli(base.from)}
		}
		if base.last > c.upTo && after == 0 {
			after = base.last
			e.After = &Moment{c.span.First.Generation, base.last, time.UnixMilli(base.from)}
		}
	}
	if object.kind == kindLog && (e.Before == nil || e.Before.Sequence < c.base.last) {
		e.Before = &Moment{c.span.First.Generation, c.base.last, time.UnixMilli(c.base.from)}
	}
	return e
}

// restorer is one run of Restore.
type restorer struct {
	ctx  context.Context
	from Store
	fs   vfs.FS
	dir  string
	choice
	result Restored
	object id // that is read

	man      *manifest.Manifest // of the base, then of the store
	open     map[uint32]*segment.Segment
	order    []uint32 // of those, as their commits follow
	features uint16
	collided []uint64
	syncing  chan error // what the sync of the last file of the base ends with
	time     int64
	buf      []byte
}

func (r *restorer) run() error {
	if err := r.getBase(); err != nil {
		return err
	}
	for done, again := r.base.last, 0; len(r.logs) > 0; {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.object = r.logs[0]
		err := readLog(r.ctx, r.from, r.object, &visitor{mark: r.mark, frames: r.frames, manifest: r.noted})
		if failure.IsNotExist(err) && again < mostLists {
			if again++; r.listAgain(done) == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		done, again, r.logs = r.object.last, 0, r.logs[1:]
		r.result.Objects++
	}
	last, err := r.finish()
	if err == nil {
		err = r.writeManifest(last)
	}
	r.result.Moment = Moment{r.span.First.Generation, last, time.UnixMilli(cmp.Or(r.choice.time, r.time, r.base.from))}
	return err
}

// mostLists is how often in turn the objects are listed again because one is gone: the archiver may have made one of many.
const mostLists = 3

// listAgain replaces the logs by those that have the commits after a number now.
func (r *restorer) listAgain(done uint64) error {
	spans, err := Spans(r.ctx, r.from)
	if err != nil {
		return err
	}
	for _, sp := range spans {
		if sp.First.Generation == r.span.First.Generation && slices.Contains(sp.bases, r.base) && sp.Last.Sequence >= r.upTo {
			sp.bases = []id{r.base}
			r.logs = slices.DeleteFunc(sp.choose(r.upTo).logs, func(o id) bool { return o.last <= done })
			return nil
		}
	}
	return fs.ErrNotExist
}

// getBase writes the segments of the base.
func (r *restorer) getBase() (err error) {
	defer func() { err = errors.Join(err, r.synced()) }()
	r.object = r.base
	marker, err := r.from.Get(r.ctx, r.base.name())
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, newDecoder(r.base, marker))
	if err = errors.Join(err, marker.Close()); err != nil {
		return err
	}
	data := dataOf(r.base)
	r.object = data
	object, err := r.from.Get(r.ctx, data.name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	r.result.Objects += 2
	d := readAhead(newDecoder(data, object))
	defer d.stop() // before the object is closed
	for archive := tar.NewReader(d); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if errors.Is(err, tar.ErrHeader) || err == io.ErrUnexpectedEOF {
			return d.corrupt("tar archive")
		}
		if err != nil {
			return err
		}
		if err := r.extract(d, h.Name, archive); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, d); err != nil { // the end of the archive is checked, too
		return err
	}
	if r.man == nil || r.man.MaxSeq != r.base.last {
		return d.corrupt("it is not the backup that its base says")
	}
	return nil
}

// extract writes one file of the base; the manifest goes into memory, for a directory with it would be a store.
func (r *restorer) extract(d *ahead, name string, from io.Reader) (err error) {
	fsys, dir := r.fs, r.dir
	isManifest := name == format.ManifestName
	if isManifest {
		fsys, dir = vfs.NewMem(), "base"
		if err := fsys.MkdirAll(dir); err != nil {
			return err
		}
	} else if _, _, ours := format.ParseName(name); !ours {
		return d.corrupt(fmt.Sprintf("%.80q is no file of a backup", name))
	}
	f, err := fsys.Open(filepath.Join(dir, name), vfs.Create)
	if err != nil {
		return err
	}
	n, err := copyTo(r.ctx, f, from, r.buf)
	r.result.Bytes += n
	switch {
	case err != nil:
		return errors.Join(err, f.Close())
	case isManifest:
		if err = f.Close(); err == nil {
			r.man, err = manifest.Read(fsys, dir, vfs.ReadOnly, nil)
		}
		return err
	}
	err = r.synced()
	synced := make(chan error, 1)
	r.syncing = synced
	go func() { synced <- errors.Join(f.Sync(), f.Close()) }()
	return err
}

// synced waits for the file of the base that is written to the disk while the next one is extracted.
func (r *restorer) synced() (err error) {
	if r.syncing != nil {
		err, r.syncing = <-r.syncing, nil
	}
	return err
}

func (r *restorer) mark(m mark) error {
	if m.sequence <= r.upTo {
		r.time = m.time
	}
	return nil
}

func (r *restorer) noted(features uint16, collided []uint64) error {
	r.features |= features
	r.collided = append(r.collided, collided...)
	return nil
}

// frames writes frames to their segment, but for those that the base has. A segment that the base has not holds nothing but
// later commits, or nothing but earlier ones, which a merge had copied from it.
func (r *restorer) frames(header []byte, offset int64, frames *io.LimitedReader) error {
	number, store, length := binary.LittleEndian.Uint32(header[12:]), r.base.store, frames.N
	if _, _, err := format.CheckSegmentHeader(header, format.DataName(number), store, number); err != nil {
		return err
	}
	var head [format.FrameHeaderSize]byte
	if _, err := io.ReadFull(frames, head[:]); err != nil {
		return err
	}
	h, ok := format.ParseFrameHeader(head[:], format.NewChecksumSeed(store, number), uint32(offset), length)
	if !ok {
		return r.corrupt("no frame for offset %d of segment %d", offset, number)
	}
	si, inBase := r.man.Sealed[number]
	sg := r.open[number]
	if sg == nil && (inBase && offset+length <= int64(si.Length)-format.FooterSize || !inBase && h.Seq <= r.base.last) {
		return nil
	}
	if sg == nil {
		var err error
		if sg, err = r.append(number, header, si); err != nil {
			return err
		}
	}
	end := sg.Size.Load()
	if offset > end {
		return r.corrupt("frames for offset %d of segment %d, which ends at %d", offset, number, end)
	}
	from := io.MultiReader(bytes.NewReader(head[:]), frames)
	if err := r.same(sg, 0, bytes.NewReader(header)); err != nil {
		return err
	}
	if err := r.same(sg, offset, io.LimitReader(from, min(length, end-offset))); err != nil || offset+length <= end {
		return err
	}
	n, err := copyTo(r.ctx, io.NewOffsetWriter(sg.File, end), from, r.buf)
	sg.Size.Store(end + n)
	r.result.Bytes += n
	return err
}

// same makes sure that a segment has these bytes: others are of another copy of the store, that was archived to the same
// place.
func (r *restorer) same(sg *segment.Segment, offset int64, from io.Reader) error {
	want, have := make([]byte, 4<<10), make([]byte, 4<<10)
	for {
		n, err := io.ReadFull(from, want)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if n == 0 {
			return nil
		}
		if _, err := sg.File.ReadAt(have[:n], offset); err != nil && err != io.EOF {
			return err
		}
		if !bytes.Equal(want[:n], have[:n]) {
			return r.corrupt("other bytes than before for offset %d of segment %d: two copies of the store were archived at once", offset, sg.ID)
		}
		offset += int64(n)
	}
}

// append opens a segment that is appended to: one of the base, which loses its footer, or a new one.
func (r *restorer) append(number uint32, header []byte, si format.SealedInfo) (*segment.Segment, error) {
	r.order = append(r.order, number)
	if si.Length > 0 {
		sg, err := segment.Open(r.fs, r.dir, r.base.store, number, vfs.ReadWrite)
		if err == nil {
			r.open[number] = sg
			sg.Size.Store(int64(si.Length) - format.FooterSize)
		}
		return sg, err
	}
	f, err := r.fs.Open(filepath.Join(r.dir, format.DataName(number)), vfs.Create)
	if err != nil {
		return nil, err
	}
	sg := segment.New(r.base.store, number, f)
	r.open[number] = sg
	sg.Size.Store(format.SegmentHeaderSize)
	_, err = f.WriteAt(header, 0)
	return sg, err
}

// finish cuts the segments that were appended to after the wanted commit, which is the last one up to a number, and seals
// them. Every frame is verified, and that each follows the one before.
func (r *restorer) finish() (last uint64, err error) {
	last = r.base.last
	for _, number := range r.order {
		sg := r.open[number]
		fr := segment.NewFrames(sg)
		foot, end := format.Footer{}, fr.Pos
		for {
			if err := r.ctx.Err(); err != nil {
				return 0, err
			}
			_, h, _, err := fr.NextFrame()
			if err == io.EOF {
				break
			}
			if bad := (*segment.BadFrame)(nil); errors.As(err, &bad) {
				return 0, r.corrupt("segment %d: %v", number, bad)
			}
			if err != nil {
				return 0, err
			}
			if fr.MaxSeq > r.upTo {
				break
			}
			if fr.MaxSeq > r.base.last {
				if h.Seq != last+1 {
					return 0, r.corrupt("segment %d: sequence %d follows %d", number, h.Seq, last)
				}
				last = fr.MaxSeq
			}
			foot, end = format.Footer{Records: fr.Records, MinSeq: fr.MinSeq, MaxSeq: fr.MaxSeq}, fr.Pos
		}
		if err := r.seal(sg, foot, end); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// seal ends a segment; one without a commit goes.
func (r *restorer) seal(sg *segment.Segment, foot format.Footer, end int64) error {
	delete(r.open, sg.ID)
	if foot.Records == 0 {
		return errors.Join(sg.Close(), r.fs.Remove(filepath.Join(r.dir, sg.Name)))
	}
	err := sg.File.Truncate(end)
	if err == nil {
		sg.Size.Store(end)
		err = sg.AppendFooter(foot)
	}
	r.man.Sealed[sg.ID] = sg.Info()
	return errors.Join(err, sg.Close())
}

// writeManifest makes a store of the segments: one of its own, that has them from the store of the archive.
func (r *restorer) writeManifest(last uint64) error {
	m, from := r.man, r.base.store
	below := uint32(1)
	for number := range m.Sealed {
		below = max(below, number+1)
	}
	for _, hash := range r.collided {
		m.Collided[hash>>format.SpareHashBits] = true
	}
	m.Features |= manifest.Features(r.features)
	if n := len(m.Origins); n > 0 && m.Origins[n-1].Store == from { // the base has it from there, too
		m.Origins = m.Origins[:n-1]
	}
	m.Inherit(from, below, last)
	var err error
	if m.Store, _, err = manifest.NewIdentity(); err != nil {
		return err
	}
	m.FS, m.Dir, m.MaxSeq = r.fs, r.dir, last
	r.result.Segments = len(m.Sealed)
	if err := r.fs.SyncDir(r.dir); err != nil {
		return err
	}
	return errors.Join(m.Rewrite(), m.Close())
}

// corrupt says that the objects do not fit each other.
func (r *restorer) corrupt(reason string, args ...any) error {
	return &failure.CorruptError{File: r.object.name(), Reason: fmt.Sprintf(reason, args...)}
}
