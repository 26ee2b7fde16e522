package resp

import (
	"strconv"
	"strings"
)

// Writer appends replies to a buffer. Types that RESP2 does not have are written the way Redis writes them to a RESP2
// client: maps, sets and pushes as arrays, doubles and big numbers as bulk strings, booleans as 0 and 1, every null as the bulk null.
//
// The zero Writer speaks RESP2.
type Writer struct {
	buf      []byte
	sent     int // buf[:sent] has been discarded
	resp3    bool
	limit    int  // 0: none
	exceeded bool // something was dropped because of limit
}

// SetLimit makes the writer drop every bulk string that would take it beyond n bytes, 0 meaning no limit, and clears
// Exceeded. It keeps one reply from taking all memory; the caller truncates the incomplete reply.
func (w *Writer) SetLimit(n int) { w.limit, w.exceeded = n, false }

// Exceeded reports whether something was dropped since SetLimit.
func (w *Writer) Exceeded() bool { return w.exceeded }

// fits reports whether n more bytes are within the limit.
func (w *Writer) fits(n int) bool {
	if w.limit > 0 && w.Len()+n > w.limit {
		w.exceeded = true
		return false
	}
	return true
}

// SetVersion selects the protocol for the replies that follow: 2 or 3.
func (w *Writer) SetVersion(version int) { w.resp3 = version == 3 }

// Version returns 2 or 3.
func (w *Writer) Version() int {
	if w.resp3 {
		return 3
	}
	return 2
}

// Bytes returns the bytes that have been written and not discarded. It is valid until the next
// call.
func (w *Writer) Bytes() []byte { return w.buf[w.sent:] }

// Len returns the number of bytes written and not discarded.
func (w *Writer) Len() int { return len(w.buf) - w.sent }

// Held returns the memory of the writer's buffer in bytes.
func (w *Writer) Held() int { return cap(w.buf) }

// Discard drops the first n bytes: they have been sent. It moves the rest only when that is no more than the dropped part,
// so that sending a reply in pieces moves each byte once at most.
func (w *Writer) Discard(n int) {
	w.sent += n
	switch rest := w.Len(); {
	case rest > w.sent:
		return
	case rest > 0:
		copy(w.buf, w.buf[w.sent:])
		w.buf = w.buf[:rest]
	case cap(w.buf) > keepReplies:
		w.buf = nil // one large reply must not cost its connection memory for good
	default:
		w.buf = w.buf[:0]
	}
	w.sent = 0
}

// keepReplies is what a drained writer keeps allocated, in bytes.
const keepReplies = 16 << 10

// Truncate drops everything after the first n bytes: replies that must not be sent after all.
func (w *Writer) Truncate(n int) { w.buf = w.buf[:w.sent+n] }

func (w *Writer) header(kind Kind, n int) { w.buf = appendHeader(w.buf, byte(kind), n) }

func (w *Writer) crlf() { w.buf = append(w.buf, '\r', '\n') }

// Simple writes a simple string such as OK. It must not hold line ends.
func (w *Writer) Simple(s string) {
	w.buf = append(w.buf, byte(SimpleString))
	w.buf = append(w.buf, s...)
	w.crlf()
}

// Error writes an error, code first. Line ends inside it become spaces: an error may quote what a client sent, which must
// not be able to forge replies.
func (w *Writer) Error(s string) {
	w.buf = append(w.buf, byte(Error))
	s = strings.TrimRight(s, "\r\n")
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\r' || c == '\n' {
			c = ' '
		}
		w.buf = append(w.buf, c)
	}
	w.crlf()
}

// Int writes an integer.
func (w *Writer) Int(n int64) {
	if uint64(n) < 10 {
		w.buf = append(w.buf, byte(Integer), '0'+byte(n), '\r', '\n')
		return
	}
	w.buf = append(w.buf, byte(Integer))
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.crlf()
}

// Bulk writes a bulk string. A nil slice is an empty string, not a null.
func (w *Writer) Bulk(b []byte) {
	if !w.fits(len(b) + 16) {
		return
	}
	w.header(BulkString, len(b))
	w.buf = append(w.buf, b...)
	w.crlf()
}

// bulkHeader is how much room a bulk string's header may need, and its line end with it.
const bulkHeader = len("$9223372036854775807\r\n\r\n")

// BeginBulk returns a buffer to append the contents of a bulk string to, which is the writer's own: a long value is read to
// where it will be sent from. EndBulk or nothing at all follows.
func (w *Writer) BeginBulk() []byte {
	var room [bulkHeader]byte
	return append(w.buf, room[:]...)
}

// EndBulk writes the bulk string that has been appended to what BeginBulk returned.
func (w *Writer) EndBulk(b []byte) {
	value := b[len(w.buf)+bulkHeader:]
	if !w.fits(len(value) + 16) {
		return
	}
	w.buf = b[:len(w.buf)]
	w.header(BulkString, len(value))
	w.buf = append(w.buf, value...) // they overlap, and it moves to the left
	w.crlf()
}

// BulkString is [Writer.Bulk] for a string.
func (w *Writer) BulkString(s string) {
	if !w.fits(len(s) + 16) {
		return
	}
	w.header(BulkString, len(s))
	w.buf = append(w.buf, s...)
	w.crlf()
}

// BulkInt writes an integer as a bulk string.
func (w *Writer) BulkInt(n int64) {
	var digits [20]byte
	w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

// Null writes a null.
func (w *Writer) Null() {
	if w.resp3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "$-1\r\n"...)
}

// NullArray writes a null where the command would have replied with an array; only RESP2 distinguishes the
// two.
func (w *Writer) NullArray() {
	if w.resp3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "*-1\r\n"...)
}

// Array starts an array; its n elements are the next n replies.
func (w *Writer) Array(n int) { w.header(Array, n) }

// Map starts a map of n pairs; its keys and values are the next 2n replies.
func (w *Writer) Map(n int) {
	if w.resp3 {
		w.header(Map, n)
		return
	}
	w.header(Array, 2*n)
}

// Set starts a set of n elements.
func (w *Writer) Set(n int) { w.aggregate(Set, n) }

// Push starts an out-of-band message of n elements.
func (w *Writer) Push(n int) { w.aggregate(Push, n) }

func (w *Writer) aggregate(kind Kind, n int) {
	if !w.resp3 {
		kind = Array
	}
	w.header(kind, n)
}

// Mark is where an aggregate starts whose length is not known yet.
type Mark int

// Begin starts an aggregate of unknown length; its elements are the replies up to End.
func (w *Writer) Begin() Mark { return Mark(len(w.buf)) }

// EndArray ends an array of n elements that began at m.
func (w *Writer) EndArray(m Mark, n int) { w.insert(m, Array, n) }

// EndSet ends a set of n elements that began at m.
func (w *Writer) EndSet(m Mark, n int) {
	if w.resp3 {
		w.insert(m, Set, n)
		return
	}
	w.insert(m, Array, n)
}

// insert puts a header before the elements written since m. Moving the elements once costs less than counting them first.
func (w *Writer) insert(m Mark, kind Kind, n int) {
	var scratch [24]byte
	header := appendHeader(scratch[:0], byte(kind), n)
	body := len(w.buf) - int(m)
	w.buf = append(w.buf, header...)
	copy(w.buf[int(m)+len(header):], w.buf[m:int(m)+body])
	copy(w.buf[m:], header)
}

// Double writes a double.
func (w *Writer) Double(f float64) {
	var digits [32]byte
	text := AppendDouble(digits[:0], f)
	if !w.resp3 {
		w.Bulk(text)
		return
	}
	w.buf = append(w.buf, byte(Double))
	w.buf = append(w.buf, text...)
	w.crlf()
}

// DoubleText writes a double that is text already.
func (w *Writer) DoubleText(text string) {
	if !w.resp3 {
		w.BulkString(text)
		return
	}
	w.buf = append(w.buf, byte(Double))
	w.buf = append(w.buf, text...)
	w.crlf()
}

// Bool writes a boolean.
func (w *Writer) Bool(b bool) {
	switch {
	case w.resp3 && b:
		w.buf = append(w.buf, "#t\r\n"...)
	case w.resp3:
		w.buf = append(w.buf, "#f\r\n"...)
	case b:
		w.Int(1)
	default:
		w.Int(0)
	}
}

// Verbatim writes text with a format of three letters: "txt" or "mkd".
func (w *Writer) Verbatim(format, text string) {
	if !w.resp3 {
		w.BulkString(text)
		return
	}
	w.header(Verbatim, len(format)+1+len(text))
	w.buf = append(w.buf, format...)
	w.buf = append(w.buf, ':')
	w.buf = append(w.buf, text...)
	w.crlf()
}

// BigNumber writes an integer of any size, given as digits.
func (w *Writer) BigNumber(digits string) {
	if !w.resp3 {
		w.BulkString(digits)
		return
	}
	w.buf = append(w.buf, byte(BigNumber))
	w.buf = append(w.buf, digits...)
	w.crlf()
}
