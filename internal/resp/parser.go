package resp

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
)

// Limits bounds what one connection may make a [Parser] hold. A zero field takes its default.
type Limits struct {
	Inline  int    // Bytes of an inline command, and of any length line. Default: 16 KiB.
	Args    int    // Arguments of one command. Default: 1,048,576.
	Bulk    int    // Bytes of one argument. Default: 64 MiB.
	Command int    // Bytes of one whole command on the wire. Default: Bulk + 4 MiB.
	Inlines string // Inline commands that are accepted, in upper case, with a blank after each. Default: all.
}

// Default limits.
const (
	DefaultInline = 16 << 10
	DefaultArgs   = 1 << 20
	DefaultBulk   = 64 << 20
	commandSlack  = 4 << 20 // what a command may hold besides one argument of the largest size
)

// Memory that a parser keeps allocated between commands. More is released, so that one large command does not
// cost its connection memory for good.
const (
	keepBuffer = 16 << 10 // bytes
	keepArgs   = 256      // arguments
)

func (l Limits) withDefaults() Limits {
	l.Inline = cmp.Or(l.Inline, DefaultInline)
	l.Args = cmp.Or(l.Args, DefaultArgs)
	l.Bulk = cmp.Or(l.Bulk, DefaultBulk)
	l.Command = cmp.Or(l.Command, l.Bulk+commandSlack)
	return l
}

// RequestError is a violation of the protocol by the client. Its text is what Redis replies (after "ERR ") before it
// closes the connection.
type RequestError string

func (e RequestError) Error() string { return "Protocol error: " + string(e) }

// Violations with a constant text. The last two are ours: Redis has no such limits.
const (
	errInlineTooBig   RequestError = "too big inline request"
	errCountTooBig    RequestError = "too big mbulk count string"
	errBulkLineTooBig RequestError = "too big bulk count string"
	errCount          RequestError = "invalid multibulk length"
	errBulk           RequestError = "invalid bulk length"
	errCommandTooBig  RequestError = "too big command"
	errNoInline       RequestError = "inline commands are disabled"
)

// span is one argument inside the buffer. Offsets, not slices: the buffer moves when it grows.
type span struct{ from, to int }

// Parser turns a stream of bytes, split in any way, into commands. Every byte is read a bounded number of times, so
// a client that sends one byte at a time costs no more than its bytes.
//
// Feed it, then call Next until it returns no command.
type Parser struct {
	limits Limits
	buf    []byte
	start  int // where the current command begins; buf[:start] is done with
	pos    int // where parsing continues, >= start
	look   int // buf[pos:look] holds no line end: do not search it again
	count  int // arguments of the current command still to come; 0 = between commands
	bulk   int // announced length of the current argument; -1 = its length line is still to come
	total  int // arguments of the current command
	spans  []span
	listed bool // spans has the arguments read so far; without it they are found again when the command is complete
	args   [][]byte
	err    error
}

// NewParser returns a parser with these limits.
func NewParser(limits Limits) *Parser {
	return &Parser{limits: limits.withDefaults(), bulk: -1}
}

// SetLimits changes the limits for everything not yet parsed, such as when a client has authenticated.
func (p *Parser) SetLimits(limits Limits) { p.limits = limits.withDefaults() }

// Feed adds bytes that have arrived, copying them. Slices that Next returned are invalid afterwards.
func (p *Parser) Feed(in []byte) {
	p.compact()
	before := cap(p.buf)
	p.reserve(len(in))
	p.buf = append(p.buf, in...)
	if cap(p.buf) != before {
		clear(p.args[:cap(p.args)]) // which are parts of the buffer of before
	}
}

// reserve makes room for n more bytes where append would copy a large argument over and over. The buffer gets the
// length that is announced, or a quarter of it, or a sixteenth and so on, the shortest that holds what has arrived: so
// the copies that remain are short, and an announcement takes no more than four times what was sent. For many short
// arguments it doubles, where append would add a quarter and copy each byte four times.
func (p *Parser) reserve(n int) {
	need, room := len(p.buf)+n, p.pos+p.bulk+2
	switch {
	case need <= cap(p.buf) || p.count == 0 || need <= keepBuffer:
		return
	case p.bulk < keepBuffer:
		room = 2 * cap(p.buf)
	case room <= cap(p.buf):
		return
	}
	for room/4 >= need {
		room /= 4
	}
	p.buf = append(make([]byte, 0, max(room, need)), p.buf...)
}

// Buffered returns how many bytes have been fed and not been returned as commands.
func (p *Parser) Buffered() int { return len(p.buf) - p.start }

// Ahead returns how many bytes have been fed behind the command that Next returned last.
func (p *Parser) Ahead() int { return len(p.buf) - p.pos }

// Free returns how many more bytes the buffer has room for.
func (p *Parser) Free() int { return cap(p.buf) - p.Buffered() }

// Partial reports whether a command has begun and not ended: its client owes us bytes.
func (p *Parser) Partial() bool { return p.count > 0 || p.pos < len(p.buf) }

// Held returns the memory of the parser's buffers in bytes, for a limit over all clients.
func (p *Parser) Held() int { return cap(p.buf) + 16*cap(p.spans) + 24*cap(p.args) }

// Release frees the memory of a large command once nothing is left that has been fed. The arguments of a command that
// Next has returned are invalid after it.
func (p *Parser) Release() {
	if p.start == len(p.buf) {
		p.compact()
	}
}

// compact drops the bytes of finished commands. It moves the rest only when that is no more than what it drops, so the
// moving costs at most one copy per byte fed.
func (p *Parser) compact() {
	rest := len(p.buf) - p.start
	switch {
	case rest == 0 && cap(p.buf) > keepBuffer:
		p.buf = nil
		clear(p.args[:cap(p.args)]) // which are parts of it
	case rest <= p.start:
		copy(p.buf, p.buf[p.start:])
		p.buf = p.buf[:rest]
	default:
		return
	}
	for i := range p.spans {
		p.spans[i].from -= p.start
		p.spans[i].to -= p.start
	}
	p.pos -= p.start
	p.look -= p.start
	p.start = 0
	if p.count == 0 && (cap(p.spans) > keepArgs || cap(p.args) > keepArgs) {
		p.spans, p.args = nil, nil
	}
}

// Next returns the next whole command, or nil when that needs more bytes. The arguments are valid until the next call
// of Feed, the slice of them until the next call of Next. After an error every call returns the same error: the stream
// has no known boundary any more.
func (p *Parser) Next() ([][]byte, error) {
	for p.err == nil {
		if p.count == 0 {
			p.start = p.pos
			p.spans = p.spans[:0]
			if p.pos == len(p.buf) {
				return nil, nil
			}
			if p.buf[p.pos] != '*' {
				args, done, err := p.inline()
				p.err = err
				if len(args) > 0 || !done {
					return args, err
				}
				continue
			}
			if !p.header() {
				return nil, p.err
			}
			if p.count == 0 {
				continue // an empty array is nothing to do, as in Redis
			}
		}
		if !p.arguments() {
			return nil, p.err
		}
		return p.command(), nil
	}
	return nil, p.err
}

// Mark returns where the command begins that Next returned last. It is good for Rewind until the next call of Feed.
func (p *Parser) Mark() int { return p.start }

// Rewind goes back to a mark: Next returns that command again, and those after it.
func (p *Parser) Rewind(mark int) {
	p.start, p.pos, p.look = mark, mark, mark
	p.count, p.bulk, p.spans, p.listed, p.err = 0, -1, p.spans[:0], true, nil
}

// lineEnd returns the offset of the next end byte at or after pos, or -1 when more bytes are needed; a line beyond the
// limit is tooBig, wherever the stream happens to be split.
func (p *Parser) lineEnd(end byte, tooBig RequestError) (int, error) {
	from := max(p.pos, p.look)
	i := bytes.IndexByte(p.buf[from:], end)
	if i >= 0 {
		i += from
	}
	p.look = len(p.buf)
	if i < 0 && len(p.buf)-p.pos > p.limits.Inline || i >= 0 && i-p.pos > p.limits.Inline {
		return -1, tooBig
	}
	return i, nil
}

// number reads a length line, from after its type byte, and moves past it. ok is false while the line is not complete.
// The byte after the carriage return is taken to be a line feed without a look, as Redis does.
func (p *Parser) number(tooBig RequestError) (text []byte, ok bool) {
	end, err := p.lineEnd('\r', tooBig)
	if err != nil {
		p.err = err
		return nil, false
	}
	if end < 0 {
		return nil, false
	}
	if end+1 >= len(p.buf) {
		p.look = end // found again when the line feed arrives
		return nil, false
	}
	text = p.buf[p.pos:end]
	p.pos, p.look = end+2, end+2
	return text, true
}

// header reads "*count".
func (p *Parser) header() bool {
	text, ok := p.number(errCountTooBig)
	if !ok {
		return false
	}
	n, ok := ParseInt(text[1:])
	if !ok || n > math.MaxInt32 || n > int64(p.limits.Args) {
		p.err = errCount
		return false
	}
	p.count = int(max(n, 0))
	p.total, p.listed = p.count, true
	return true
}

// arguments reads "$length" and bytes until the command is complete. Bytes that are only announced get no memory, and
// of many arguments that have arrived no more is kept than their bytes: an empty one has six, and its span would
// take 16.
func (p *Parser) arguments() bool {
	for p.count > 0 {
		if p.bulk < 0 && !p.length() || len(p.buf)-p.pos < p.bulk+2 {
			return false
		}
		if p.listed && len(p.spans) == keepArgs {
			p.spans, p.listed = nil, false // a longer list would be copied over and over
		}
		if p.listed {
			p.spans = append(p.spans, span{p.pos, p.pos + p.bulk})
		}
		p.pos += p.bulk + 2
		p.look = p.pos
		p.bulk = -1
		p.count--
	}
	return true
}

func (p *Parser) length() bool {
	text, ok := p.number(errBulkLineTooBig)
	if !ok {
		return false
	}
	if len(text) == 0 || text[0] != '$' {
		// An empty line shows its carriage return, as it would in Redis.
		got := byte('\r')
		if len(text) > 0 {
			got = text[0]
		}
		p.err = RequestError(fmt.Sprintf("expected '$', got '%s'", []byte{got}))
		return false
	}
	n, ok := ParseInt(text[1:])
	if !ok || n < 0 || n > int64(p.limits.Bulk) {
		p.err = errBulk
		return false
	}
	if p.pos-p.start+int(n)+len("\r\n") > p.limits.Command {
		p.err = errCommandTooBig
		return false
	}
	p.bulk = int(n)
	return true
}

func (p *Parser) command() [][]byte {
	if !p.listed {
		return p.found()
	}
	p.args = p.args[:0]
	for _, s := range p.spans {
		p.args = append(p.args, p.buf[s.from:s.to:s.to])
	}
	return p.args
}

// found returns the arguments of a command of which no list has been kept. It reads the lengths again, which have been
// proved.
func (p *Parser) found() [][]byte {
	p.args = make([][]byte, 0, p.total)
	at := p.start + bytes.IndexByte(p.buf[p.start:], '\r') + 2
	for range p.total {
		end := at + bytes.IndexByte(p.buf[at:], '\r')
		n, _ := ParseInt(p.buf[at+1 : end])
		from := end + 2
		to := from + int(n)
		p.args = append(p.args, p.buf[from:to:to])
		at = to + 2
	}
	return p.args
}
