package bitcask

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"

	"github.com/stavedb/stave/internal/vfs"
)

// A hint file is its segment without the values: what loading needs, in the
// order of the segment. It is bound to the segment by store, id, length and
// sequence range; one that does not fit, or does not verify, is ignored and
// made anew. Nothing is lost with a hint.
//
//	header: magic "STAVEHNT" | version u16 | flags u16 | id u32 | store id 16 |
//	        data length u64 | min seq u64 | max seq u64 | records u64 | crc u32
//	block:  crc u32 | size u32 (bit 31: last) | entries
//	entry:  tag u8 | seq | offset | size | namespace | keyLen | elemLen* | inlineLen** | key | elem | inline
//
// seq and offset are uvarint differences to the entry before (from 0 at the
// start of each block); the other numbers are uvarints. * and **: only for the
// kinds that have one. Flag 1, plain: all entries are strings and deadlines.
const (
	hintMagic      = "STAVEHNT"
	hintVersion    = 1
	hintPlain      = 1
	hintHeaderSize = 8 + 2 + 2 + 4 + 16 + 4*8 + 4
	hintBlockSize  = 256 << 10
	hintBlockMax   = hintBlockSize + 4*(MaxKey+maxElementPart)
	hintLast       = 1 << 31
)

// parseHintEntry is the inverse of appendHintEntry.
func parseHintEntry(b []byte, prev *entry) (e entry, n int, ok bool) {
	if len(b) == 0 {
		return e, 0, false
	}
	e.Kind, e.Type = splitTag(b[0])
	if !validKind(e.Kind, e.Type) || e.Kind.follows() || b[0]&tagSequence != 0 {
		return e, 0, false
	}
	r := varints{b: b, n: 1}
	e.seq = prev.seq + r.next(1<<64-1)
	e.at = prev.at + uint32(r.next(1<<32-1))
	e.size = uint32(r.next(MaxCommit))
	e.Namespace = uint32(r.next(1<<32 - 1))
	key := int(r.next(MaxKey))
	elem, inline := 0, 0
	if e.Kind.hasElement() {
		elem = int(r.next(maxElementPart))
	}
	if inlined(e.Kind, e.Type) {
		inline = int(r.next(hintBlockSize))
	}
	if r.bad || e.seq < prev.seq || e.at < prev.at || len(b)-r.n < key+elem+inline {
		return e, 0, false
	}
	e.Key = b[r.n : r.n+key]
	e.Elem = b[r.n+key : r.n+key+elem]
	e.inline = b[r.n+key+elem : r.n+key+elem+inline]
	return e, r.n + key + elem + inline, true
}

// info is what the manifest says of a sealed segment.
func (sg *segment) info() sealedInfo {
	return sealedInfo{
		id: sg.id, length: uint64(sg.size.Load()),
		minSeq: sg.foot.minSeq, maxSeq: sg.foot.maxSeq, records: sg.foot.records,
	}
}

// hints reads a hint file block by block.
type hints struct {
	seal    seal
	file    vfs.File
	pos     int64
	size    int64
	plain   bool // as the flag says
	buf     []byte
	last    bool
	limit   uint64 // data length of the segment
	entries []entry
}

var errHint = errors.New("hint does not fit its segment or is damaged")

// openHint opens and binds a hint. Any error means: do without.
func openHint(fsys vfs.FS, dir string, sg *segment) (*hints, error) {
	f, err := fsys.Open(filepath.Join(dir, hintName(sg.id)), vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	head := make([]byte, hintHeaderSize)
	if err == nil {
		_, err = f.ReadAt(head, 0)
	}
	plain := string(head) == string(encodeHintHeader(sg.store, sg.info(), hintPlain))
	if err == nil && !plain && string(head) != string(encodeHintHeader(sg.store, sg.info(), 0)) {
		err = errHint
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &hints{seal: sg.seal, file: f, pos: hintHeaderSize, size: size, plain: plain, limit: uint64(sg.size.Load())}, nil
}

// next returns the entries of the next block, io.EOF at the end.
func (hs *hints) next() ([]entry, error) {
	block, err := hs.nextBlock()
	if err != nil {
		return nil, err
	}
	return hs.parse(block)
}

// nextBlock returns the bytes of the entries of the next block, io.EOF at the
// end. They are valid until it is called again.
func (hs *hints) nextBlock() ([]byte, error) {
	if hs.last {
		return nil, io.EOF
	}
	var head [8]byte
	if hs.size-hs.pos < int64(len(head)) {
		return nil, errHint
	}
	if _, err := hs.file.ReadAt(head[:], hs.pos); err != nil {
		return nil, err
	}
	word := binary.LittleEndian.Uint32(head[4:])
	size := int64(word &^ hintLast)
	if size < 8 || size > hs.size-hs.pos || size > hintBlockMax {
		return nil, errHint
	}
	if int64(cap(hs.buf)) < size {
		hs.buf = make([]byte, size)
	}
	hs.buf = hs.buf[:size]
	if _, err := hs.file.ReadAt(hs.buf, hs.pos); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(hs.buf) != hs.seal.sum(uint32(hs.pos), hs.buf[4:]) {
		return nil, errHint
	}
	hs.pos += size
	hs.last = word&hintLast != 0
	if hs.last && hs.pos != hs.size {
		return nil, errHint
	}
	return hs.buf[8:], nil
}

func (hs *hints) parse(b []byte) ([]entry, error) {
	hs.entries = hs.entries[:0]
	var prev entry
	for len(b) > 0 {
		e, n, ok := parseHintEntry(b, &prev)
		if !ok || !hs.fits(&e) {
			return nil, errHint
		}
		hs.entries = append(hs.entries, e)
		prev = e
		b = b[n:]
	}
	return hs.entries, nil
}

// fits reports whether an entry is one that the segment may have.
func (hs *hints) fits(e *entry) bool {
	return uint64(e.at)+uint64(e.size) <= hs.limit && (e.Kind.plain() || !hs.plain)
}

// check reads the whole file once, for those who use a hint only if all of it
// verifies.
func (hs *hints) check() error {
	for {
		if _, err := hs.next(); err == io.EOF {
			hs.pos, hs.last = hintHeaderSize, false
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (hs *hints) close() error { return hs.file.Close() }
