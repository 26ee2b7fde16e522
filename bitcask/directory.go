package bitcask

import "github.com/stavedb/stave/internal/vfs"

// hold takes a handle of the directory, from which all names in it are looked up from now on: its path may lead to another one
// any time.
func (s *Store) hold() (err error) {
	if s.opts.ReadOnly {
		s.held, err = vfs.Hold(s.opts.FS, s.dir)
	} else {
		s.held, err = vfs.HoldNew(s.opts.FS, s.dir)
	}
	if err == nil {
		s.opts.FS = s.held
	}
	return err
}
