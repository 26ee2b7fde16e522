package repair

import (
	"context"
	"fmt"
	"io"

	"github.com/stavedb/stave/internal/vfs"
)

// unreadable is a file of a disk that fails in places. What cannot be read is zeros, which verify as nothing, and is
// remembered: so the rest of the file can be salvaged, by the same rules as around any other damage.
type unreadable struct {
	vfs.File
	ctx   context.Context
	base  int64    // where in the segment the file begins: other than 0 for remains
	holes []unread // in the order in which they were found
}

// unread is a block that cannot be read.
type unread struct {
	from, to int64
	err      error
}

// readBlock is how many bytes are given up at a time.
const readBlock = 4 << 10

// ReadAt reads what can be read.
func (f *unreadable) ReadAt(p []byte, off int64) (n int, err error) {
	if err := f.ctx.Err(); err != nil { // also within a segment of which nothing can be copied
		return 0, err
	}
	if n, err = f.File.ReadAt(p, off); err == nil || err == io.EOF {
		return n, err
	}
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	end := min(off+int64(len(p)), size)
	for at := off; at < end; {
		if err := f.ctx.Err(); err != nil {
			return int(at - off), err
		}
		to := min(at-at%readBlock+readBlock, end)
		piece := p[at-off : to-off]
		got, err := f.File.ReadAt(piece, at)
		if err != nil && err != io.EOF {
			clear(piece)
			f.note(unread{at, to, err})
		} else if got < len(piece) { // it has become shorter
			return int(at-off) + got, io.EOF
		}
		at = to
	}
	if end < off+int64(len(p)) {
		return int(max(end-off, 0)), io.EOF
	}
	return len(p), nil
}

// note remembers a block, once.
func (f *unreadable) note(u unread) {
	for i := range f.holes {
		h := &f.holes[i]
		if u.from <= h.to && h.from <= u.to {
			h.from, h.to = min(h.from, u.from), max(h.to, u.to)
			return
		}
	}
	f.holes = append(f.holes, u)
}

// reason is why a part of the segment is lost, if what cannot be read is in it.
func (f *unreadable) reason(from, to int64, otherwise string) string {
	from, to = from-f.base, to-f.base
	for _, h := range f.holes {
		if from < h.to && h.from < to {
			return fmt.Sprintf("cannot be read: %v", h.err)
		}
	}
	return otherwise
}

// anyFrom reports whether something from an offset of the segment on cannot be read.
func (f *unreadable) anyFrom(at int64) bool { return f.reason(at, 1<<62, "") != "" }
