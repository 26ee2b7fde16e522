package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Kind is the first byte of a reply on the wire: it says which of the protocol's types the reply is.
type Kind byte

// The kinds of reply. RESP2 knows the first five.
const (
	SimpleString Kind = '+' // Text: one line such as OK
	Error        Kind = '-' // Text: one line, first word is the code (ERR, WRONGTYPE, MOVED ...)
	Integer      Kind = ':' // Int
	BulkString   Kind = '$' // Text: any bytes; may be Null
	Array        Kind = '*' // Items; may be Null
	Null         Kind = '_' // RESP3's only null; Null is set
	Double       Kind = ',' // Float (Text holds the digits as they were sent)
	Boolean      Kind = '#' // Int: 0 or 1
	BulkError    Kind = '!' // Text: an error of any bytes
	Verbatim     Kind = '=' // Text, Format
	BigNumber    Kind = '(' // Text: the digits
	Map          Kind = '%' // Items: key, value, key, value ...
	Set          Kind = '~' // Items
	Push         Kind = '>' // Items: out-of-band data, the first item names it
	attribute    Kind = '|' // read and dropped: nothing we speak to needs it
)

// Reply is one decoded reply. Which fields count depends on Kind; the rest are zero.
type Reply struct {
	Kind   Kind
	Null   bool    // RESP2's $-1 and *-1 (Kind stays BulkString or Array) and RESP3's _
	Int    int64   // Integer, Boolean
	Float  float64 // Double
	Format string  // Verbatim: "txt" or "mkd"
	Text   []byte  // everything that is text; owned by the caller
	Items  []Reply // Array, Set, Push: the elements; Map: keys and values in turn
}

// IsError reports whether the reply is an error of either form.
func (r Reply) IsError() bool { return r.Kind == Error || r.Kind == BulkError }

// Err returns the reply as a Go error, or nil when it is not an error reply. The error is a [ServerError].
func (r Reply) Err() error {
	if !r.IsError() {
		return nil
	}
	return ServerError(r.Text)
}

// String returns the scalar value of the reply as text: the text itself, or the number in decimal. Aggregates and nulls
// give "".
func (r Reply) String() string {
	switch r.Kind {
	case Integer:
		return strconv.FormatInt(r.Int, 10)
	case Boolean:
		return strconv.FormatBool(r.Int != 0)
	default:
		return string(r.Text)
	}
}

// ServerError is an error that the other side sent, code first: "WRONGTYPE Operation against ...".
type ServerError string

func (e ServerError) Error() string { return string(e) }

// Code returns the first word, which clients branch on.
func (e ServerError) Code() string {
	for i := 0; i < len(e); i++ {
		if e[i] == ' ' {
			return string(e[:i])
		}
	}
	return string(e)
}

// Limits of a reply. They are far above anything a server of ours sends and exist so that a broken or hostile peer
// cannot make a client allocate without sending.
const (
	MaxReplyDepth = 64        // nested aggregates
	MaxReplyBulk  = 512 << 20 // bytes of one bulk string, as in Redis
	MaxReplyLine  = 64 << 10  // bytes of one simple string, error or number
	MaxReplyItems = 1 << 30   // items of one aggregate; memory grows with the items received
)

// ErrProtocol is wrapped by every error that means the peer did not speak the protocol. The connection is of no use
// after it.
var ErrProtocol = errors.New("resp: protocol error")

func protocolErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// Decoder reads replies from a stream.
type Decoder struct{ r *bufio.Reader }

// NewDecoder returns a decoder over r, which it buffers (64 KiB).
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{r: bufio.NewReaderSize(r, 64<<10)}
}

// Read returns the next reply, waiting for it. Between replies the end of the stream is io.EOF; inside one it is
// io.ErrUnexpectedEOF. An error reply from the server is not an error of Read: see [Reply.Err].
func (d *Decoder) Read() (Reply, error) {
	if _, err := d.r.Peek(1); err != nil {
		return Reply{}, err
	}
	r, err := d.read(0)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return r, err
}

// Buffered returns how many bytes have arrived and not been decoded: 0 means the next Read may have to wait.
func (d *Decoder) Buffered() int { return d.r.Buffered() }

// Decode decodes the first reply in b and returns what follows it. It is for replies that are complete in memory; a
// reply that is cut short is io.ErrUnexpectedEOF, and no bytes at all is io.EOF.
func Decode(b []byte) (r Reply, rest []byte, err error) {
	src := bytes.NewReader(b)
	d := Decoder{r: bufio.NewReaderSize(src, 512)}
	if r, err = d.Read(); err != nil {
		return Reply{}, b, err
	}
	return r, b[len(b)-src.Len()-d.r.Buffered():], nil
}

func (d *Decoder) read(depth int) (Reply, error) {
	if depth > MaxReplyDepth {
		return Reply{}, protocolErrorf("replies nested deeper than %d", MaxReplyDepth)
	}
	line, err := d.line()
	if err != nil {
		return Reply{}, err
	}
	if len(line) == 0 {
		return Reply{}, protocolErrorf("empty line where a reply should start")
	}
	r := Reply{Kind: Kind(line[0])}
	body := line[1:]
	switch r.Kind {
	case SimpleString, Error, BigNumber:
		r.Text = bytes.Clone(body)
		return r, nil
	case Integer:
		var ok bool
		if r.Int, ok = ParseInt(bytes.TrimPrefix(body, []byte{'+'})); !ok {
			return Reply{}, protocolErrorf("bad integer %q", body)
		}
		return r, nil
	case Boolean:
		return readBoolean(body)
	case Double:
		return readDouble(body)
	case Null:
		r.Null = true
		return r, nil
	case BulkString, BulkError, Verbatim:
		return d.bulk(r, body)
	case Array, Map, Set, Push:
		return d.items(r, body, depth)
	case attribute:
		if _, err := d.items(r, body, depth); err != nil {
			return Reply{}, err
		}
		// The depth goes up although nothing nests, so that a stream of attributes cannot recurse without end.
		return d.read(depth + 1)
	default:
		return Reply{}, protocolErrorf("unknown reply type %q", line[0])
	}
}

// line returns the next line without its CRLF. The slice is valid until the next read.
func (d *Decoder) line() ([]byte, error) {
	line, err := d.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		// Only the 512-byte buffers of Decode come here in earnest; a stream's buffer is the limit itself.
		full := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(full) <= MaxReplyLine {
			line, err = d.r.ReadSlice('\n')
			full = append(full, line...)
		}
		line = full
		if len(line) > MaxReplyLine {
			return nil, protocolErrorf("line longer than %d bytes", MaxReplyLine)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return nil, protocolErrorf("line does not end in CRLF")
	}
	return line[:len(line)-2], nil
}

func readBoolean(body []byte) (Reply, error) {
	switch string(body) {
	case "t":
		return Reply{Kind: Boolean, Int: 1}, nil
	case "f":
		return Reply{Kind: Boolean}, nil
	}
	return Reply{}, protocolErrorf("bad boolean %q", body)
}

func readDouble(body []byte) (Reply, error) {
	r := Reply{Kind: Double, Text: bytes.Clone(body)}
	f, err := strconv.ParseFloat(string(body), 64)
	if err != nil && !math.IsInf(f, 0) {
		return Reply{}, protocolErrorf("bad double %q", body)
	}
	r.Float = f
	return r, nil
}

func (d *Decoder) bulk(r Reply, body []byte) (Reply, error) {
	n, ok := ParseInt(body)
	if ok && n == -1 && r.Kind == BulkString {
		r.Null = true
		return r, nil
	}
	if !ok || n < 0 || n > MaxReplyBulk {
		return Reply{}, protocolErrorf("bad bulk length %q", body)
	}
	text, err := d.bytes(int(n))
	if err != nil {
		return Reply{}, err
	}
	r.Text = text
	if r.Kind == Verbatim {
		if len(text) < 4 || text[3] != ':' {
			return Reply{}, protocolErrorf("verbatim string without a format")
		}
		r.Format, r.Text = string(text[:3]), text[4:]
	}
	return r, nil
}

// bytes reads n bytes and the CRLF after them. The buffer grows with what arrives: a peer that announces 512 MB and
// sends nothing costs one step.
func (d *Decoder) bytes(n int) ([]byte, error) {
	const step = 1 << 20
	buf := make([]byte, 0, min(n, step))
	for len(buf) < n {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(n, 2*cap(buf)))
			copy(grown, buf)
			buf = grown
		}
		m, err := io.ReadFull(d.r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+m]
		if err != nil {
			return nil, err
		}
	}
	var crlf [2]byte
	if _, err := io.ReadFull(d.r, crlf[:]); err != nil {
		return nil, err
	}
	if crlf != [2]byte{'\r', '\n'} {
		return nil, protocolErrorf("bulk string does not end in CRLF")
	}
	return buf, nil
}

func (d *Decoder) items(r Reply, body []byte, depth int) (Reply, error) {
	n, ok := ParseInt(body)
	if ok && n == -1 && r.Kind == Array {
		r.Null = true
		return r, nil
	}
	if !ok || n < 0 || n > MaxReplyItems {
		return Reply{}, protocolErrorf("bad aggregate length %q", body)
	}
	if r.Kind == Map || r.Kind == attribute {
		n *= 2
	}
	// The announced count sizes the slice only as far as a small reply goes.
	r.Items = make([]Reply, 0, min(n, 64))
	for range n {
		item, err := d.read(depth + 1)
		if err != nil {
			return Reply{}, err
		}
		r.Items = append(r.Items, item)
	}
	return r, nil
}
