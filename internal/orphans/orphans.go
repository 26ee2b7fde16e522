// Package orphans is the format of the files in the directory orphans of a store: commits that a server had alone when it
// became the replica of another one, whose data replaced its own.
//
// A file is a sequence of commands as clients send them (RESP). The first one is ECHO with a [Header], as JSON. Then, if the
// stream had selected a database, come SELECT and the bytes of the replication stream themselves: what is one commit is
// surrounded by MULTI and EXEC. [Encode] makes it, [Reader] reads it. It has its name only when it is on the disk as a whole
// (serverside.DB.KeepOrphans), and is never changed; a user deletes it.
package orphans

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/internal/resp"
)

// Suffix is that of the files' names: {id of the replication}-{offset}.resp.
const Suffix = ".resp"

// Version is that of the format which this program writes, and the newest that it reads.
const Version = 1

// Header says what a file has.
type Header struct {
	Version  int       `json:"version"`
	ReplID   string    `json:"replid"`
	From     int64     `json:"from"`     // offset in the stream before the first byte that is kept
	To       int64     `json:"to"`       // offset after the last one
	Before   int64     `json:"before"`   // bytes before From that the server had alone and did not know any more; Unknown
	Commands int64     `json:"commands"` // that change data, or are messages
	Time     time.Time `json:"time"`     // when it was written
	Sum      uint32    `json:"crc32c"`   // of all that follows the header
}

// Unknown is Header.Before where it is not known where the server's history and that of its master parted: all of the stream that
// it had is kept, and the master may have a part of it.
const Unknown = -1

// Name is the name of the file, from where the histories parted.
func (h *Header) Name() string {
	return h.ReplID + "-" + strconv.FormatInt(h.From-max(h.Before, 0), 10) + Suffix
}

// IsName reports whether a name is one of these files.
func IsName(name string) bool {
	id, offset, ok := strings.Cut(strings.TrimSuffix(name, Suffix), "-")
	_, err := strconv.ParseUint(offset, 10, 63)
	return ok && err == nil && len(id) == 40 && strings.HasSuffix(name, Suffix)
}

// Count is how many of some names are those of files.
func Count(names []string) (n int) {
	for _, name := range names {
		if IsName(name) {
			n++
		}
	}
	return n
}

// Counter counts the files of a directory for those who ask often. The zero value is ready. It may be used by any goroutine.
type Counter struct {
	mu     sync.Mutex // guards the rest
	looked time.Time
	n      int
}

// lookEvery is how often the directory is looked at.
const lookEvery = time.Second

// Count returns how many files there are, which list names, as of a second ago at most. Where they cannot be listed there are those
// of before, so that an alert goes on; -1 if there were none.
func (c *Counter) Count(now time.Time, list func() (names []string, err error)) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked.IsZero() || now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if names, err := list(); err == nil {
			c.n = Count(names)
		} else if c.n == 0 {
			c.n = -1
		}
	}
	return c.n
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Changes reports whether a command of a stream counts in Header.Commands.
func Changes(args [][]byte) bool {
	switch strings.ToLower(string(args[0])) {
	case "multi", "exec", "select", "ping", "replconf":
		return false
	}
	return true
}

// Encode returns the file, in pieces: parts are the bytes of the stream, before which it has selected a database; below 0: it
// selects one itself. The header's version and sum are set.
func Encode(h *Header, database int, parts [][]byte) [][]byte {
	body := make([][]byte, 0, len(parts)+2)
	if database >= 0 && len(parts) > 0 {
		body = append(body, resp.AppendCommandStrings(nil, "SELECT", strconv.Itoa(database)))
	}
	body = append(body, parts...)
	h.Version, h.Sum = Version, 0
	for _, part := range body {
		h.Sum = crc32.Update(h.Sum, castagnoli, part)
	}
	text, err := json.Marshal(h)
	if err != nil {
		panic("BUG: orphans: " + err.Error()) // of numbers, texts and a time
	}
	return append([][]byte{resp.AppendCommandStrings(nil, "ECHO", string(text))}, body...)
}

// Errors of a file.
var (
	ErrDamaged = errors.New("the file is damaged")
	ErrVersion = errors.New("the file is of a newer version")
)

// Reader reads a file.
type Reader struct {
	Header Header

	in      io.Reader
	parser  *resp.Parser
	buf     []byte
	sum     uint32
	stopped error
}

// bufferSize is how much is read at once, in bytes. A header is much shorter.
const bufferSize = 64 << 10

// NewReader reads the header.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: in, parser: resp.NewParser(resp.Limits{Bulk: 512 << 20}), buf: make([]byte, bufferSize)}
	n, err := io.ReadFull(in, r.buf)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	r.parser.Feed(r.buf[:n])
	args, err := r.parser.Next()
	if err != nil || len(args) != 2 || string(args[0]) != "ECHO" || json.Unmarshal(args[1], &r.Header) != nil {
		return nil, fmt.Errorf("%w: it has no header", ErrDamaged)
	}
	if r.Header.Version != Version {
		return nil, fmt.Errorf("%w (%d)", ErrVersion, r.Header.Version)
	}
	r.sum = crc32.Checksum(r.buf[n-r.parser.Ahead():n], castagnoli)
	return r, nil
}

// Next returns the next command, whose arguments are valid until the next call. The error is io.EOF at the end of a file that is
// what was written, and ErrDamaged at the end of one that is not.
func (r *Reader) Next() ([][]byte, error) {
	for r.stopped == nil {
		args, err := r.parser.Next()
		if err != nil {
			r.stopped = fmt.Errorf("%w: %v", ErrDamaged, err)
			break
		}
		if args != nil {
			return args, nil
		}
		n, err := r.in.Read(r.buf)
		r.sum = crc32.Update(r.sum, castagnoli, r.buf[:n])
		r.parser.Feed(r.buf[:n])
		switch {
		case n > 0 || err == nil:
		case err != io.EOF:
			r.stopped = err
		case r.parser.Partial() || r.sum != r.Header.Sum:
			r.stopped = fmt.Errorf("%w: it is not what was written", ErrDamaged)
		default:
			r.stopped = io.EOF
		}
	}
	return nil, r.stopped
}
