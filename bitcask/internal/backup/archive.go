package backup

import (
	"archive/tar"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// A backup as a stream is a tar archive of the directory that Backup would have made: segments, their hints, and the
// manifest as the last file. A truncated archive has no manifest, and Open refuses a directory without one.
//
// Unsealed segments are read twice: they must verify before they are sealed in the archive. They have no hints there;
// the first opening of the copy makes them.

// Archive writes the copy to w.
func Archive(src *Source, w io.Writer) (Result, error) {
	a := &archive{backup: backup{Source: src, temp: "backup"}, tar: tar.NewWriter(w), made: time.Now().Truncate(time.Second)}
	err := a.run()
	return a.result, err
}

// archive is a backup that goes to a stream.
type archive struct {
	backup
	tar  *tar.Writer
	made time.Time
}

func (a *archive) run() error {
	list, next, release, err := a.Cut()
	if err != nil {
		return err
	}
	defer release()
	a.sealed = make(map[uint32]format.SealedInfo, len(list))
	for _, c := range list {
		if c.Frames > 0 {
			err = a.addUnsealed(c)
		} else {
			err = a.addSealed(c.Segment)
		}
		if err != nil {
			return err
		}
	}
	a.result.Sequence, a.result.Segments = next-1, len(list)
	if err := a.addManifest(next - 1); err != nil {
		return err
	}
	return a.tar.Close()
}

// addSealed adds a sealed segment, and its hint if there is one.
func (a *archive) addSealed(sg *segment.Segment) (err error) {
	size := sg.Size.Load()
	if err := a.add(sg.Name, sg.File, size, nil); err != nil {
		return err
	}
	a.sealed[sg.ID] = sg.Info()
	a.result.copied(size)
	if a.NoHints {
		return nil
	}
	name := format.HintName(sg.ID)
	hint, err := a.FS.Open(filepath.Join(a.Dir, name), vfs.ReadOnly)
	if failure.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hint.Close()) }() // also if w panics
	length, err := hint.Size()
	if err != nil {
		return err
	}
	return a.add(name, hint, length, nil)
}

// addUnsealed adds the frames of a segment and a footer.
func (a *archive) addUnsealed(c commitlog.CutSegment) error {
	sg := segment.New(c.StoreID, c.ID, c.File)
	sg.Nonce = c.Nonce
	sg.Size.Store(c.Frames)
	if err := a.verifyFrames(sg, c.Foot); err != nil {
		return err
	}
	foot, frame, err := sg.NewFooter(c.Foot)
	if err == nil {
		err = a.add(sg.Name, sg.File, c.Frames, frame)
	}
	if err != nil {
		return err
	}
	sg.Footer = foot
	sg.Size.Add(format.FooterSize)
	a.sealed[sg.ID] = sg.Info()
	a.result.copied(sg.Size.Load())
	return nil
}

// verifyFrames reads the frames of a segment and compares them with what its footer will say.
func (a *archive) verifyFrames(sg *segment.Segment, foot format.Footer) error {
	fr, err := segment.NewFrames(sg), error(nil)
	for err == nil {
		if err = a.Ended(); err == nil {
			_, err = fr.Next()
		}
	}
	if bad := (*segment.BadFrame)(nil); errors.As(err, &bad) {
		return &failure.CorruptError{File: sg.Name, Offset: bad.At, Reason: bad.Reason}
	}
	if err != io.EOF {
		return err
	}
	if read := (format.Footer{Records: fr.Records, MinSeq: fr.MinSeq, MaxSeq: fr.MaxSeq}); !read.Same(foot) {
		return &failure.CorruptError{File: sg.Name, Offset: fr.Pos, Reason: "its records are not those that were written"}
	}
	return nil
}

// addManifest adds the manifest of the copy, which is made in memory.
func (a *archive) addManifest(maxSeq uint64) (err error) {
	if a.to, err = vfs.HoldNew(vfs.NewMem(), a.temp); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.to.Close()) }()
	if err := a.writeManifest(maxSeq); err != nil {
		return err
	}
	f, err := a.to.Open(filepath.Join(a.temp, manifest.FileName), vfs.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	return a.add(manifest.FileName, f, size, nil)
}

// add adds a file: the first bytes of another one, and what comes after them.
func (a *archive) add(name string, from vfs.File, size int64, rest []byte) error {
	err := a.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size + int64(len(rest)), Mode: 0o600, ModTime: a.made, Format: tar.FormatUSTAR,
	})
	if err == nil {
		err = a.eachPiece(from, name, size, func(piece []byte, _ int64) error {
			_, err := a.tar.Write(piece)
			return err
		})
	}
	if err == nil {
		_, err = a.tar.Write(rest)
	}
	return err
}
