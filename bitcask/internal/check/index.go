package check

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/system"
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
	if !maps.EqualFunc(c.System.Dump().There(), other.System.Dump().There(), system.SameRecord) {
		c.found("I8", indexfile.FileName, 0, "", "the system records are not what the log says")
	}
	mine, theirs := c.Spaces.Now.Load().ByID, maps.Clone(other.Spaces.Now.Load().ByID)
	for id, sp := range mine {
		if theirs[id] == nil {
			theirs[id] = &namespace.Space{ID: id, Dir: keydir.NewDirectory(c.Seed)}
		}
		for stripe := range keydir.Stripes {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			a, err1 := c.reloaded(sp.Dir, stripe)
			b, err2 := c.reloaded(theirs[id].Dir, stripe)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			if !bytes.Equal(a, b) {
				c.found("I8", indexfile.FileName, 0, "", "stripe %d of space %d is not what the log says", stripe, id)
			}
		}
	}
	for id, sp := range theirs {
		if mine[id] == nil && sp.Dir.Len()+sp.Dir.LenDeadlines()+sp.Dir.LenFieldDeadlines() > 0 {
			c.found("I8", indexfile.FileName, 0, "", "the log has no space %d", id)
		}
	}
	return nil
}

// reloaded is the dump of a stripe as it is after loading: what its history makes of slots of one hash, and of the order
// of hashes and sets, does not show. The INDEX keeps that order; the log of a merged store has another one.
func (c *checker) reloaded(dir *keydir.Directory, stripe int) ([]byte, error) {
	whole := func(dir *keydir.Directory) (b []byte) {
		dump := dir.Dump(stripe)
		for dump.ByHash = true; !dump.Done(); {
			b = dump.Append(b, 1<<30)
		}
		return b
	}
	if err := c.Lock(stripe, false); err != nil {
		return nil, err
	}
	b := whole(dir)
	c.Unlock(stripe, false)
	fresh := keydir.NewDirectory(c.Seed)
	loader := keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }}
	if err := loader.Load(fresh, stripe, b); err != nil {
		panic("BUG: " + err.Error())
	}
	return whole(fresh), nil
}
