package archive

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// An object is a header and blocks.
//
//	 0        8         10     11   12           16         32        40       48      52
//	+--------+---------+------+----+------------+----------+---------+--------+-------+--------
//	| magic  | version | kind | 0  | generation | store id | first   | last   | crc   | blocks
//	|        | u16     | u8   | u8 | u32        |          | u64     | u64    | u32   |
//	+--------+---------+------+----+------------+----------+---------+--------+-------+--------
//
//	block:  length u32, bit 31: the last one | crc u32 | length bytes
//
// The header's crc covers all before it. That of a block begins with the header's crc, and covers the block's number (u64),
// the length field and the bytes: no block can be missing, or be of another object. Name and header say the same.
const (
	magic      = "STAVEARC"
	version    = 1
	headerSize = 52
	blockHead  = 8
	blockSize  = 1 << 20
	lastBlock  = 1 << 31
)

// kind is the kind of an object.
type kind uint8

const (
	kindLog  kind = 1 // commits: contents.go
	kindBase kind = 2 // says that a backup is whole, and where it is: base.go
	kindData kind = 3 // the bytes of a backup, a tar archive
)

// suffixes end the names of objects.
var suffixes = map[kind]string{kindLog: ".log", kindBase: ".base", kindData: ".data"}

// id is what the name of an object says. The name is in order of generation, and within it in order of sequence.
type id struct {
	generation uint32
	store      [16]byte
	kind       kind
	first      uint64 // of a log: the first sequence number. Of data: a random number, which its base has, too
	last       uint64 // of a log: the last sequence number. Of a base: that of its newest record
	from, to   int64  // of a log: the lowest and the highest time of its marks, Unix ms, 0 without one. Of a base: from is its time
}

// generationName is the first part of the names of a generation's objects.
func generationName(number uint32, store [16]byte) string {
	return fmt.Sprintf("g%08d-%x", number, store)
}

func parseGeneration(name string) (of id, ok bool) {
	if len(name) != 1+8+1+32 || name[0] != 'g' || name[9] != '-' {
		return of, false
	}
	n, err := strconv.ParseUint(name[1:9], 10, 32)
	if err != nil {
		return of, false
	}
	if _, err := hex.Decode(of.store[:], []byte(name[10:])); err != nil {
		return of, false
	}
	of.generation = uint32(n)
	return of, generationName(of.generation, of.store) == name
}

func (o id) name() string {
	name := generationName(o.generation, o.store) + "/"
	switch o.kind {
	case kindLog:
		name += fmt.Sprintf("%020d-%020d-%013d-%013d", o.first, o.last, o.from, o.to)
	case kindBase:
		name += fmt.Sprintf("%020d-%013d-%016x", o.last, o.from, o.first)
	case kindData:
		name += fmt.Sprintf("%016x", o.first)
	}
	return name + suffixes[o.kind]
}

// parseName is the inverse of name.
func parseName(name string) (o id, ok bool) {
	folder, rest, _ := strings.Cut(name, "/")
	if o, ok = parseGeneration(folder); !ok {
		return o, false
	}
	for k, suffix := range suffixes {
		if text, found := strings.CutSuffix(rest, suffix); found {
			o.kind, rest = k, text
		}
	}
	part := strings.Split(rest, "-")
	var from, to uint64
	fields := map[kind][]*uint64{
		kindLog: {&o.first, &o.last, &from, &to}, kindBase: {&o.last, &from, &o.first}, kindData: {&o.first},
	}[o.kind]
	if len(part) != len(fields) {
		return o, false
	}
	for i, field := range fields {
		base := 10
		if o.kind != kindLog && field == &o.first {
			base = 16
		}
		n, err := strconv.ParseUint(part[i], base, 64)
		if err != nil {
			return o, false
		}
		*field = n
	}
	o.from, o.to = int64(from), int64(to)
	return o, o.name() == name
}

// header is the header of an object.
func (o id) header() []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = append(b, byte(o.kind), 0)
	b = binary.LittleEndian.AppendUint32(b, o.generation)
	b = append(b, o.store[:]...)
	b = binary.LittleEndian.AppendUint64(b, o.first)
	b = binary.LittleEndian.AppendUint64(b, o.last)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// blockSum is the checksum of a block, head being its first four bytes.
func blockSum(header uint32, n uint64, head, b []byte) uint32 {
	sum := crc32.Update(header, crc32.IEEETable, binary.LittleEndian.AppendUint64(nil, n))
	return crc32.Update(crc32.Update(sum, crc32.IEEETable, head), crc32.IEEETable, b)
}

// encoder reads an object, made of what it holds.
type encoder struct {
	from   io.Reader
	sum    uint32 // of the header
	blocks uint64
	buf    []byte
	out    []byte // what is to be read next
	ended  bool
}

func newEncoder(o id, from io.Reader) *encoder {
	e := &encoder{from: from, out: o.header()}
	e.sum = binary.LittleEndian.Uint32(e.out[headerSize-4:])
	return e
}

func (e *encoder) Read(p []byte) (int, error) {
	if len(e.out) == 0 {
		if e.ended {
			return 0, io.EOF
		}
		if e.buf == nil {
			e.buf = make([]byte, blockHead+blockSize)
		}
		n, err := io.ReadFull(e.from, e.buf[blockHead:])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		length := uint32(n)
		if e.ended = err != nil; e.ended {
			length |= lastBlock
		}
		binary.LittleEndian.PutUint32(e.buf, length)
		binary.LittleEndian.PutUint32(e.buf[4:], blockSum(e.sum, e.blocks, e.buf[:4], e.buf[blockHead:][:n]))
		e.out = e.buf[:blockHead+n]
		e.blocks++
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// decoder reads what an object holds, each byte after its checksum has verified. Its errors are a *failure.CorruptError
// with the object's name, an ErrVersion, or those of reading.
type decoder struct {
	o      id
	from   io.Reader
	at     int64  // in the object
	sum    uint32 // of the header
	blocks uint64
	buf    []byte
	out    []byte
	ended  bool
}

func newDecoder(o id, from io.Reader) *decoder { return &decoder{o: o, from: from} }

func (d *decoder) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		if d.ended {
			return 0, io.EOF
		}
		if err := d.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// next reads the header, or a block.
func (d *decoder) next() error {
	if d.at == 0 {
		return d.header()
	}
	if d.buf == nil {
		d.buf = make([]byte, blockHead+blockSize)
	}
	at := d.at
	if err := d.fill(d.buf[:blockHead]); err != nil {
		return err
	}
	word := binary.LittleEndian.Uint32(d.buf)
	n, last := word&^lastBlock, word&lastBlock != 0
	if n > blockSize || n < blockSize && !last {
		return d.corrupt(at, "length of a block")
	}
	b := d.buf[blockHead:][:n]
	if err := d.fill(b); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(d.buf[4:]) != blockSum(d.sum, d.blocks, d.buf[:4], b) {
		return d.corrupt(at, "checksum of a block")
	}
	if last {
		if n, err := io.ReadFull(d.from, d.buf[:1]); n > 0 {
			return d.corrupt(d.at, "bytes after the end")
		} else if err != io.EOF {
			return fmt.Errorf("%s: %w", d.o.name(), err)
		}
	}
	d.out, d.ended = b, last
	d.blocks++
	return nil
}

// header reads the header, which must be that of the object's name.
func (d *decoder) header() error {
	var b [headerSize]byte
	if err := d.fill(b[:]); err != nil {
		return err
	}
	d.sum = binary.LittleEndian.Uint32(b[headerSize-4:])
	switch v := binary.LittleEndian.Uint16(b[8:]); {
	case string(b[:8]) != magic || d.sum != crc32.ChecksumIEEE(b[:headerSize-4]):
		return d.corrupt(0, "header")
	case v != version:
		return fmt.Errorf("%s: version %d: %w", d.o.name(), v, failure.ErrVersion)
	case string(b[:]) != string(d.o.header()):
		return d.corrupt(0, "it is another object than its name says")
	}
	return nil
}

func (d *decoder) fill(b []byte) error {
	n, err := io.ReadFull(d.from, b)
	d.at += int64(n)
	if err == io.EOF && len(b) > 0 || err == io.ErrUnexpectedEOF {
		return d.corrupt(d.at, "it ends early")
	}
	if err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", d.o.name(), err)
	}
	return nil
}

func (d *decoder) corrupt(at int64, reason string) error {
	return &failure.CorruptError{File: d.o.name(), Offset: at, Reason: reason}
}

// ahead reads what a decoder reads, by a goroutine of its own: the next blocks are read and verified while what came before
// is written.
type ahead struct {
	of      *decoder
	blocks  chan []byte // closed at the end
	buffers chan []byte // that are free
	stopped chan struct{}
	stop    func() // ends the goroutine; nothing can be read then
	in, out []byte // a block, and what is to be read of it
	err     error  // that ended the blocks
}

func readAhead(d *decoder) *ahead {
	a := &ahead{of: d, blocks: make(chan []byte, 1), buffers: make(chan []byte, 3), stopped: make(chan struct{})}
	for range cap(a.buffers) {
		a.buffers <- make([]byte, blockSize)
	}
	var work sync.WaitGroup
	work.Go(a.run)
	a.stop = sync.OnceFunc(func() { close(a.stopped); work.Wait() })
	return a
}

func (a *ahead) run() {
	defer close(a.blocks)
	for {
		select {
		case b := <-a.buffers:
			n, err := a.of.Read(b[:blockSize])
			if a.err = err; err != nil {
				return
			}
			select {
			case a.blocks <- b[:n]:
			case <-a.stopped:
				return
			}
		case <-a.stopped:
			return
		}
	}
}

func (a *ahead) Read(p []byte) (int, error) {
	if len(a.out) == 0 {
		if a.in != nil {
			a.buffers <- a.in
		}
		var ok bool
		if a.in, ok = <-a.blocks; !ok {
			return 0, a.err
		}
		a.out = a.in
	}
	n := copy(p, a.out)
	a.out = a.out[n:]
	return n, nil
}

func (a *ahead) corrupt(reason string) error {
	a.stop()
	return a.of.corrupt(a.of.at, reason)
}
