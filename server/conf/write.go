package conf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// ErrChanged is returned by Write for a file that somebody else has changed since it was read.
var ErrChanged = errors.New("it was changed by somebody else meanwhile; repeat the command")

// Write replaces the file on disk at once: whoever reads it, or a crash, meets the old text or the new one, never a
// part. The permissions stay. A symbolic link stays one: the file that it leads to is replaced. A file that has been
// changed since it was read, or would become longer than MaxFile, is left alone. A kill may leave a file of that name
// with ".tmp" after it.
func (f *File) Write() (err error) {
	text := f.String()
	if len(text) > MaxFile {
		return fmt.Errorf("rewriting %s: it would have more than %d bytes, and could not be read again", f.path, MaxFile)
	}
	path, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", f.path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", f.path, err)
	}
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", f.path, err)
	}
	renamed := false
	defer func() {
		if err != nil && !renamed {
			err = errors.Join(fmt.Errorf("rewriting %s: %w", f.path, err), os.Remove(temp.Name()))
		}
	}()
	_, err = temp.WriteString(text)
	if err == nil {
		err = temp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = temp.Sync() // before the rename: a crash after it must not leave an empty file
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if now, readErr := os.ReadFile(path); readErr != nil || string(now) != f.source {
		return errors.Join(ErrChanged, readErr)
	}
	if err = os.Rename(temp.Name(), path); err != nil {
		return err
	}
	renamed, f.source = true, text
	if err = syncDir(dir); err != nil {
		return fmt.Errorf("rewriting %s: the new text is there, and may be lost by a power cut: %w", f.path, err)
	}
	return nil
}

// syncDir makes a rename durable. Windows has no such call, and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
