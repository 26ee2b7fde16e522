package manifest

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// damagedEnd is a manifest from its first edit that does not verify on. What stands there says itself how long it is,
// so the checksums are those of ranges: rangesum.go.
type damagedEnd struct {
	m    *Manifest
	b    []byte     // of the whole file
	sums *rangeSums // of b as it was read; nil: every edit so far verifies
	seed format.ChecksumSeed
}

// judge decides whether the bytes after the last edit that verifies are an edit that a crash cut short, on which
// nothing relied, or damage (I7).
func (m *Manifest) judge(end *damagedEnd) error {
	b, pos := end.b, int(m.Size)
	if pos == len(b) {
		return nil
	}
	for later := pos + 1; later < len(b); later++ {
		if end.verifies(later) {
			return &failure.CorruptError{File: FileName, Offset: int64(pos), Reason: "edit checksum, with valid edits after it"}
		}
	}
	if m.sameBoot() && len(m.Rest) >= EditHeaderSize {
		if n := int64(binary.LittleEndian.Uint32(m.Rest[4:])); int64(len(m.Rest)) >= EditHeaderSize+n {
			return &failure.CorruptError{File: FileName, Offset: int64(pos), Reason: "edit checksum, of an edit that was written as a whole"}
		}
	}
	mended := slices.Clone(b)
	if !end.correctEdit(mended, pos) {
		return nil
	}
	n := EditHeaderSize + int(binary.LittleEndian.Uint32(mended[pos+4:]))
	if !m.sameBoot() && files.LostSector(b[pos:min(pos+n, len(b))], mended[pos:], int64(pos)) {
		return nil
	}
	return &failure.CorruptError{File: FileName, Offset: int64(pos), Reason: "edit checksum, for one flipped bit"}
}

// prepare is due once an edit does not verify.
func (d *damagedEnd) prepare() {
	if d.sums == nil {
		d.sums, d.seed = newRangeSums(slices.Clone(d.b)), format.NewChecksumSeed(d.m.Store, 0)
	}
}

// editAt is Manifest.EditAt.
func (d *damagedEnd) editAt(pos int) (typ byte, body []byte, ok bool) {
	if d.sums != nil && !d.verifies(pos) {
		return 0, nil, false
	}
	return d.m.EditAt(d.b, pos)
}

// verifies reports whether there is an edit at pos.
func (d *damagedEnd) verifies(pos int) bool {
	d.prepare()
	diff, _, ok := d.difference(pos)
	return ok && diff == 0
}

// difference is between the checksum of an edit at pos and the one stored there. ok: the file has room for the edit,
// which ends at end.
func (d *damagedEnd) difference(pos int) (diff uint32, end int, ok bool) {
	b := d.sums.b[pos:]
	if len(b) < EditHeaderSize {
		return 0, 0, false
	}
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	if int64(len(b)) < EditHeaderSize+n {
		return 0, 0, false
	}
	end = pos + EditHeaderSize + int(n)
	return binary.LittleEndian.Uint32(b) ^ d.sums.sum(d.seed.Start(uint32(pos)), pos+4, end), end, true
}

// correctEdit flips the bit of b, which is the file, with which the edit at pos verifies, if it takes one bit. No part
// of an edit that a crash cut short does.
func (d *damagedEnd) correctEdit(b []byte, pos int) bool {
	d.prepare()
	bit, ok := d.wrongBit(pos)
	if ok {
		b[bit/8] ^= 1 << (bit % 8)
	}
	return ok
}

// wrongBit finds the bit of the file that does not let the edit at pos verify. It is among the first ones, up to
// format.CorrectLimit.
func (d *damagedEnd) wrongBit(pos int) (bit int, ok bool) {
	b := d.sums.b
	if len(b)-pos < EditHeaderSize {
		return 0, false
	}
	diff, end, fits := d.difference(pos)
	if fits && bits.OnesCount32(diff) == 1 {
		return 8*pos + bits.TrailingZeros32(diff), true
	}
	stored, length := binary.LittleEndian.Uint32(b[pos:]), binary.LittleEndian.Uint32(b[pos+4:])
	for i := range 32 {
		n := length ^ 1<<i
		if int64(len(b)-pos) < EditHeaderSize+int64(n) {
			continue
		}
		sum := format.ExtendSum(d.seed.Start(uint32(pos)), binary.LittleEndian.AppendUint32(nil, n))
		if d.sums.sum(sum, pos+8, pos+EditHeaderSize+int(n)) == stored {
			return 8*(pos+4) + i, true
		}
	}
	if !fits {
		return 0, false
	}
	return d.sums.flipped(diff, pos+8, min(end, pos+format.CorrectLimit), end)
}
