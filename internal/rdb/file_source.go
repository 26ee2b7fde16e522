package rdb

import (
	"bytes"
	"errors"
	"hash/crc64"
	"io"
)

// The bytes of a file, and the pieces of large values.

const (
	chunkBytes = 64 << 10 // are read at a time
	longBytes  = 4 << 20  // longer strings are read in parts: the length may be a lie

	pieceBytes   = 4 << 20 // of a value, with elementBytes for each element, are handed over at a time
	elementBytes = 24      // what a slice takes besides its bytes
)

// file is what comes after the rest of a reader. It reads into a new buffer each time, so that what was taken stays as
// it is.
type file struct {
	in     io.Reader
	buf    []byte // its end is the reader's rest
	base   int64  // where buf begins in the file
	sum    uint64 // the checksum of what comes before buf[summed], inverted as hash/crc64 has it
	summed int

	failedAt int64  // where the reader failed
	err      error  // of reading
	tooLong  uint64 // a length that no string has
}

// at is where the reader is. It stays where it was while the reader is inside a packed string.
func (s *file) at(r *reader) int64 {
	if r.file != nil && !r.failed {
		s.failedAt = s.base + int64(len(s.buf)-len(r.rest))
	}
	return s.failedAt
}

// read makes r.rest at least n bytes long.
func (s *file) read(r *reader, n uint64) bool {
	if n > MaxBytes {
		s.tooLong = n
		return false
	}
	s.checksum(r)
	buf, got, err := s.fill(r.rest, int(n))
	if got < int(n) {
		if s.err = err; errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			s.err = ErrTruncated
		}
		return false
	}
	s.base += int64(len(s.buf) - len(r.rest))
	s.buf, s.summed = buf[:got], 0
	r.rest = s.buf
	return true
}

// fill returns a buffer that begins with rest and has n bytes or more. A long string is read in parts, and put together
// when all of them are there.
func (s *file) fill(rest []byte, n int) (buf []byte, got int, err error) {
	if n <= longBytes {
		buf = make([]byte, max(n, chunkBytes))
		got = copy(buf, rest)
		more, err := io.ReadAtLeast(s.in, buf[got:], n-got)
		return buf, got + more, err
	}
	parts := [][]byte{rest}
	for got = len(rest); got < n && err == nil; {
		part := make([]byte, min(n-got, longBytes))
		var more int
		more, err = io.ReadFull(s.in, part)
		parts = append(parts, part[:more])
		got += more
	}
	if got < n {
		return nil, got, err
	}
	buf = make([]byte, 0, n)
	for i, part := range parts {
		buf = append(buf, part...)
		parts[i] = nil
	}
	return buf, got, nil
}

// checksum returns that of what has been taken so far.
func (s *file) checksum(r *reader) uint64 {
	taken := len(s.buf) - len(r.rest)
	s.sum = ^crc64.Update(^s.sum, table, s.buf[s.summed:taken])
	s.summed = taken
	return s.sum
}

// remains reads what has not been taken.
func (s *file) remains(r *reader) io.Reader {
	rest := r.rest
	r.rest = nil
	return io.MultiReader(bytes.NewReader(rest), s.in)
}

// pieceSink hands over values, those that are large in pieces.
type pieceSink struct {
	f     *FileReader
	visit func(*Entry) error
	size  int // of the value so far
	err   error
}

// grown notes that the value has grown, and hands over what there is once that is much.
func (p *pieceSink) grown(r *reader, bytes int) {
	p.size += bytes + elementBytes
	if p.size >= pieceBytes && len(r.v.Elements)%r.unit == 0 {
		p.hand(r, false)
	}
}

// hand hands over the value so far.
func (p *pieceSink) hand(r *reader, last bool) {
	if !last && r.parse != nil && !r.spoiled {
		r.parse()
	}
	if r.failed {
		return
	}
	if r.spoiled { // what is left of it is only skipped
		p.drop(r)
		return
	}
	e := &p.f.entry
	e.Value, e.Last = *r.v, last
	if stream := r.v.Stream; stream != nil {
		one := *stream
		e.Value.Stream = &one
	}
	if p.err = p.visit(e); p.err != nil {
		r.fail()
	}
	e.First = false
	p.drop(r)
}

// drop forgets what there is of the value.
func (p *pieceSink) drop(r *reader) {
	p.size = 0
	r.v.Elements, r.v.Scores, r.v.Deadlines = nil, nil, nil
	if r.v.Stream != nil {
		r.v.Stream.Entries = nil
	}
}

// stringPieces reads the value of a string. One that is not compressed is handed over as it arrives.
func (r *reader) stringPieces() {
	n, encoded := r.length()
	switch {
	case encoded:
		b := r.encodedString(n)
		for len(b) > pieceBytes && !r.failed {
			r.add(b[:pieceBytes:pieceBytes])
			b = b[pieceBytes:]
		}
		r.add(b)
	case n > MaxBytes:
		r.file.tooLong = n
		r.fail()
	default:
		for n > pieceBytes && !r.failed {
			r.add(r.take(pieceBytes))
			n -= pieceBytes
		}
		r.add(r.take(n))
	}
}
