package cli

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/vfs"
)

// An archive is written to a directory of another name first, checked there like any backup, and gets its name when all
// of it is intact and on disk. So nothing of a damaged archive is left, and one on the standard input, which cannot be
// read twice, is read once.

// compressions are the first bytes of archives that must go through another program first. They are recognised so that
// the error can say by which, with the command line.
var compressions = []struct{ magic, program string }{{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\xfd7zXZ", "xz"}}

// archive restores the archive in a file, or on the standard input. The directory with the partial name is left over if
// the process is killed at any step, and only then: any error removes it. The order is that of trust: extract and
// sync the files, check them as a store, sync their names, rename.
func (r *restore) archive(ctx context.Context) (err error) {
	in := r.t.In
	if r.from == "-" {
		reading, done := context.WithCancel(ctx)
		defer done()
		in = terminal.NewReader(reading, in) // a pipe that brings nothing more must not hold up an interrupt
	} else {
		f, err := os.Open(r.from)
		if err != nil {
			return r.failed(exitOpen, err)
		}
		defer f.Close() // only read
		in = f
		if info, err := f.Stat(); err == nil {
			r.bar.Next("extract", info.Size())
		}
	}
	// Asked before the archive is read, which may be long, and again by Mkdir and the rename.
	partial := filepath.Clean(r.out) + ".partial"
	if err := maybeNew(r.out, partial); err != nil {
		return r.failed(exitCommand, err)
	}
	if err := os.Mkdir(partial, 0o700); err != nil {
		return r.failed(exitCommand, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if err := r.extract(ctx, in, partial); err != nil {
		return err
	}
	// What was extracted is judged like any store: an archive of something else has no manifest, for instance.
	store, first, findings, err := r.check(ctx, partial)
	switch {
	case store == nil && isDamage(err):
		return r.failed(exitDamage, fmt.Errorf("what the archive has is no whole store: %w; extract it with tar, and stave repair copies what is left", err))
	case store == nil:
		return r.failed(exitOpen, err)
	}
	r.result.Sequence = store.Stats().Sequence
	if err = errors.Join(err, store.Close()); err == nil && findings > 0 {
		return r.failed(exitDamage, fmt.Errorf("%v; %d findings in all: extract it with tar, and stave repair copies what is left", first, findings))
	}
	if err != nil {
		return r.failed(exitCommand, err)
	}
	// The files are synced one by one as they are written; with their names on disk the directory may get its own.
	if err = vfs.OS().SyncDir(partial); err == nil {
		err = publish(partial, r.out)
	}
	return r.failed(exitCommand, err)
}

// extract writes the files of an archive to a directory. They are on disk, but for their names. An archive is not
// trusted: only regular files with a name of one element are taken, so nothing can be written elsewhere, over another
// file, or through a link; a sparse one could claim to be larger than any disk. The sum of lengths is bounded by what
// there is to read. An archive that ends early is damage, one that is none at all is an error of opening.
func (r *restore) extract(ctx context.Context, in io.Reader, dir string) error {
	// The reader's buffer is what lets the beginning be looked at before it is read as tar.
	buffered := bufio.NewReaderSize(in, 1<<20)
	for _, c := range compressions {
		if begin, err := buffered.Peek(len(c.magic)); err == nil && string(begin) == c.magic {
			return r.failed(exitOpen, fmt.Errorf("it is compressed: %s -dc FILE | stave restore - %s", c.program, r.out))
		}
	}
	// The name of the first file is followed by zeros. What is too short for a header is an archive only if it begins so.
	begin, _ := buffered.Peek(100) // tar's reader has the error
	isArchive := bytes.IndexByte(begin, 0) > 0
	for files, archive := 0, tar.NewReader(buffered); ; files++ {
		// What an error means depends on whether any file has come: before that it is no archive, later a damaged one.
		h, err := archive.Next()
		switch {
		case err == io.EOF && files > 0:
			return nil
		case err != nil && ctx.Err() != nil: // what has come by then says nothing of the rest
			return r.failed(exitCommand, err)
		case files == 0 && (errors.Is(err, tar.ErrHeader) || !isArchive) || err == io.EOF:
			return r.failed(exitOpen, errors.New("it is neither the directory of a backup nor an archive that stave backup has written"))
		case errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF):
			return r.failed(exitDamage, fmt.Errorf("the archive is damaged, or cut off, after %d files: %w", files, err))
		case err != nil:
			return r.failed(exitCommand, err)
		}
		name := path.Clean(h.Name)
		if h.Typeflag == tar.TypeDir && name == "." { // by tar itself, of a directory
			continue
		}
		// A sparse file is one of several forms of tar's, by a header of its own; package tar reads its zeros from
		// nowhere.
		sparse := slices.ContainsFunc(slices.Collect(maps.Keys(h.PAXRecords)), func(k string) bool { return strings.HasPrefix(k, "GNU.sparse") })
		if h.Typeflag != tar.TypeReg || sparse || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\:`) {
			return r.failed(exitOpen, fmt.Errorf("%.80q is no file of a backup", h.Name))
		}
		if err := r.extractFile(ctx, archive, filepath.Join(dir, name)); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".data") {
			r.result.Segments++
			r.result.Copied++
			r.result.BytesCopied += h.Size
		}
	}
}

// extractFile writes one file, which must not be there yet, and syncs it. An interrupt is noticed after each megabyte.
// The status tells a damaged archive from a disk that cannot be written.
func (r *restore) extractFile(ctx context.Context, from io.Reader, name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return r.failed(exitCommand, err)
	}
	status := exitCommand
	for buf := make([]byte, 1<<20); err == nil; {
		var n int
		n, err = from.Read(buf)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			status, err = exitDamage, fmt.Errorf("the archive is cut off within %s: %w", filepath.Base(name), err)
		}
		if _, writeErr := f.Write(buf[:n]); writeErr != nil {
			status, err = exitCommand, writeErr
		}
		r.bar.Add(int64(n))
		if ctx.Err() != nil {
			err = ctx.Err()
		}
	}
	if err == io.EOF {
		err = f.Sync()
	}
	return r.failed(status, errors.Join(err, f.Close()))
}
