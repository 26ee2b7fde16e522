package terminal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// The sources of lines. A read of a pipe cannot be interrupted, so a goroutine of its own does it,
// and its consumer can stop waiting.

// reader is an io.Reader whose Read ends with its context: a script on a pipe without a writer must not need a kill. The
// goroutine that reads for it ends when the context does, or at the latest when its current Read of the input returns.
type reader struct {
	ctx    context.Context
	chunks chan chunk
	last   chunk
}

// A chunk is what one Read returned.
type chunk struct {
	data []byte
	err  error
}

// ChunkSize is how much is read ahead at a time.
const ChunkSize = 64 << 10

// NewReader starts to read from in. The caller ends ctx when it needs no more, also
// after an error. The goroutine sends each chunk in a new buffer, because the one before may still
// be in use.
func NewReader(ctx context.Context, in io.Reader) *reader {
	r := &reader{ctx: ctx, chunks: make(chan chunk)}
	go func() {
		for {
			buf := make([]byte, ChunkSize)
			n, err := in.Read(buf)
			select {
			case r.chunks <- chunk{buf[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}

// Read returns bytes that have been read ahead, or waits for some and for the end of the context,
// whichever comes first.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.last.data) == 0 {
		if r.last.err != nil {
			return 0, r.last.err
		}
		select {
		case r.last = <-r.chunks:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(p, r.last.data)
	r.last.data = r.last.data[n:]
	return n, nil
}

// OpenInput opens the file, and returns its size if it has one. Size 0 stands for one that is not
// known: the progress has no bar then. A directory is refused here, because reading one fails later
// and with another text on each system.
func OpenInput(t *Streams, name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(t.In), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
