package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// gate is a reader that can be closed: what is read after that is at its end.
type gate struct {
	r      io.Reader
	closed bool
}

func (g *gate) Read(p []byte) (int, error) {
	if g.closed {
		return 0, io.EOF
	}
	return g.r.Read(p)
}

// Load reads the file that a master sends: rest, which Feed has returned, and then r. It returns when the replica has it; then
// the stream begins. What has been read of that is applied.
func (l *Link) Load(rest []byte, r io.Reader) error {
	if l.phase != Loading {
		return errors.New("BUG: replication: a link loads twice")
	}
	first := bytes.NewReader(rest)
	r = io.MultiReader(first, r)
	var after []byte // the file, of what has been read of r
	var err error
	if l.marker != nil {
		after, err = l.loadMarked(r)
	} else {
		err = l.loadCounted(r)
	}
	if err != nil {
		return err
	}
	l.begin()
	for _, in := range [][]byte{after, rest[len(rest)-first.Len():]} {
		if len(in) > 0 {
			if err := l.stream(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadMarked reads a file that ends with a marker. The replica must not have it before that has been seen.
func (l *Link) loadMarked(r io.Reader) (rest []byte, err error) {
	g := &gate{r: r}
	err = l.replica.Load(g, l.at, func(after io.Reader) error {
		marker := make([]byte, len(l.marker))
		if _, err := io.ReadFull(after, marker); err != nil {
			return fmt.Errorf("reading the end of the master's file: %w", err)
		}
		if !bytes.Equal(marker, l.marker) {
			return errors.New("the master's file does not end with its marker")
		}
		g.closed = true // what has been read beyond it is not much
		rest, err = io.ReadAll(after)
		return err
	})
	return rest, err
}

// loadCounted reads a file of a known length.
func (l *Link) loadCounted(r io.Reader) error {
	return l.replica.Load(io.LimitReader(r, l.length), l.at, func(after io.Reader) error {
		n, err := io.Copy(io.Discard, after)
		if err == nil && n > 0 {
			err = fmt.Errorf("the master announced a file that is %d bytes longer than it is", n)
		}
		return err
	})
}
