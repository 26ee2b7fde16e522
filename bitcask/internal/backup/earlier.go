package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// An earlier backup of the same store, on the disk of the new one, spares copying the segments that it has already:
// they get a second name in the new one, which is as whole as any. Each of them is read first, and must verify to its
// last byte: what has rotted there is copied from the store.
//
// Store and id do not tell one segment from another, for copies of a directory continue the same segments. So header
// and footer must be the same ones, in which each has a random number; where it has none, as if a merge has written it,
// all bytes must be.

// earlier is an earlier backup.
type earlier struct {
	dir  string
	held *vfs.Held
	man  *manifest.Manifest
}

// openEarlier opens the earlier backup, if there is one.
func (b *backup) openEarlier() (err error) {
	if b.Earlier == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("earlier backup %s: %w", b.Earlier, err), b.earlier.close())
		}
	}()
	b.earlier = &earlier{dir: filepath.Clean(b.Earlier)}
	if b.earlier.held, err = vfs.Hold(vfs.Outside(b.FS.Base()), b.earlier.dir); err != nil {
		return err
	}
	if b.earlier.man, err = manifest.Read(b.earlier.held, b.earlier.dir, vfs.ReadOnly, nil); err != nil {
		return err
	}
	if !related(b.earlier.man, b.Manifest()) {
		return fmt.Errorf("it is of another store: %w", failure.ErrForeign)
	}
	return nil
}

func (e *earlier) close() error {
	if e == nil || e.held == nil {
		return nil
	}
	err := e.held.Close()
	if e.man != nil {
		err = errors.Join(err, e.man.Close())
	}
	return err
}

// related reports whether one store is a copy of the other, or both are of a third one.
func related(a, b *manifest.Manifest) bool {
	ids := func(m *manifest.Manifest) (list [][16]byte) {
		for _, in := range m.Origins {
			list = append(list, in.Store)
		}
		return append(list, m.Store)
	}
	return slices.ContainsFunc(ids(a), func(id [16]byte) bool { return slices.Contains(ids(b), id) })
}

// reuse gives a sealed segment of the earlier backup a name in the new one, if it is the same one and sound.
func (b *backup) reuse(sg *segment.Segment) (done bool, err error) {
	e := b.earlier
	if e == nil {
		return false, nil
	}
	if si, listed := e.man.Sealed[sg.ID]; !listed || si != sg.Info() || e.man.StoreOf(sg.ID) != sg.StoreID {
		return false, nil
	}
	there, err := segment.Open(e.held, e.dir, sg.StoreID, sg.ID, vfs.ReadOnly)
	if err != nil {
		b.result.Damaged++ // it is listed, and does not open
		return false, nil
	}
	same, err := b.sameSegment(there, sg)
	if err := errors.Join(err, there.Close()); err != nil || !same {
		return false, err
	}
	err = e.held.LinkTo(filepath.Join(e.dir, sg.Name), b.to, filepath.Join(b.temp, sg.Name))
	if vfs.CannotLink(err) || failure.IsNotExist(err) { // it is on another disk; or a merge has removed it, in a backup that somebody uses
		return false, nil
	}
	if err == nil {
		b.result.Reused++
		b.result.BytesReused += sg.Size.Load()
	}
	return err == nil, err
}

// sameSegment reports whether a segment of the earlier backup verifies and is the one of the store. Errors are those of
// ending the backup.
func (b *backup) sameSegment(there, sg *segment.Segment) (bool, error) {
	sound, err := b.sound(there, sg)
	if err != nil || !sound {
		if err == nil {
			b.result.Damaged++
		}
		return false, err
	}
	size := sg.Size.Load()
	for _, part := range [][2]int64{{0, format.SegmentHeaderSize}, {size - format.FooterSize, size}} {
		if part[0] == 0 && sg.Nonce == 0 {
			part[1] = size
		}
		same, err := b.sameBytes(there.File, sg.File, part[0], part[1])
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// sound reports whether a segment verifies from its header to its footer.
func (b *backup) sound(there, sg *segment.Segment) (bool, error) {
	if there.Size.Load() != sg.Size.Load() || there.ReadFooter() != nil {
		return false, nil
	}
	fr := segment.NewFrames(there)
	for {
		if err := b.Ended(); err != nil {
			return false, err
		}
		_, err := fr.Next()
		if err == io.EOF {
			return fr.HasFooter && fr.Foot == there.Footer && (format.Footer{Records: fr.Records, MinSeq: fr.MinSeq, MaxSeq: fr.MaxSeq}).Same(there.Footer), nil
		}
		if err != nil { // also one of reading: the store has the segment
			return false, nil
		}
	}
}

// sameBytes compares a part of two files. One that cannot be read is not the same.
func (b *backup) sameBytes(one, other vfs.File, from, to int64) (bool, error) {
	const piece = 64 << 10
	x, y := make([]byte, piece), make([]byte, piece)
	for ; from < to; from += piece {
		if err := b.Ended(); err != nil {
			return false, err
		}
		n := min(piece, to-from)
		if _, err := one.ReadAt(x[:n], from); err != nil && err != io.EOF {
			return false, nil
		}
		if _, err := other.ReadAt(y[:n], from); err != nil && err != io.EOF {
			return false, nil
		}
		if !bytes.Equal(x[:n], y[:n]) {
			return false, nil
		}
	}
	return true, nil
}
