package bitcask

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// A hint file is its segment without the values: what loading needs, in the
// order of the segment. It is bound to the segment at both ends, by what header
// and footer say and by the last bytes between them; one that does not fit, or
// does not verify, is ignored and made anew. Nothing is lost with a hint.
//
//	header: magic "STAVEHNT" | version u16 | flags u16 | id u32 | store id 16 | nonce u32 |
//	        data length u64 | min seq u64 | max seq u64 | records u64 | stamp u64 | end crc u32 | crc u32
//	block:  crc u32 | size u32 (bit 31: last) | entries
//	entry:  tag u8 | seq | (gap | namespace | keyLen) | size | elemLen* | inlineLen** | shared | rest of key | elem | inline
//
// Most of it refers to the entry before, which at the start of each block is one of zeros with an empty
// key: seq is the difference, size too, zigzag; gap is the number of bytes between the two, and
// shared how many bytes, at most 63, the keys have in common at their beginning. If bit 7 of tag is set,
// the gap is 0, namespace and keyLen are those before, and all three are left out. Numbers are
// uvarints. * and **: only for the kinds that have one. Flag 1, plain: all entries are strings and deadlines.
const (
	hintMagic      = "STAVEHNT"
	hintVersion    = 3
	hintPlain      = 1
	hintHeaderSize = 8 + 2 + 2 + 4 + 16 + 4 + 4*8 + 8 + 4 + 4
	hintHeaderOld  = 8 + 2 + 2 + 4 + 16 + 4*8 + 4 // of versions 1 and 2
	hintBlockSize  = 256 << 10
	hintBlockCount = 8 << 10 // entries: in memory each is a hundred bytes
	hintBlockMax   = hintBlockSize + 4*(MaxKey+format.MaxElementPart)
	hintLast       = 1 << 31

	hintLike   = 1 << 7 // of the tag
	hintShared = 63     // so that keys in memory are no more than some 16 times the file
)

// hintContext is what an entry of a hint refers to.
type hintContext struct {
	seq       uint64
	end, size uint32
	namespace uint32
	key       []byte // reused
}

// begin begins a block.
func (c *hintContext) begin() { *c = hintContext{key: c.key[:0]} }

// follow makes e, whose key is in c.key already, the entry before.
func (c *hintContext) follow(e *format.Entry) {
	c.seq, c.end, c.size, c.namespace = e.Seq, e.At+e.Size, e.Size, e.Namespace
}

// append appends an entry.
func (c *hintContext) append(b []byte, e *format.Entry) []byte {
	tag, gap := format.TagOf(e.Kind, e.Type), e.At-c.end
	like := gap == 0 && e.Namespace == c.namespace && len(e.Key) == len(c.key)
	if like {
		tag |= hintLike
	}
	b = binary.AppendUvarint(append(b, tag), e.Seq-c.seq)
	if !like {
		b = binary.AppendUvarint(b, uint64(gap))
		b = binary.AppendUvarint(b, uint64(e.Namespace))
		b = binary.AppendUvarint(b, uint64(len(e.Key)))
	}
	b = binary.AppendVarint(b, int64(e.Size)-int64(c.size))
	if e.Kind.HasElement() {
		b = binary.AppendUvarint(b, uint64(len(e.Elem)))
	}
	if format.Inlined(e.Kind, e.Type) {
		b = binary.AppendUvarint(b, uint64(len(e.Inline)))
	}
	shared := 0
	for shared < min(len(e.Key), len(c.key), hintShared) && e.Key[shared] == c.key[shared] {
		shared++
	}
	c.key = append(c.key[:shared], e.Key[shared:]...)
	c.follow(e)
	b = append(binary.AppendUvarint(b, uint64(shared)), e.Key[shared:]...)
	return append(append(b, e.Elem...), e.Inline...)
}

// next is the inverse of append: the entry that b begins with, and its length. Its key is valid until
// the next one is taken. The error is errHint, or ErrVersion for an entry of a newer version.
func (c *hintContext) next(b []byte) (e format.Entry, n int, err error) {
	if len(b) == 0 {
		return e, 0, errHint
	}
	if format.Reserved(b[0] &^ hintLike) {
		return e, 0, ErrVersion
	}
	e.Kind, e.Type = format.SplitTag(b[0] &^ hintLike)
	if !format.ValidKind(e.Kind, e.Type) || e.Kind.Follows() {
		return e, 0, errHint
	}
	r := format.Varints{Bytes: b, At: 1}
	e.Seq = c.seq + r.Next(1<<64-1)
	gap, key := uint64(0), len(c.key)
	e.Namespace = c.namespace
	if b[0]&hintLike == 0 {
		gap = r.Next(1<<32 - 1)
		e.Namespace = uint32(r.Next(1<<32 - 1))
		key = int(r.Next(MaxKey))
	}
	at := uint64(c.end) + gap
	zigzag := r.Next(2*MaxCommit + 1)
	size := int64(c.size) + (int64(zigzag>>1) ^ -int64(zigzag&1))
	elem, inline := 0, 0
	if e.Kind.HasElement() {
		elem = int(r.Next(format.MaxElementPart))
	}
	if format.Inlined(e.Kind, e.Type) {
		inline = int(r.Next(hintBlockSize))
	}
	shared := int(r.Next(hintShared))
	if r.Bad || shared > hintShared || e.Seq < c.seq || size < 0 || size > MaxCommit || at+uint64(size) > 1<<32-1 ||
		shared > min(key, len(c.key)) || len(b)-r.At < key-shared+elem+inline {
		return e, 0, errHint
	}
	e.At, e.Size = uint32(at), uint32(size)
	b = b[r.At:]
	c.key = append(c.key[:shared], b[:key-shared]...)
	e.Key, b = c.key, b[key-shared:]
	e.Elem, e.Inline = b[:elem], b[elem:][:inline]
	c.follow(&e)
	return e, r.At + key - shared + elem + inline, nil
}

// hintHeader binds a hint to the bytes of its segment. Copies of a store give
// ids, lengths and sequence numbers to other commits than the store does.
// The nonces differ where a copy was made before the segment was begun, or
// sealed; the end where its last commits are others. Hints of segments without
// nonces have no more than time and end.
type hintHeader struct {
	flags uint16
	store [16]byte
	nonce uint32 // of the segment's header
	info  format.SealedInfo
	stamp uint64 // of its footer: time and nonce
	end   uint32 // checksum of its last bytes before the footer, up to 64
}

// hintHeader is that of the segment's hint, but for the end.
func (sg *segment) hintHeader(flags uint16) hintHeader {
	return hintHeader{flags: flags, store: sg.store, nonce: sg.nonce, info: sg.info(), stamp: sg.foot.Stamp()}
}

// framesSum is the checksum of the last bytes of the frames of a sealed segment.
func (sg *segment) framesSum() (uint32, error) { return sg.endSum(sg.size.Load() - format.FooterSize) }

// fits returns nil if the hint is that of the segment, else errHint or why the
// segment cannot be read. Where the end of the segment is damaged, its header
// and footer have to do: the hint tells whose the damaged records are.
func (h hintHeader) fits(sg *segment) error {
	of := sg.hintHeader(h.flags)
	of.end = h.end
	if sg.damaged { // the manifest is all that is known of it
		of.nonce, of.stamp = h.nonce, h.stamp
	}
	if h != of {
		return errHint
	}
	if sg.damaged {
		return nil
	}
	end, err := sg.framesSum()
	if err == nil && end != h.end {
		var sound bool
		if sound, err = sg.soundEnd(); sound {
			err = errHint
		}
	}
	return err
}

// hints reads a hint file block by block.
type hints struct {
	seal    format.ChecksumSeed
	file    vfs.File
	pos     int64
	size    int64
	plain   bool // as the flag says
	buf     []byte
	keys    []byte // of entries
	last    bool
	limit   uint64 // data length of the segment
	entries []format.Entry
	context hintContext
}

var errHint = errors.New("hint does not fit its segment or is damaged")

// openHint opens and binds a hint. Any error means: do without.
func openHint(fsys vfs.FS, dir string, sg *segment) (*hints, error) {
	f, err := fsys.Open(filepath.Join(dir, format.HintName(sg.id)), vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	head := make([]byte, hintHeaderSize)
	if err == nil {
		if _, err = f.ReadAt(head, 0); err == io.EOF && size >= hintHeaderOld {
			err = nil // an older one, and empty
		}
	}
	var h hintHeader
	if err == nil {
		h, err = parseHintHeader(head)
	}
	if err == nil {
		err = h.fits(sg)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &hints{seal: sg.seal, file: f, pos: hintHeaderSize, size: size, plain: h.flags == hintPlain, limit: uint64(sg.size.Load())}, nil
}

// next returns the entries of the next block, io.EOF at the end. They are valid
// until it is called again, unless buf and keys are replaced before.
func (hs *hints) next() ([]format.Entry, error) {
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
	if binary.LittleEndian.Uint32(hs.buf) != hs.seal.Sum(uint32(hs.pos), hs.buf[4:]) {
		return nil, errHint
	}
	hs.pos += size
	hs.last = word&hintLast != 0
	if hs.last && hs.pos != hs.size {
		return nil, errHint
	}
	return hs.buf[8:], nil
}

func (hs *hints) parse(b []byte) ([]format.Entry, error) {
	hs.entries, hs.keys = hs.entries[:0], hs.keys[:0]
	hs.context.begin()
	for len(b) > 0 {
		e, n, err := hs.context.next(b)
		if err == nil && !hs.fits(&e) {
			err = errHint
		}
		if err != nil {
			return nil, err
		}
		k := len(hs.keys)
		hs.keys = append(hs.keys, e.Key...)
		e.Key = hs.keys[k:len(hs.keys):len(hs.keys)]
		hs.entries = append(hs.entries, e)
		b = b[n:]
	}
	return hs.entries, nil
}

// fits reports whether an entry is one that the segment may have.
func (hs *hints) fits(e *format.Entry) bool {
	return uint64(e.At)+uint64(e.Size) <= hs.limit && (e.Kind.Plain() || !hs.plain)
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
