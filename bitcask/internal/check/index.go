package check

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Checking the INDEX. One that does not fit the log is ignored at Open, and here; one that fits
// must agree with the log.

// index verifies the INDEX: its checksums, that every section is sound by
// itself, and, in a store that is open for reading only, that with the rest of
// the log it says what the keydir says. The last takes the memory of a second
// keydir; it proves something if the keydir came from the log, see
// seam.Options.NoIndex.
func (c *checker) index() error {
	if c.NoIndex {
		return nil
	}
	f, err := c.FS.Open(filepath.Join(c.Dir, indexfile.FileName), vfs.ReadOnly)
	if failure.IsNotExist(err) {
		return nil
	}
	if err != nil {
		c.found("I8", indexfile.FileName, 0, "", "%v", err)
		return nil
	}
	fits, err := c.sections(f)
	if ended := c.ctx.Err(); ended != nil {
		return errors.Join(ended, f.Close())
	}
	if errors.Is(err, failure.ErrVersion) {
		err = nil // and it does not fit
	}
	if err = errors.Join(err, f.Close()); err != nil {
		c.found("I8", indexfile.FileName, 0, "", "%v", err)
		return nil
	}
	if !fits {
		return nil
	}
	c.result.Index = true
	if c.Again == nil {
		return nil
	}
	return c.compareIndex()
}

// sections loads each section by itself. fits is false for an INDEX that
// merges have made useless.
func (c *checker) sections(f vfs.File) (fits bool, err error) {
	l, err := indexfile.NewReader(f, c.ID, c.Seed)
	if err != nil {
		return false, err
	}
	ix, err := l.Contents()
	if err != nil {
		return false, err
	}
	if !ix.Fits(c.Segments.Load(), func(_ indexfile.Segment, err error) error { return err }) {
		return false, nil
	}
	l.Locations = indexfile.NewLocations(c.Segments.Load())
	w := l.NewWork(nil)
	for i := range ix.Sections {
		if err := c.ctx.Err(); err != nil {
			return false, err
		}
		is := &ix.Sections[i]
		dir := keydir.NewDirectory(c.Seed)
		if ix.Promises {
			dir.Promise(int(is.Stripe), is.Counts)
		}
		if err := w.LoadInto(dir, is); err != nil {
			return false, fmt.Errorf("section of space %d, stripe %d, at %d: %w", is.Space, is.Stripe, is.Offset, err)
		}
	}
	return true, nil
}

// compareIndex opens the store once more, with the INDEX.
func (c *checker) compareIndex() (err error) {
	other, done, err := c.Again(c.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if other == nil {
		return nil // a live writer has appended in the meantime
	}
	c.result.Compared = true
	return (&comparison{checker: c, kept: other, replayed: c.Environment, rule: "I8", file: indexfile.FileName}).run()
}
