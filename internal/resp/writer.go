package resp

import (
	"strconv"
	"strings"
)

// Writer appends replies to a buffer. Types that RESP2 does not have are written the way Redis writes them to a RESP2
// client: maps, sets and pushes as arrays, doubles and big numbers as bulk strings, booleans as 0 and 1, every null as
// the bulk null.
//
// The zero Writer speaks RESP2.
type Writer struct {
	buf      []byte
	own      []byte // what buf was before it became a shared buffer, empty
	sent     int    // so many bytes of the first part have been discarded; without parts, of buf
	longest  int    // how long buf has been since the writer was empty, as Discard and startPart have seen it
	drained  int    // longest, when the writer was last empty
	header   int    // length of the last header that EndBulk wrote
	value    int    // length of the value after it
	resp3    bool
	limit    int  // 0: none
	exceeded bool // something was dropped because of limit
	parts    parts
	account  account
}

// SetLimit makes the writer drop every bulk string that would take it beyond n bytes, 0 meaning no limit, and clears
// Exceeded and Dropped. It keeps one reply from taking all memory; the caller truncates the incomplete reply. Only with
// a limit does a writer ask its Budget: what is written without one is a reply that must not be given up.
func (w *Writer) SetLimit(n int) {
	w.limit, w.exceeded = n, false
	w.account.short, w.account.counted = 0, 0
}

// Exceeded reports whether something was dropped since SetLimit because of the limit.
func (w *Writer) Exceeded() bool { return w.exceeded }

// Dropped reports whether something was dropped since SetLimit, because of the limit or of the budget.
func (w *Writer) Dropped() bool { return w.exceeded || w.account.counted > 0 }

// fits reports whether n more bytes are within the limit, and nothing before them was dropped because of the budget.
// Then they are counted, and what came meanwhile without asking is dropped.
func (w *Writer) fits(n int) bool {
	a := &w.account
	dropped := a.counted > 0
	if dropped {
		a.counted += n
		a.short += n
		n = a.counted
		w.buf = w.buf[:min(a.from, len(w.buf))]
	}
	if w.limit > 0 && w.Len()+n > w.limit {
		w.exceeded = true
		return false
	}
	return !dropped
}

// room reports whether n more bytes fit, and takes memory for them.
func (w *Writer) room(n int) bool { return w.fits(n) && (w.grow(n) || w.drop(n)) }

// drop counts n bytes that the budget is short of, and returns false.
func (w *Writer) drop(n int) bool {
	w.account.counted, w.account.from = n, len(w.buf)
	return false
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

// Bytes returns the bytes that have been written and not discarded; of a writer with a Budget the first part of them.
// It is valid until the next call.
func (w *Writer) Bytes() []byte {
	if len(w.parts.list) > 0 {
		return w.parts.list[0][w.sent:]
	}
	return w.buf[w.sent:]
}

// Len returns the number of bytes written and not discarded.
func (w *Writer) Len() int { return w.parts.length + len(w.buf) - w.sent }

// Held returns the memory of the writer's buffers in bytes.
func (w *Writer) Held() int { return w.parts.held + cap(w.buf) + cap(w.own) }

// Waiting returns how many bytes wait in the writer's own buffer, and the number and memory of larger ones that it has
// for long replies.
func (w *Writer) Waiting() (buffered, parts, partBytes int) {
	parts, partBytes = len(w.parts.list), w.parts.held
	if cap(w.buf) > keepReplies {
		return 0, parts + 1, partBytes + cap(w.buf)
	}
	if buffered = len(w.buf); parts == 0 {
		buffered -= w.sent
	}
	return buffered, parts, partBytes
}

// Discard drops the first n bytes: they have been sent. It moves the rest only when that is no more than the dropped
// part, so that sending a reply in pieces moves each byte once at most.
func (w *Writer) Discard(n int) {
	if len(w.parts.list) > 0 {
		if n = w.discardParts(n); n < 0 {
			return
		}
	}
	w.sent += n
	rest := w.Len()
	w.longest = max(w.longest, len(w.buf))
	if rest == 0 {
		w.drained, w.longest = w.longest, 0
	}
	switch {
	case rest > w.sent:
		return
	case rest > 0:
		copy(w.buf, w.buf[w.sent:])
		w.buf = w.buf[:rest]
	case cap(w.buf) > keepReplies:
		giveBuffer(w.buf) // one large reply must not cost its connection memory for good
		w.buf, w.own = w.own, nil
		w.giveBack()
	default:
		w.buf = w.buf[:0]
	}
	w.sent = 0
}

// grow takes memory for n more bytes: another part of a long reply, or a longer buffer, which is a shared one unless it
// is short. It reports false if the budget is short.
func (w *Writer) grow(n int) bool {
	need := len(w.buf) + n
	if need <= cap(w.buf) || need <= keepReplies/4 {
		return true
	}
	if need > PartSize && w.account.budget != nil && !w.account.budget.Whole {
		return w.startPart(n)
	}
	size := max(need, min(w.drained, PartSize)) // a client that has been sent much is expected to be sent as much again
	if size > PartSize {
		_, size = sharedFor(max(size, 2*cap(w.buf))) // each byte is moved, and the budget asked, a few times at most
		if !w.take(size) {                           // besides what is in the buffer now
			return false
		}
	}
	b := append(takeBuffer(size), w.buf...)
	w.leaveBuffer()
	w.buf = b
	w.giveBack()
	return true
}

// leaveBuffer gives the buffer away whose contents have been moved to another.
func (w *Writer) leaveBuffer() {
	if cap(w.buf) > keepReplies {
		giveBuffer(w.buf)
	} else {
		w.own = w.buf[:0]
	}
}

// Truncate drops everything after the first n bytes: replies that must not be sent after all.
func (w *Writer) Truncate(n int) {
	n += w.sent
	if len(w.parts.list) > 0 {
		n = w.truncateParts(n)
	}
	w.buf = w.buf[:n]
	if cap(w.buf) > PartSize && w.Len() == 0 {
		w.Discard(0) // what has been given up takes no memory
	}
}

// Close gives everything back. Nothing is to be written afterwards.
func (w *Writer) Close() {
	w.Discard(w.Len())
	w.buf, w.own, w.account.reserved = nil, nil, 0 // a panic may have left what Reserve has taken
	w.giveBack()
}

func (w *Writer) begin(kind Kind, n int) { w.buf = appendHeader(w.buf, byte(kind), n) }

func (w *Writer) crlf() { w.buf = append(w.buf, '\r', '\n') }

// Simple writes a simple string such as OK. It must not hold line ends.
func (w *Writer) Simple(s string) {
	w.buf = append(w.buf, byte(SimpleString))
	w.buf = append(w.buf, s...)
	w.crlf()
}

// Error writes an error, code first. Line ends inside it become spaces: an error may quote what a client sent, which
// must not be able to forge replies.
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
	if !w.room(len(b) + bulkHeader) {
		return
	}
	w.begin(BulkString, len(b))
	w.buf = append(w.buf, b...)
	w.crlf()
}

// bulkHeader is how much room the header of a bulk string needs, and the line end after it.
const bulkHeader = len("$99999999999\r\n\r\n")

// BeginBulk returns a buffer to append the contents of a bulk string to, which is the writer's own: a long value is
// read to where it will be sent from. The length is not known yet: value and header are expected to be as long as the
// last ones, so that the value is copied once, unless there is no room for that. In a reply that is kept whole, where the
// value would move all that is before it, it is not expected to be longer than PartSize, and must have room for that.
// EndBulk or nothing at all follows.
func (w *Writer) BeginBulk() []byte {
	n, whole := min(w.value+bulkHeader, maxShared-partSlack), w.account.budget != nil && w.account.budget.Whole
	if whole {
		n = min(n, PartSize)
	}
	switch {
	case w.Dropped() || w.grow(n):
	case whole:
		w.drop(n)
	default:
		w.account.short = 0
	}
	var header [bulkHeader]byte
	return append(w.buf, header[:w.header]...)
}

// EndBulk writes the bulk string that has been appended to what BeginBulk returned.
func (w *Writer) EndBulk(b []byte) {
	at := len(w.buf)
	value := b[at+w.header:]
	if !w.fits(len(value) + bulkHeader) {
		return
	}
	var room [bulkHeader]byte
	header := appendHeader(room[:0], byte(BulkString), len(value))
	if len(header) != w.header {
		b = append(b, room[:]...)[:at+len(header)+len(value)]
		copy(b[at+len(header):], value) // they overlap, or b is a new buffer
	}
	copy(b[at:], header)
	b = append(b, '\r', '\n')
	w.header, w.value = len(header), len(value)
	w.account.reserved = 0 // it was for b
	if cap(b) > PartSize && !w.take(cap(b)-cap(w.buf)) {
		w.drop(len(value) + bulkHeader)
		return
	}
	if cap(b) != cap(w.buf) {
		w.leaveBuffer()
	}
	w.buf = b
}

// BulkString is [Writer.Bulk] for a string.
func (w *Writer) BulkString(s string) {
	if !w.room(len(s) + bulkHeader) {
		return
	}
	w.begin(BulkString, len(s))
	w.buf = append(w.buf, s...)
	w.crlf()
}

// BulkInt writes an integer as a bulk string.
func (w *Writer) BulkInt(n int64) {
	var digits [20]byte
	w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

// Null writes a null, within the limit: a reply may have many of them.
func (w *Writer) Null() {
	if !w.room(len("$-1\r\n")) {
		return
	}
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
func (w *Writer) Array(n int) { w.beginAggregate(Array, n) }

// Map starts a map of n pairs; its keys and values are the next 2n replies.
func (w *Writer) Map(n int) {
	if w.resp3 {
		w.beginAggregate(Map, n)
		return
	}
	w.beginAggregate(Array, 2*n)
}

// Set starts a set of n elements.
func (w *Writer) Set(n int) { w.aggregate(Set, n) }

// Attribute starts n pairs that say something about the reply after them. Only RESP3 has it.
func (w *Writer) Attribute(n int) { w.beginAggregate(attribute, n) }

// Push starts an out-of-band message of n elements.
func (w *Writer) Push(n int) { w.aggregate(Push, n) }

func (w *Writer) aggregate(kind Kind, n int) {
	if !w.resp3 {
		kind = Array
	}
	w.beginAggregate(kind, n)
}

// shortest is the length of the shortest reply, a null.
const shortest = len("_\r\n")

// beginAggregate writes the header of n elements, unless so many cannot fit: then what replies can
// stop before it has read any of them.
func (w *Writer) beginAggregate(kind Kind, n int) {
	if w.fits(n * shortest) {
		w.begin(kind, n)
	}
}

// Mark is where an aggregate starts whose length is not known yet.
type Mark struct {
	part int // parts before it
	at   int // bytes before it in the part
}

// Begin starts an aggregate of unknown length; its elements are the replies up to End.
func (w *Writer) Begin() Mark { return Mark{len(w.parts.list), len(w.buf)} }

// EndArray ends an array of n elements that began at m.
func (w *Writer) EndArray(m Mark, n int) { w.insert(m, Array, n) }

// EndMap ends a map of n pairs that began at m: what RESP2 has instead differs by command.
func (w *Writer) EndMap(m Mark, n int) { w.insert(m, Map, n) }

// EndSet ends a set of n elements that began at m.
func (w *Writer) EndSet(m Mark, n int) {
	if w.resp3 {
		w.insert(m, Set, n)
		return
	}
	w.insert(m, Array, n)
}

// insert puts a header before the elements written since m. Moving the elements once costs less than counting them
// first.
func (w *Writer) insert(m Mark, kind Kind, n int) {
	if w.account.counted > 0 {
		return // the elements may be gone
	}
	var scratch [24]byte
	header := appendHeader(scratch[:0], byte(kind), n)
	if m.part < len(w.parts.list) {
		w.insertInPart(m, header)
		return
	}
	body := len(w.buf) - m.at
	w.buf = append(w.buf, header...)
	copy(w.buf[m.at+len(header):], w.buf[m.at:m.at+body])
	copy(w.buf[m.at:], header)
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
func (w *Writer) DoubleText(text string) { w.lineOrBulk(Double, text) }

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
	w.begin(Verbatim, len(format)+1+len(text))
	w.buf = append(w.buf, format...)
	w.buf = append(w.buf, ':')
	w.buf = append(w.buf, text...)
	w.crlf()
}

// BigNumber writes an integer of any size, given as digits.
func (w *Writer) BigNumber(digits string) { w.lineOrBulk(BigNumber, digits) }

// lineOrBulk writes what has a kind of its own in RESP3 only.
func (w *Writer) lineOrBulk(kind Kind, text string) {
	if !w.resp3 {
		w.BulkString(text)
		return
	}
	w.buf = append(w.buf, byte(kind))
	w.buf = append(w.buf, text...)
	w.crlf()
}
