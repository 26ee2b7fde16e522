package resp

import "slices"

// PartSize is how long the parts of a long reply are, in bytes; a longer bulk string has a part of its own.
const PartSize = 256 << 10

// partSlack is room for what has no length to ask the budget for, such as the header of an array.
const partSlack = 64

// parts are what a writer with a budget has besides its buffer: a long reply is not moved when it grows, and its memory
// goes as it is sent.
type parts struct {
	list   [][]byte // the oldest first; buf comes after them
	length int      // of all in the list, in bytes
	held   int      // memory of them
}

// From returns what follows the first n bytes that have not been discarded, up to the end of a part.
func (w *Writer) From(n int) []byte {
	n += w.sent
	for _, part := range w.parts.list {
		if n < len(part) {
			return part[n:]
		}
		n -= len(part)
	}
	return w.buf[n:]
}

// startPart makes what is in the buffer a part, and starts another one with room for n bytes. It reports false if the
// budget is short.
func (w *Writer) startPart(n int) bool {
	size := partSize(n)
	if !w.take(size) {
		return false
	}
	b := takeBuffer(size)
	if len(w.buf) == 0 {
		w.leaveBuffer()
	} else {
		p := &w.parts
		w.longest = max(w.longest, len(w.buf))
		p.list = append(p.list, w.buf)
		p.length += len(w.buf)
		p.held += cap(w.buf)
	}
	w.buf = b
	return true
}

// partSize returns how much memory a part with room for n bytes takes.
func partSize(n int) int {
	if n <= PartSize {
		return PartSize
	}
	_, size := sharedFor(n + partSlack)
	return size
}

// discardParts drops n bytes of the parts. It returns how many of them are left to drop from the buffer, -1 if it is
// not at that.
func (w *Writer) discardParts(n int) int {
	p := &w.parts
	for len(p.list) > 0 {
		part := p.list[0]
		if rest := len(part) - w.sent; n < rest {
			w.sent += n
			return -1
		} else {
			n -= rest
		}
		w.sent = 0
		p.length -= len(part)
		p.held -= cap(part)
		p.list[0] = nil
		p.list = p.list[1:]
		giveBuffer(part)
		w.giveBack()
	}
	p.list = nil
	return n
}

// truncateParts drops the parts after the first n bytes, those of the first part that have been discarded included. It
// returns how many of them are in the buffer.
func (w *Writer) truncateParts(n int) int {
	p := &w.parts
	for last := len(p.list) - 1; last >= 0 && n <= p.length; last-- {
		giveBuffer(w.buf)
		w.buf = p.list[last]
		p.list[last] = nil
		p.list = p.list[:last]
		p.length -= len(w.buf)
		p.held -= cap(w.buf)
	}
	w.giveBack()
	return n - p.length
}

// insertInPart is insert for an aggregate that began in a part before the buffer.
func (w *Writer) insertInPart(m Mark, header []byte) {
	p := &w.parts
	part := p.list[m.part]
	p.held -= cap(part)
	part = slices.Insert(part, m.at, header...)
	p.list[m.part] = part
	p.held += cap(part)
	p.length += len(header)
}
