package keydir

import "encoding/binary"

// Streams in a dump: their runs, without the last id, which the steps lead to.

// appendRunOf appends the entries of a run; nothing if there are none.
func appendRunOf(b []byte, run streamRun) []byte {
	if len(run) == 0 {
		return b
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(run)-16))
	b = append(b, run[:16]...)
	return append(b, run[runHeaderBytes:]...)
}

// appendEntries appends one page of a stream: the entries after the last one that was appended.
func (p *pendingBig) appendEntries(b []byte, c Collection) (_ []byte, n int, more bool) {
	from := StreamID{}
	if p.begun {
		if p.id == MaxStreamID {
			return b, 0, false
		}
		from = p.id.Next()
	}
	p.begun = true
	run, x := c.streamOf("Dump")
	if x != nil {
		start, ok := x.pageOf(from)
		for ok && x.block(start).run().last().Less(from) {
			ok = x.after(&start)
		}
		if !ok {
			return b, 0, false
		}
		run = x.block(start).run()
		more = x.after(&start)
	}
	var list []streamEntry
	for cur, ok := (runCursor{run: run}), true; ok; {
		if ok = cur.next(); ok && !cur.id.Less(from) {
			list = append(list, streamEntry{cur.id, cur.loc()})
			p.id = cur.id
		}
	}
	return appendRunOf(b, appendRun(nil, list)), len(list), more
}

// after moves to the page after one.
func (x *stream) after(p *streamPage) (ok bool) {
	from := p.first
	x.pages.AscendGreaterOrEqual(*p, func(have streamPage) bool {
		if have.first == from {
			return true
		}
		*p, ok = have, true
		return false
	})
	return ok
}

// measureStream is measure for a stream.
func (l *Loader) measureStream(n int, b []byte) (size, end int, ok bool) {
	if len(b) < 4 || n == 0 {
		return 0, 0, false
	}
	size = int(binary.LittleEndian.Uint32(b))
	if size < 24 || len(b)-4 < size {
		return 0, 0, false
	}
	read := 0
	ok = eachDumped(b[4:4+size], func(_ StreamID, loc Loc) bool {
		read++
		return loc != 0 && l.OnLoc(loc)
	})
	return size, 4 + size, ok && read == n
}

// eachDumped calls fn for the entries in a part of a stream. It reports false if fn did, or if the bytes are no such
// part.
func eachDumped(b []byte, fn func(id StreamID, loc Loc) bool) bool {
	id := readID(b)
	for b = b[16:]; ; {
		if len(b) < 8 || !fn(id, Loc(binary.LittleEndian.Uint64(b))) {
			return false
		}
		if b = b[8:]; len(b) == 0 {
			return true
		}
		n := 0
		if id, n = readStep(b, id); n == 0 {
			return false
		}
		b = b[n:]
	}
}

// loadStream makes a stream of its parts. It reports false unless their ids ascend.
func (dc *dumpedCollection) loadStream(cs *collectionSet, id uint32) bool {
	if smallHeaderBytes+len(dc.key) > sizeLimit(Stream)/2 {
		cs.setBig(id, cs.newBig(Stream, string(dc.key)))
	} else {
		cs.writeHead(id, Stream, asString(dc.key), 0, 0)
	}
	c := Collection{set: cs, id: id}
	c.SetMeta(dc.meta)
	for _, p := range dc.parts {
		if last, ok := c.LastEntry(); ok && !last.Less(readID(p.body[4:])) {
			return false
		}
		eachDumped(p.body[4:], func(id StreamID, loc Loc) bool {
			c.PutEntry(id, loc)
			return true
		})
	}
	return true
}
