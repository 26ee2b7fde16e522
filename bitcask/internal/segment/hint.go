package segment

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// A hint file is its segment without the values: what loading needs, in the
// order of the segment. It is bound to the segment at both ends, by what header
// and footer say and by the last bytes between them; one that does not fit, or
// does not verify, is ignored and written again. Nothing is lost with a hint.
//
//	header: magic "STAVEHNT" | version u16 | flags u16 | id u32 | store id 16 | nonce u32 |
//	        data length u64 | min seq u64 | max seq u64 | records u64 | stamp u64 | end crc u32 | crc u32
//	block:  crc u32 | size u32 (bit 31: last) | entries
//	entry:  tag u8 | second table u8*** | seq | (gap | namespace | keyLen) | size | elemLen* | inlineLen** | shared | rest of key | elem | inline
//
// Most of it refers to the entry before, which at the start of each block is one of zeros with an empty key: seq is the
// difference, size too, zigzag; gap is the number of bytes between the two, and shared how many bytes, at most 63, the
// keys have in common at their beginning. If bit 7 of tag is set, the gap is 0, namespace and keyLen are those before,
// and all three are left out. Numbers are uvarints. * and **: only for the kinds that have one; ***: only for kind 14.
// Flag 1, plain: all entries are strings and deadlines.
const (
	hintMagic      = "STAVEHNT"
	hintVersion    = 3
	HintPlain      = 1
	hintHeaderSize = 8 + 2 + 2 + 4 + 16 + 4 + 4*8 + 8 + 4 + 4
	hintHeaderOld  = 8 + 2 + 2 + 4 + 16 + 4*8 + 4 // of versions 1 and 2
	hintBlockSize  = 256 << 10
	hintBlockCount = 8 << 10 // entries: in memory each is a hundred bytes
	hintBlockMax   = hintBlockSize + 4*(format.MaxKey+format.MaxElementPart)
	hintLast       = 1 << 31

	hintLike   = 1 << 7 // of the tag
	HintShared = 63     // so that keys in memory are no more than some 16 times the file
)

// HintContext is what an entry of a hint refers to.
type HintContext struct {
	Seq       uint64
	End, Size uint32
	Namespace uint32
	Key       []byte // reused
}

// Begin begins a block.
func (c *HintContext) Begin() { *c = HintContext{Key: c.Key[:0]} }

// follow makes e, whose key is in c.Key already, the entry before.
func (c *HintContext) follow(e *format.Entry) {
	c.Seq, c.End, c.Size, c.Namespace = e.Seq, e.At+e.Size, e.Size, e.Namespace
}

// Append appends an entry.
func (c *HintContext) Append(b []byte, e *format.Entry) []byte {
	tag, gap := format.TagOf(e.Kind, e.Type), e.At-c.End
	like := gap == 0 && e.Namespace == c.Namespace && len(e.Key) == len(c.Key)
	if like {
		tag |= hintLike
	}
	b = append(b, tag)
	if format.InSecond(tag) {
		b = append(b, format.SecondTag(e.Kind, e.Type))
	}
	b = binary.AppendUvarint(b, e.Seq-c.Seq)
	if !like {
		b = binary.AppendUvarint(b, uint64(gap))
		b = binary.AppendUvarint(b, uint64(e.Namespace))
		b = binary.AppendUvarint(b, uint64(len(e.Key)))
	}
	b = binary.AppendVarint(b, int64(e.Size)-int64(c.Size))
	if e.Kind.HasElement() {
		b = binary.AppendUvarint(b, uint64(len(e.Elem)))
	}
	if format.Inlined(e.Kind, e.Type) {
		b = binary.AppendUvarint(b, uint64(len(e.Inline)))
	}
	shared := 0
	for shared < min(len(e.Key), len(c.Key), HintShared) && e.Key[shared] == c.Key[shared] {
		shared++
	}
	c.Key = append(c.Key[:shared], e.Key[shared:]...)
	c.follow(e)
	b = append(binary.AppendUvarint(b, uint64(shared)), e.Key[shared:]...)
	return append(append(b, e.Elem...), e.Inline...)
}

// Next is the inverse of Append: the entry that b begins with, and its length. Its key is valid until
// the next one is taken. The error is ErrHint, or ErrVersion for an entry of a newer version.
func (c *HintContext) Next(b []byte) (e format.Entry, n int, err error) {
	if len(b) == 0 {
		return e, 0, ErrHint
	}
	r := format.Varints{Bytes: b, At: 1}
	if tag := b[0] &^ hintLike; format.InSecond(tag) {
		if len(b) < 2 {
			return e, 0, ErrHint
		}
		var ok bool
		if e.Kind, e.Type, ok = format.SplitSecond(tag, b[1]); !ok {
			return e, 0, failure.ErrVersion
		}
		r.At++
	} else if format.Reserved(tag) {
		return e, 0, failure.ErrVersion
	} else {
		e.Kind, e.Type = format.SplitTag(tag)
	}
	if !format.ValidKind(e.Kind, e.Type) || e.Kind.Follows() {
		return e, 0, ErrHint
	}
	e.Seq = c.Seq + r.Next(1<<64-1)
	gap, key := uint64(0), len(c.Key)
	e.Namespace = c.Namespace
	if b[0]&hintLike == 0 {
		gap = r.Next(1<<32 - 1)
		e.Namespace = uint32(r.Next(1<<32 - 1))
		key = int(r.Next(format.MaxKey))
	}
	at := uint64(c.End) + gap
	zigzag := r.Next(2*format.MaxCommit + 1)
	size := int64(c.Size) + (int64(zigzag>>1) ^ -int64(zigzag&1))
	elem, inline := 0, 0
	if e.Kind.HasElement() {
		elem = int(r.Next(format.MaxElementPart))
	}
	if format.Inlined(e.Kind, e.Type) {
		inline = int(r.Next(hintBlockSize))
	}
	shared := int(r.Next(HintShared))
	if r.Bad || shared > HintShared || e.Seq < c.Seq || size < 0 || size > format.MaxCommit || at+uint64(size) > 1<<32-1 ||
		shared > min(key, len(c.Key)) || len(b)-r.At < key-shared+elem+inline {
		return e, 0, ErrHint
	}
	e.At, e.Size = uint32(at), uint32(size)
	b = b[r.At:]
	c.Key = append(c.Key[:shared], b[:key-shared]...)
	e.Key, b = c.Key, b[key-shared:]
	e.Elem, e.Inline = b[:elem], b[elem:][:inline]
	c.follow(&e)
	return e, r.At + key - shared + elem + inline, nil
}

// HintHeader binds a hint to the bytes of its segment. Copies of a store give
// ids, lengths and sequence numbers to other commits than the store does.
// The nonces differ where a copy was made before the segment was begun, or
// sealed; the end where its last commits are others. Hints of segments without
// nonces have no more than time and end.
type HintHeader struct {
	flags uint16
	store [16]byte
	nonce uint32 // of the segment's header
	info  format.SealedInfo
	stamp uint64 // of its footer: time and nonce
	end   uint32 // checksum of its last bytes before the footer, up to 64
}

// HintHeader is that of the segment's hint, but for the end.
func (sg *Segment) HintHeader(flags uint16) HintHeader {
	return HintHeader{flags: flags, store: sg.StoreID, nonce: sg.Nonce, info: sg.Info(), stamp: sg.Footer.Stamp()}
}

// framesSum is the checksum of the last bytes of the frames of a sealed segment.
func (sg *Segment) framesSum() (uint32, error) { return sg.EndSum(sg.Size.Load() - format.FooterSize) }

// fits returns nil if the hint is that of the segment, else ErrHint or why the segment cannot be
// read. Where the end of the segment is damaged, its header and footer must suffice: the hint names
// the keys of the damaged records.
func (h HintHeader) fits(sg *Segment) error {
	of := sg.HintHeader(h.flags)
	of.end = h.end
	if sg.Damaged { // the manifest is all that is known of it
		of.nonce, of.stamp = h.nonce, h.stamp
	}
	if h != of {
		return ErrHint
	}
	if sg.Damaged {
		return nil
	}
	end, err := sg.framesSum()
	if err == nil && end != h.end {
		var sound bool
		if sound, err = sg.soundEnd(); sound {
			err = ErrHint
		}
	}
	return err
}

// HintReader reads a hint file block by block.
type HintReader struct {
	seed    format.ChecksumSeed
	file    vfs.File
	pos     int64
	size    int64
	Plain   bool // as the flag says
	Buf     []byte
	Keys    []byte // of entries
	last    bool
	limit   uint64 // data length of the segment
	entries []format.Entry
	context HintContext
}

var ErrHint = errors.New("hint does not fit its segment or is damaged")

// OpenHint opens and binds a hint. Any error means: do without.
func OpenHint(fsys vfs.FS, dir string, sg *Segment) (*HintReader, error) {
	f, err := fsys.Open(filepath.Join(dir, format.HintName(sg.ID)), vfs.ReadOnly)
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
	var h HintHeader
	if err == nil {
		h, err = parseHintHeader(head)
	}
	if err == nil {
		err = h.fits(sg)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &HintReader{seed: sg.Seed, file: f, pos: hintHeaderSize, size: size, Plain: h.flags == HintPlain, limit: uint64(sg.Size.Load())}, nil
}

// ReadHint opens a hint without its segment, for who looks at the file alone. It does not own the file.
func ReadHint(file vfs.File, size int64) (*HintReader, format.SealedInfo, error) {
	head := make([]byte, min(size, hintHeaderSize))
	if _, err := file.ReadAt(head, 0); err != nil {
		return nil, format.SealedInfo{}, err
	}
	if len(head) < hintHeaderSize {
		return nil, format.SealedInfo{}, ErrHint
	}
	h, err := parseHintHeader(head)
	if err != nil {
		return nil, h.info, err
	}
	seed := format.NewChecksumSeed(h.store, h.info.ID)
	return &HintReader{seed: seed, file: file, pos: hintHeaderSize, size: size, Plain: h.flags == HintPlain, limit: h.info.Length}, h.info, nil
}

// Position is where the next block begins.
func (hs *HintReader) Position() int64 { return hs.pos }

// Next returns the entries of the next block, io.EOF at the end. They are valid
// until it is called again, unless Buf and Keys are replaced before.
func (hs *HintReader) Next() ([]format.Entry, error) {
	block, err := hs.NextBlock()
	if err != nil {
		return nil, err
	}
	return hs.parse(block)
}

// NextBlock returns the bytes of the entries of the next block, io.EOF at the
// end. They are valid until it is called again.
func (hs *HintReader) NextBlock() ([]byte, error) {
	if hs.last {
		return nil, io.EOF
	}
	var head [8]byte
	if hs.size-hs.pos < int64(len(head)) {
		return nil, ErrHint
	}
	if _, err := hs.file.ReadAt(head[:], hs.pos); err != nil {
		return nil, err
	}
	word := binary.LittleEndian.Uint32(head[4:])
	size := int64(word &^ hintLast)
	if size < 8 || size > hs.size-hs.pos || size > hintBlockMax {
		return nil, ErrHint
	}
	if int64(cap(hs.Buf)) < size {
		hs.Buf = make([]byte, size)
	}
	hs.Buf = hs.Buf[:size]
	if _, err := hs.file.ReadAt(hs.Buf, hs.pos); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(hs.Buf) != hs.seed.Sum(uint32(hs.pos), hs.Buf[4:]) {
		return nil, ErrHint
	}
	hs.pos += size
	hs.last = word&hintLast != 0
	if hs.last && hs.pos != hs.size {
		return nil, ErrHint
	}
	return hs.Buf[8:], nil
}

func (hs *HintReader) parse(b []byte) ([]format.Entry, error) {
	hs.entries, hs.Keys = hs.entries[:0], hs.Keys[:0]
	hs.context.Begin()
	for len(b) > 0 {
		e, n, err := hs.context.Next(b)
		if err == nil && !hs.Fits(&e) {
			err = ErrHint
		}
		if err != nil {
			return nil, err
		}
		k := len(hs.Keys)
		hs.Keys = append(hs.Keys, e.Key...)
		e.Key = hs.Keys[k:len(hs.Keys):len(hs.Keys)]
		hs.entries = append(hs.entries, e)
		b = b[n:]
	}
	return hs.entries, nil
}

// Fits reports whether an entry is one that the segment may have.
func (hs *HintReader) Fits(e *format.Entry) bool {
	return uint64(e.At)+uint64(e.Size) <= hs.limit && (e.Kind.Plain() || !hs.Plain)
}

// Check reads the whole file once, for callers that use a hint only if all of it verifies.
func (hs *HintReader) Check() error {
	for {
		if _, err := hs.Next(); err == io.EOF {
			hs.pos, hs.last = hintHeaderSize, false
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (hs *HintReader) Close() error { return hs.file.Close() }

// Park releases the descriptor, for a hint that is read alongside those of all other segments.
func (hs *HintReader) Park() error { return vfs.Park(hs.file) }
