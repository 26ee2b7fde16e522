package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stavedb/stave/internal/vfs"
)

// A Directory is a Store in a directory, best one of another disk or machine. An object is a file, whose name before the
// slash is a directory in it.
//
// What a crash leaves: a file NAME.tmp, which is no object and goes with the next Put of an object in the same directory.
type Directory struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex      // guards clean
	clean map[string]bool // directories that have no temporary files of another process
}

// tempSuffix ends the names of files that are being written.
const tempSuffix = ".tmp"

// OpenDirectory is the archive in dir. The first Put makes dir, and so on; what dir is in must be there.
func OpenDirectory(dir string) (*Directory, error) { return openDirectory(vfs.OS(), dir) }

func openDirectory(fsys vfs.FS, dir string) (*Directory, error) {
	dir = filepath.Clean(dir)
	if _, err := fsys.List(filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("archive %s: %w", dir, err)
	}
	return &Directory{fs: fsys, dir: dir, clean: map[string]bool{}}, nil
}

// Put writes a temporary file, syncs it, renames it, and syncs the directory.
func (d *Directory) Put(ctx context.Context, name string, r io.Reader) error {
	file := d.file(name)
	if err := d.prepare(filepath.Dir(file)); err != nil {
		return err
	}
	temp := file + tempSuffix
	f, err := vfs.Temporary(d.fs, temp)
	if err != nil {
		return err
	}
	_, err = copyTo(ctx, f, r, make([]byte, blockSize))
	if err := vfs.Publish(d.fs, f, temp, file, err); err != nil {
		return err
	}
	return d.fs.SyncDir(filepath.Dir(file))
}

// prepare makes a directory of objects, and removes what a crash has left there.
func (d *Directory) prepare(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clean[dir] {
		return nil
	}
	if err := d.fs.MkdirAll(dir); err != nil {
		return err
	}
	for _, above := range []string{filepath.Dir(d.dir), d.dir} { // also if they are there: a crash may have been before this
		if err := d.fs.SyncDir(above); err != nil {
			return err
		}
	}
	names, err := d.fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, tempSuffix) {
			if err := d.fs.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	d.clean[dir] = true
	return nil
}

// Get opens the file.
func (d *Directory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	f, err := d.fs.Open(d.file(name), vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, size), f}, nil
}

// List lists the directories that may have such names. What is not of an archive is left out.
func (d *Directory) List(ctx context.Context, prefix string) (list []Object, err error) {
	folders, err := d.fs.List(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was put yet
	}
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if _, ok := parseGeneration(folder); !ok || !strings.HasPrefix(folder+"/", prefix[:min(len(prefix), len(folder)+1)]) {
			continue
		}
		names, err := d.fs.List(filepath.Join(d.dir, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, name := range names {
			name = path.Join(folder, name)
			if !strings.HasPrefix(name, prefix) || strings.HasSuffix(name, tempSuffix) {
				continue
			}
			size, err := d.size(name)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrNotRegular) {
				continue
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			list = append(list, Object{name, size})
		}
	}
	return list, nil
}

func (d *Directory) size(name string) (int64, error) {
	f, err := d.fs.Open(d.file(name), vfs.ReadOnly)
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	return size, errors.Join(err, f.Close())
}

// Delete removes the file, and its directory with the last one: others have files, and cannot be removed.
func (d *Directory) Delete(_ context.Context, name string) error {
	file := d.file(name)
	if err := d.fs.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(file)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fs.RemoveDir(folder) == nil { // an empty one that stays does no harm
		delete(d.clean, folder)
	}
	return nil
}

func (d *Directory) file(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

// String is the path.
func (d *Directory) String() string { return d.dir }

// copyTo writes all that r has to a file, from its beginning, in pieces as long as buf.
func copyTo(ctx context.Context, f io.WriterAt, r io.Reader, buf []byte) (at int64, err error) {
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if _, err := f.WriteAt(buf[:n], at); err != nil {
				return at, err
			}
			at += int64(n)
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return at, nil
		case err != nil:
			return at, err
		case ctx.Err() != nil:
			return at, ctx.Err()
		}
	}
}
