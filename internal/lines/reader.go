// Package lines reads text a line at a time and knows where it is: for scripts and
// for imports, whose errors name the line and whose progress is in bytes.
//
// A [Reader] takes lines of any length up to [MaxBytes], ended by LF or CR LF. It is
// not safe for concurrent use.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxBytes is the length of the longest line: 1 GiB, above the largest value that a
// store takes. Without a limit, a file without line breaks would fill the memory.
const MaxBytes = 1 << 30

// bufferBytes is how much is read at a time.
const bufferBytes = 256 << 10

// A Reader reads lines.
type Reader struct {
	r      *bufio.Reader
	buf    []byte
	number int
	bytes  int64
	max    int
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, bufferBytes), max: MaxBytes}
}

// Number is the number of the line returned last, from 1.
func (l *Reader) Number() int { return l.number }

// Bytes is how many bytes the lines returned so far took.
func (l *Reader) Bytes() int64 { return l.bytes }

// Waiting reports whether nothing of the next line has arrived: the moment to show the output so
// far.
func (l *Reader) Waiting() bool { return l.r.Buffered() == 0 }

// Next returns the next line without its line break, valid until the next call.
// io.EOF follows the last line, whether or not that ended in a break.
func (l *Reader) Next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		l.bytes += int64(len(part))
		if len(l.buf) > l.max {
			return nil, fmt.Errorf("line %d is longer than %d bytes", l.number+1, l.max)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(l.buf) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		}
		l.number++
		line := bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r"))
		if l.number == 1 { // some editors put a byte order mark there
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		return line, nil
	}
}

// Skip reports whether a line holds nothing: it is blank, or starts with #.
func Skip(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}
