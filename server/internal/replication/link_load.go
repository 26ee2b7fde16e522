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

// Load reads the file that a master sends, from r, which begins with what Feed has returned, and gives it to the replica. It
// returns when that has it; then the stream begins. What r has after the file is a part of that, and is applied.
func (l *Link) Load(r io.Reader) error {
	if l.phase != Loading {
		return errors.New("BUG: replication: a link loads twice")
	}
	var rest []byte
	var err error
	if l.marker != nil {
		rest, err = l.loadMarked(r)
	} else {
		err = l.loadCounted(r)
	}
	if err != nil {
		return err
	}
	l.begin()
	if len(rest) > 0 {
		return l.stream(rest)
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
