// Package sketch is the representation of a HyperLogLog: Redis's own, byte for byte, and its arithmetic. It knows of no
// key and no store; package structures reads and writes the string.
package sketch

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// Sketch is the string of a HyperLogLog, which can be carried from Redis to Stave and back. 16384 registers of six
// bits follow a header of 16 bytes:
//
//	"HYLL" | encoding, 1 | unused, 3 | count, 8, little-endian; highest bit: stale
//
// The dense encoding is the registers, lowest bit first. The sparse one is a
// sequence of runs of equal registers:
//
//	00xxxxxx           x+1 registers that are 0
//	01xxxxxx xxxxxxxx  x+1 registers that are 0
//	1vvvvvxx           x+1 registers that are v+1
//
// A sketch starts sparse and becomes dense when it outgrows sparseMax, or when a register has a
// value that no run can hold.
type Sketch []byte

// Sizes in bytes, and how many registers there are.
const (
	HeaderSize    = 16
	Registers     = 1 << registerBits
	registerBits  = 14                // of a hash, which choose the register
	rankBits      = 64 - registerBits // of a hash, whose zeros are counted
	DenseSize     = HeaderSize + Registers*6/8
	sparseMax     = 3000 // bytes, with the header: hll-sparse-max-bytes
	encodingDense = 0
	encodingRuns  = 1

	longestZero = 64 // registers of a run of one byte
	longestVal  = 4
	largestVal  = 32
)

// ErrDamaged is the error of a sparse sketch whose runs are not all the registers there are.
var ErrDamaged = errors.New("sketch: damaged")

// New is an empty sketch: one run of zeros.
func New() Sketch {
	s := make(Sketch, HeaderSize, HeaderSize+2)
	copy(s, "HYLL")
	s[4] = encodingRuns
	return appendZeros(s, Registers)
}

// IsSketch reports whether a string of a length, of which b is the beginning, is a sketch, as far as its header shows.
func IsSketch(b []byte, length int) bool {
	return len(b) >= HeaderSize && string(b[:4]) == "HYLL" && b[4] <= encodingRuns && (b[4] != encodingDense || length == DenseSize)
}

// IsDense reports whether the sketch is in the dense encoding.
func (s Sketch) IsDense() bool { return s[4] == encodingDense }

// Count returns the count that the header holds, unless it is stale.
func (s Sketch) Count() (uint64, bool) {
	return binary.LittleEndian.Uint64(s[CountAt:]), s[StaleAt]&Stale == 0
}

// Where the header has the count, of 8 bytes. Stale is the bit of byte StaleAt that says that it is not to be used.
const (
	CountAt = 8
	StaleAt = 15
	Stale   = 0x80
)

// Invalidate marks the count as stale. PFCOUNT computes it again.
func (s Sketch) Invalidate() { s[StaleAt] |= Stale }

// A run is one instruction of the sparse encoding.
type run struct {
	size   int // bytes
	length int // registers
	value  int // of each register
}

// runAt decodes the run at p. As in Redis the second byte of a run that is cut
// short counts as 0.
func (s Sketch) runAt(p int) run {
	b := s[p]
	switch {
	case b&0x80 != 0:
		return run{1, int(b&3) + 1, int(b>>2&0x1f) + 1}
	case b&0x40 == 0:
		return run{1, int(b&0x3f) + 1, 0}
	}
	low := 0
	if p+1 < len(s) {
		low = int(s[p+1])
	}
	return run{2, int(b&0x3f)<<8 | low + 1, 0}
}

// seek returns the place of the run that has a register, of the run before it (-1 if there is none),
// and the first register of the run. Most of the time that an element takes goes here.
func (s Sketch) seek(index int) (previous, p, first int) {
	previous, p = -1, HeaderSize
	for p < len(s) {
		b, size := s[p], 1
		length := int(b&0x3f) + 1
		switch {
		case b&0x80 != 0:
			length = int(b&3) + 1
		case b&0x40 != 0:
			length, size = s.runAt(p).length, 2
		}
		if first+length > index {
			break
		}
		previous, p, first = p, p+size, first+length
	}
	return previous, p, first
}

func appendZeros(b []byte, n int) []byte {
	switch {
	case n <= 0:
		return b
	case n > longestZero:
		n--
		return append(b, 0x40|byte(n>>8), byte(n))
	}
	return append(b, byte(n-1))
}

func valueRun(value, length int) byte { return 0x80 | byte(value-1)<<2 | byte(length-1) }

// eachRun calls fn for the runs of a sparse sketch, until it returns false. It is
// an error if they are not all the registers there are.
func (s Sketch) eachRun(fn func(first int, r run) bool) error {
	first := 0
	for p := HeaderSize; p < len(s); {
		r := s.runAt(p)
		if !fn(first, r) {
			break
		}
		first += r.length
		p += r.size
	}
	if first != Registers {
		return ErrDamaged
	}
	return nil
}

// eachValue calls fn for the registers of a sparse sketch that are not 0. As in
// Redis a run beyond the last register is left out.
func (s Sketch) eachValue(fn func(i, value int)) error {
	return s.eachRun(func(first int, r run) bool {
		switch {
		case r.value == 0:
			return true
		case first+r.length > Registers:
			return false
		}
		for i := range r.length {
			fn(first+i, r.value)
		}
		return true
	})
}

// Offset returns where a register of a dense sketch is: in the byte at a position from a bit on, and
// in the byte after it if it does not fit.
func Offset(i int) (at, shift int) { return HeaderSize + i*6/8, i * 6 % 8 }

// register reads a register of a dense sketch.
func (s Sketch) register(i int) int {
	at, shift := Offset(i)
	return Register(s[at:], shift)
}

// Register reads the register that begins in the first byte.
func Register(b []byte, shift int) int {
	v := int(b[0]) >> shift
	if shift > 2 {
		v |= int(b[1]) << (8 - shift)
	}
	return v & 63
}

// SetRegister writes the register that begins in the first byte.
func SetRegister(b []byte, shift, value int) {
	b[0] = b[0]&^(63<<shift) | byte(value<<shift)
	if shift > 2 {
		b[1] = b[1]&^(63>>(8-shift)) | byte(value>>(8-shift))
	}
}

// four reads the four registers of a dense sketch from i on, which is a multiple of four: they take
// three bytes.
func (s Sketch) four(i int) (a, b, c, d uint8) {
	p := s[HeaderSize+i/4*3:]
	_ = p[2]
	return p[0] & 63, p[0]>>6 | p[1]<<2&63, p[1]>>4 | p[2]<<4&63, p[2] >> 2
}

func (s Sketch) setRegister(i, value int) {
	at, shift := Offset(i)
	SetRegister(s[at:], shift, value)
}

// Dense returns the sketch in the dense encoding.
func (s Sketch) Dense() (Sketch, error) {
	if s.IsDense() {
		return s, nil
	}
	d := make(Sketch, DenseSize)
	copy(d, s[:HeaderSize])
	d[4] = encodingDense
	return d, s.eachValue(d.setRegister)
}

// Raise makes a register at least a value, and says whether that changed it.
func (s Sketch) Raise(index, value int) (Sketch, bool, error) {
	if s.IsDense() {
		if s.register(index) >= value {
			return s, false, nil
		}
		s.setRegister(index, value)
		return s, true, nil
	}
	if value > largestVal {
		return s.promote(index, value)
	}
	previous, p, first := s.seek(index)
	if p >= len(s) {
		return s, false, ErrDamaged
	}
	r := s.runAt(p)
	if r.value >= value {
		return s, false, nil
	}
	// The run is split around the register: the part before, itself, the part after.
	var parts [5]byte
	split := parts[:0]
	before, behind := index-first, first+r.length-1-index
	if r.value == 0 {
		split = appendZeros(split, before)
		split = append(split, valueRun(value, 1))
		split = appendZeros(split, behind)
	} else {
		if before > 0 {
			split = append(split, valueRun(r.value, before))
		}
		split = append(split, valueRun(value, 1))
		if behind > 0 {
			split = append(split, valueRun(r.value, behind))
		}
	}
	end := min(p+r.size, len(s))
	if grow := len(split) - (end - p); grow > 0 && len(s)+grow > sparseMax {
		return s.promote(index, value)
	}
	s = append(s[:p], append(split, s[end:]...)...)
	if previous < 0 {
		previous = HeaderSize
	}
	s = s.join(previous)
	s.Invalidate()
	return s, true, nil
}

// promote is Raise for a value or a length beyond the sparse encoding.
func (s Sketch) promote(index, value int) (Sketch, bool, error) {
	d, err := s.Dense()
	if err != nil {
		return s, false, err
	}
	return d.Raise(index, value)
}

// join makes one run of neighbours with the same value, where one can hold both.
// It examines five runs from p on, which are all that a change can have touched.
func (s Sketch) join(p int) Sketch {
	for scan := 5; p < len(s) && scan > 0; scan-- {
		r := s.runAt(p)
		if r.value > 0 && p+1 < len(s) {
			if next := s.runAt(p + 1); next.value == r.value && r.length+next.length <= longestVal {
				s[p+1] = valueRun(r.value, r.length+next.length)
				s = append(s[:p], s[p+1:]...)
				continue
			}
		}
		p += r.size
	}
	return s
}

// MaxInto raises registers to those of the sketch.
func (s Sketch) MaxInto(largest *[Registers]uint8) error {
	if s.IsDense() {
		for i := 0; i < Registers; i += 4 {
			a, b, c, d := s.four(i)
			l := largest[i : i+4 : i+4]
			l[0], l[1], l[2], l[3] = max(l[0], a), max(l[1], b), max(l[2], c), max(l[3], d)
		}
		return nil
	}
	return s.eachValue(func(i, value int) { largest[i] = max(largest[i], uint8(value)) })
}

// Histogram says how many registers have each value.
type Histogram [64]int

// Histogram counts the registers.
func (s Sketch) Histogram() (h Histogram, err error) {
	if !s.IsDense() {
		err = s.eachRun(func(_ int, r run) bool {
			h[r.value] += r.length
			return true
		})
		return h, err
	}
	var other Histogram // neighbours are often equal, and one counter after another is quicker than twice the same
	for i := 0; i < Registers; i += 4 {
		a, b, c, d := s.four(i)
		h[a]++
		other[b]++
		h[c]++
		other[d]++
	}
	for i, n := range other {
		h[i] += n
	}
	return h, nil
}

// Estimate is the number of different elements that a histogram stands for, by Otmar Ertl's "New
// cardinality estimation algorithms for HyperLogLog sketches"
// (arXiv:1702.01284). The conversions keep a compiler from fusing operations,
// which would round differently from Redis.
func (h *Histogram) Estimate() uint64 {
	const m = float64(Registers)
	z := m * tau((m-float64(h[rankBits+1]))/m)
	for j := rankBits; j >= 1; j-- {
		z += float64(h[j])
		z *= 0.5
	}
	z += float64(m * sigma(float64(h[0])/m))
	const alpha = 0.721347520444481703680 // 0.5 / ln 2
	return uint64(math.Round(float64(alpha*m*m) / z))
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	for y, z := 1.0, x; ; {
		x = float64(x * x)
		before := z
		z += float64(x * y)
		y += y
		if z == before {
			return z
		}
	}
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	for y, z := 1.0, 1-x; ; {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= float64(float64((1-x)*(1-x)) * y)
		if z == before {
			return z / 3
		}
	}
}

// Of hashes an element: the register it falls into, and the value it has
// there, which is the length of the run of zeros in the rest of the hash and one.
func Of(element []byte) (index, value int) {
	h := murmur64(element)
	rest := h>>registerBits | 1<<rankBits // at most rankBits zeros
	return int(h & (Registers - 1)), bits.TrailingZeros64(rest) + 1
}

// murmur64 is MurmurHash64A with Redis's seed.
func murmur64(b []byte) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := 0xadc83b19 ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h ^= k * m
		h *= m
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h ^= binary.LittleEndian.Uint64(tail[:])
		h *= m
	}
	h ^= h >> r
	h *= m
	h ^= h >> r
	return h
}
