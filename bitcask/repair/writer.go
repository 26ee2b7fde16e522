package repair

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/seam"
)

// writer writes the segments of a new store. The manifest names them
// only when all are on disk: a crash before leaves an empty store.
type writer struct {
	opts bitcask.Options
	seam seam.Options // of opts
	dir  string
	lock io.Closer
	man  *manifest.Manifest
	out  *segment.Writer
	done []format.SealedInfo
}

func newWriter(o bitcask.Options, dir string) (w *writer, err error) {
	w = &writer{opts: o, seam: *seam.Of(&o), dir: dir}
	fsys := w.seam.FS
	if err := files.SyncNames(fsys, dir); err != nil {
		return nil, err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("%s: %w", dir, bitcask.ErrNotEmpty)
	}
	if w.lock, err = fsys.Lock(filepath.Join(dir, format.LockName)); err != nil {
		return nil, err
	}
	store, seed, err := manifest.NewIdentity()
	if err == nil {
		w.man, err = manifest.Create(fsys, dir, store, seed)
	}
	if err != nil {
		return nil, errors.Join(err, w.lock.Close())
	}
	return w, nil
}

// add writes an entry: a record and its followers.
func (w *writer) add(records []format.Record, e *format.Entry) error {
	if w.out != nil && w.out.Full(int(e.Size)) {
		if err := w.seal(); err != nil {
			return err
		}
	}
	if w.out == nil {
		var err error
		o := segment.WriterOptions{FS: w.seam.FS, Limit: w.opts.SegmentSize, Hint: !w.seam.NoHints, Room: func(int64) error { return nil }}
		if w.out, err = segment.NewWriter(o, w.dir, w.man.Store, uint32(len(w.done)+1)); err != nil {
			return err
		}
	}
	if err := w.man.Need(manifest.FeatureOf(&e.Identity)); err != nil {
		return err
	}
	at, err := w.out.Begin(int(e.Size), e.Seq)
	if err != nil {
		return err
	}
	for i := range records {
		w.out.Add(&records[i], e.Seq+uint64(i))
	}
	return w.out.Note(&records[0], e.Seq, at)
}

// seal finishes the segment being written.
func (w *writer) seal() error {
	if w.out == nil {
		return nil
	}
	if err := w.out.Finish(); err != nil {
		return err
	}
	sg := w.out.Segment
	w.out = nil
	w.done = append(w.done, sg.Info())
	return sg.Close()
}

func (w *writer) publish() error {
	if err := w.seal(); err != nil {
		return err
	}
	return w.man.Log(manifest.EditSwap, manifest.SwapBody(nil, w.done))
}

func (w *writer) close() error {
	var err error
	if w.out != nil {
		err = w.out.Abandon()
	}
	return errors.Join(err, w.man.Close(), w.lock.Close())
}
