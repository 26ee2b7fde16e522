package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The places of new stores: backup, restore and repair make one, and must not make it within the store that they read,
// whose files they would then find among the others.

// placeOutside returns where a new store is to be made: where out leads, if that is a symbolic link, so that it is
// made, and renamed, on the disk that the link names. It is an error of the command line if that is within one of the
// directories, which are to stay as they are.
func placeOutside(out string, dirs ...string) (string, error) {
	for _, dir := range dirs {
		if inside(out, dir) {
			return "", usagef("the new store cannot be in the directory of the old one: choose a place outside %s", dir)
		}
	}
	if info, err := os.Lstat(out); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return out, nil // what else stands in the way is noticed by who makes the store
	}
	place, err := filepath.EvalSymlinks(out)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is a symbolic link that leads nowhere: make the directory, or choose another place", out)
	}
	return place, failed(exitCommand, err)
}

// inside reports whether a path is a directory, or lies below it. Links are followed as far as the path exists: what is
// not there yet is compared by its name below the last directory that is. It is a help against slips, not a defence: a
// link may change after it was asked.
func inside(path, dir string) bool {
	real := func(p string) string {
		p, rest := absolute(p), ""
		for {
			if found, err := filepath.EvalSymlinks(p); err == nil {
				return filepath.Join(found, rest)
			}
			if p == filepath.Dir(p) {
				return filepath.Join(p, rest)
			}
			p, rest = filepath.Dir(p), filepath.Join(filepath.Base(p), rest)
		}
	}
	way, err := filepath.Rel(real(dir), real(path))
	return err == nil && filepath.IsLocal(way)
}
