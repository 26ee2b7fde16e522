package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// copyPiece is how many bytes are copied at a time.
const copyPiece = 1 << 20

// partialSuffix is what the name of a backup ends with until it is whole.
const partialSuffix = ".partial"

// Directory makes a copy of the store in dir, which must not exist, or be an empty directory; its parent must exist.
func Directory(src *Source, dir string) (Result, error) {
	dir = filepath.Clean(dir)
	b := &backup{Source: src, dir: dir, temp: dir + partialSuffix}
	err := b.run()
	return b.result, err
}

// backup is one in the making.
type backup struct {
	*Source
	parent    *vfs.Held // of dir
	to        *vfs.Held // of temp
	earlier   *earlier  // nil: none
	dir, temp string
	sealed    map[uint32]format.SealedInfo // the segments of the copy
	buf       []byte
	result    Result
}

func (b *backup) run() (err error) {
	if way, err := filepath.Rel(b.Dir, b.dir); err == nil && way != "." && filepath.IsLocal(way) {
		return fmt.Errorf("%w: a copy cannot be within the directory of the store", fs.ErrInvalid)
	}
	parent := filepath.Dir(b.dir)
	if b.parent, err = vfs.Hold(vfs.Outside(b.FS.Base()), parent); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.parent.Close()) }()
	if names, err := b.parent.List(b.dir); err == nil && len(names) > 0 {
		return failure.ErrNotEmpty
	} else if err != nil && !failure.IsNotExist(err) {
		return err
	}
	if err := b.openEarlier(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.earlier.close()) }()
	if _, err := leftovers(b.parent, b.temp); err != nil {
		return err
	}
	if err := b.parent.MkdirAll(b.temp); err != nil {
		return err
	}
	if b.to, err = vfs.Hold(b.parent, b.temp); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.to.Close()) }()
	lock, err := b.to.Lock(filepath.Join(b.temp, format.LockName))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%w: %w", failure.ErrLocked, err)
	}
	if err != nil {
		return errors.Join(err, b.removeTemp())
	}
	if err = b.fill(); err == nil {
		// Within the lock: no other backup may take the directory for a leftover.
		err = b.publish()
	}
	if err != nil {
		return errors.Join(err, b.removeTemp(), lock.Close())
	}
	return errors.Join(b.parent.SyncDir(parent), lock.Close())
}

// publish gives the copy its name, if it still has the one under which it was made.
func (b *backup) publish() error {
	where, err := b.to.Where()
	if err == nil && where != vfs.Here {
		err = fmt.Errorf("%w: %s, while the backup was made", failure.ErrDirectoryGone, b.temp)
	}
	if err != nil {
		return err
	}
	return b.parent.RenameDir(b.temp, b.dir)
}

// fill makes the copy in the temporary directory, durably but for its name.
func (b *backup) fill() error {
	if err := b.clear(); err != nil {
		return err
	}
	list, next, release, err := b.Cut()
	if err != nil {
		return err
	}
	defer release()
	b.sealed = make(map[uint32]format.SealedInfo, len(list))
	for _, c := range list {
		if err := b.Ended(); err != nil {
			return err
		}
		if c.Frames > 0 {
			err = b.copyUnsealed(c)
		} else {
			b.sealed[c.ID] = c.Info()
			err = b.linkSegment(c.Segment)
		}
		if err != nil {
			return err
		}
	}
	b.result.Sequence, b.result.Segments = next-1, len(list)
	return b.writeManifest(next - 1)
}

// linkSegment gives a sealed segment and its hint a name in the copy.
func (b *backup) linkSegment(sg *segment.Segment) error {
	size := sg.Size.Load()
	if done, err := b.reuse(sg); err != nil {
		return err
	} else if done {
		b.Read(size)
		if b.NoHints {
			return nil
		}
		return b.linkHint(format.HintName(sg.ID))
	}
	err := b.link(sg.Name)
	// Alongside a live writer the name may be gone; the open file is not.
	if vfs.CannotLink(err) || b.ReadOnly && failure.IsNotExist(err) {
		err = b.copyFile(sg.File, sg.Name, size)
		b.result.copied(size)
	} else {
		b.result.Linked++
		b.result.BytesLinked += size
		b.Read(size)
	}
	if err != nil || b.NoHints {
		return err
	}
	return b.linkHint(format.HintName(sg.ID))
}

// linkHint is linkSegment for the hint, if there is one.
func (b *backup) linkHint(name string) error {
	err := b.link(name)
	if failure.IsNotExist(err) {
		return nil
	}
	if !vfs.CannotLink(err) {
		return err
	}
	f, err := b.FS.Open(filepath.Join(b.Dir, name), vfs.ReadOnly)
	if failure.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		err = b.copyFile(f, name, size)
	}
	return errors.Join(err, f.Close())
}

func (b *backup) link(name string) error {
	return b.FS.LinkTo(filepath.Join(b.Dir, name), b.to, filepath.Join(b.temp, name))
}

func (r *Result) copied(bytes int64) {
	r.Copied++
	r.BytesCopied += bytes
}

// copyFile makes a file with the first bytes of another one, on disk but for its name.
func (b *backup) copyFile(from vfs.File, name string, size int64) error {
	f, err := b.copyBytes(from, name, size)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyBytes is copyFile without the sync.
func (b *backup) copyBytes(from vfs.File, name string, size int64) (_ vfs.File, err error) {
	f, err := b.to.Open(filepath.Join(b.temp, name), vfs.Create)
	if err != nil {
		return nil, err
	}
	err = b.eachPiece(from, name, size, func(piece []byte, at int64) error {
		_, err := f.WriteAt(piece, at)
		if wb, ok := f.(vfs.WriteBacker); ok && err == nil {
			wb.WriteBack(at, int64(len(piece)))
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// eachPiece reads the first bytes of a file, a piece at a time, until the backup is to end.
func (b *backup) eachPiece(from vfs.File, name string, size int64, do func(piece []byte, at int64) error) error {
	b.buf = slices.Grow(b.buf[:0], int(min(size, copyPiece)))
	for at := int64(0); at < size; {
		if err := b.Ended(); err != nil {
			return err
		}
		piece := b.buf[:min(size-at, copyPiece)]
		n, err := from.ReadAt(piece, at)
		switch {
		case err == io.EOF && n < len(piece):
			return &failure.CorruptError{File: name, Offset: at + int64(n), Reason: "file is shorter than it was"}
		case err != nil && err != io.EOF:
			return err
		}
		if err := do(piece, at); err != nil {
			return err
		}
		b.Read(int64(n))
		at += int64(n)
	}
	return nil
}

// copyUnsealed copies the frames of a segment and seals the copy. Its bytes are read once more, for the hint: a copy
// that does not verify must not be sealed.
func (b *backup) copyUnsealed(c commitlog.CutSegment) error {
	f, err := b.copyBytes(c.File, c.Name, c.Frames)
	if err != nil {
		return err
	}
	sg := segment.New(c.StoreID, c.ID, f)
	sg.Nonce = c.Nonce
	sg.Size.Store(c.Frames)
	if err = sg.AppendFooter(c.Foot); err == nil {
		sg.MarkSealed()
		b.sealed[sg.ID] = sg.Info()
		b.result.copied(sg.Size.Load())
		err = b.verify(sg)
	}
	return errors.Join(err, f.Close())
}

// verify reads a sealed copy, and writes its hint unless the store has none.
func (b *backup) verify(sg *segment.Segment) error {
	fr, err := segment.NewFrames(sg), error(nil)
	if b.NoHints {
		for err == nil {
			_, err = fr.Next()
		}
		if err == io.EOF {
			err = nil
		}
	} else {
		err = b.writeHint(sg, fr)
	}
	if bad := (*segment.BadFrame)(nil); errors.As(err, &bad) {
		return &failure.CorruptError{File: sg.Name, Offset: bad.At, Reason: bad.Reason}
	}
	if read := (format.Footer{Records: fr.Records, MinSeq: fr.MinSeq, MaxSeq: fr.MaxSeq}); err == nil && !read.Same(sg.Footer) {
		return &failure.CorruptError{File: sg.Name, Offset: sg.Size.Load(), Reason: "its records are not those that were written"}
	}
	return err
}

func (b *backup) writeHint(sg *segment.Segment, fr *segment.Frames) error {
	w, err := segment.NewHintWriter(b.to, b.temp, sg)
	if err != nil {
		return err
	}
	if err := w.AddAll(fr, func() bool { return b.Ended() != nil }); err != nil {
		if errors.Is(err, failure.ErrCancelled) {
			err = b.Ended()
		}
		return errors.Join(err, w.Abandon())
	}
	return w.Finish()
}

// writeManifest makes the copy a store: one with an id of its own, of which all segments are sealed.
func (b *backup) writeManifest(maxSeq uint64) error {
	store, _, err := manifest.NewIdentity()
	if err != nil {
		return err
	}
	below := uint32(1)
	for id := range b.sealed {
		below = max(below, id+1)
	}
	m := b.Manifest() // hashes shared since the cut do no harm
	from := m.Store
	m.FS, m.Dir, m.Store, m.Sealed, m.MaxSeq = b.to, b.temp, store, b.sealed, maxSeq
	m.Inherit(from, below, maxSeq)
	if err := m.Rewrite(); err != nil {
		return err
	}
	return m.Close()
}

// leftovers is what a backup that was interrupted has left in the temporary directory, but for the lock. It is an error
// if there is anything else: then the directory is not ours to clear.
func leftovers(fsys vfs.FS, temp string) (list []string, err error) {
	names, err := fsys.List(temp)
	if err != nil && !failure.IsNotExist(err) {
		return nil, err
	}
	for _, name := range names {
		_, _, ours := format.ParseName(name)
		switch {
		case name == format.LockName:
		case ours, name == segment.HintTemp, name == manifest.FileName, name == manifest.TempName:
			list = append(list, name)
		default:
			return nil, fmt.Errorf("%s in %s is of no backup: %w", name, temp, failure.ErrNotEmpty)
		}
	}
	return list, nil
}

func (b *backup) clear() error {
	names, err := leftovers(b.to, b.temp)
	for _, name := range names {
		err = errors.Join(err, b.to.Remove(filepath.Join(b.temp, name)))
	}
	return err
}

// removeTemp removes the temporary directory after a failure; what cannot be removed, the next backup of that name
// does.
func (b *backup) removeTemp() error {
	// Once renamed, by us or by another process, it is not ours to remove: a rename that fails may have
	// been made.
	where, err := b.to.Where()
	if err != nil || where != vfs.Here {
		return err
	}
	if err = b.clear(); err == nil {
		err = b.to.Remove(filepath.Join(b.temp, format.LockName))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = b.parent.RemoveDir(b.temp)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
