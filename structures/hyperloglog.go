package structures

import (
	"encoding/binary"

	"github.com/stavedb/stave/structures/internal/sketch"
)

// HyperLogLog is a string seen as a sketch that estimates how many different
// elements were added to it, within 0.81 % (one standard deviation), in 12 KiB at
// most. The string is Redis's own representation. A dense sketch is kept in short chunks, of which
// a change writes those with the registers that it raises; a sparse one, at most 3000 bytes, is
// written whole.
type HyperLogLog struct {
	Txn StringTxn
	Key string
}

// read returns a copy of the sketch; ok says whether the key exists.
func (l HyperLogLog) read() (s sketch.Sketch, ok bool, err error) {
	value, ok, err := String(l).Get(nil)
	if err != nil || !ok {
		return nil, false, err
	}
	return value, true, checkSketch(value, len(value))
}

// open finds the sketch and reads its header.
func (l HyperLogLog) open(header []byte) (c stringValue, length int, head sketch.Sketch, err error) {
	s := String(l)
	if c, err = s.find(); err != nil || !c.exists {
		return c, 0, nil, err
	}
	if length, err = s.len(&c); err != nil {
		return c, length, nil, err
	}
	if head, err = s.appendTo(header, &c, 0, min(sketch.HeaderSize, length)); err != nil {
		return c, length, nil, err
	}
	return c, length, head, checkSketch(head, length)
}

func checkSketch(b []byte, length int) error {
	if !sketch.IsSketch(b, length) {
		return ErrNotSketch
	}
	return nil
}

// damaged is an error of package sketch as clients get it.
func damaged(err error) error {
	if err == sketch.ErrDamaged {
		return ErrSketchDamaged
	}
	return err
}

// Add adds elements, and says whether that changed the sketch; a key that does
// not exist is made, also for no element. The deadline stays. O(1) an element.
func (l HyperLogLog) Add(elements [][]byte) (bool, error) {
	c, _, head, err := l.open(make([]byte, 0, sketch.HeaderSize))
	if err != nil {
		return false, err
	}
	if c.cut() && head.IsDense() {
		return l.addDense(&c, head, elements)
	}
	scratch := editBuffers.Get().(*[]byte)
	defer editBuffers.Put(scratch)
	changed, s := !c.exists, sketch.Sketch(nil)
	if changed {
		s = sketch.New()
	} else if s, err = String(l).whole((*scratch)[:0], &c); err != nil {
		return false, err
	} else {
		*scratch = s
	}
	for _, element := range elements {
		index, value := sketch.Of(element)
		var raised bool
		if s, raised, err = s.Raise(index, value); err != nil {
			return false, damaged(err)
		}
		changed = changed || raised
	}
	if !changed {
		return false, nil
	}
	s.Invalidate()
	return true, notifyUnless(l.Txn, EventPFAdd, l.Key, String(l).putEdited(s))
}

// addDense is Add to a dense sketch in chunks: it reads and writes those that it needs. head is its
// header.
func (l HyperLogLog) addDense(c *stringValue, head sketch.Sketch, elements [][]byte) (bool, error) {
	p := chunkCache{s: String(l), c: c}
	room := make([]byte, 0, 2)
	for _, element := range elements {
		index, value := sketch.Of(element)
		at, shift := sketch.Offset(index)
		end := min(at+2, sketch.DenseSize)
		var pair []byte
		var err error
		if p.held != nil {
			pair = p.load(at, end-at)
		} else if pair, err = p.s.appendTo(room, c, at, end); err != nil {
			return false, err
		}
		if sketch.Register(pair, shift) >= value {
			continue
		}
		sketch.SetRegister(pair, shift, value)
		if p.held == nil {
			p.held = map[int]*cachedChunk{}
		}
		p.store(at, pair)
	}
	if p.held == nil {
		return false, nil
	}
	if last := head[sketch.StaleAt]; last&sketch.Stale == 0 {
		p.store(sketch.StaleAt, []byte{last | sketch.Stale})
	}
	return true, notifyUnless(l.Txn, EventPFAdd, l.Key, p.flush())
}

// CountHyperLogLogs estimates how many different elements the sketches at the
// keys have together; one that does not exist has none. The estimate of a single one is
// kept in its header until the sketch changes, as in Redis: if it has to be computed and save is set,
// it is written there, which is not an event. kept is false if a call that saves would spare later ones the
// work. O(1) a key, with a large constant, 16384 registers, unless the estimate is there.
func CountHyperLogLogs(t StringTxn, keys []string, save bool) (n uint64, kept bool, err error) {
	if len(keys) == 1 {
		return HyperLogLog{Txn: t, Key: keys[0]}.count(save)
	}
	largest, _, err := mergeSketches(t, keys)
	if err != nil {
		return 0, true, err
	}
	var h sketch.Histogram
	for _, value := range largest {
		h[value]++
	}
	return h.Estimate(), true, nil
}

// count is CountHyperLogLogs of one key.
func (l HyperLogLog) count(save bool) (n uint64, kept bool, err error) {
	s := String(l)
	c, length, head, err := l.open(make([]byte, 0, sketch.HeaderSize))
	if err != nil || !c.exists {
		return 0, true, err
	}
	if n, ok := head.Count(); ok {
		return n, true, nil
	}
	scratch := editBuffers.Get().(*[]byte)
	defer editBuffers.Put(scratch)
	whole, err := s.whole((*scratch)[:0], &c)
	if err != nil {
		return 0, false, err
	}
	*scratch = whole
	h, err := sketch.Sketch(whole).Histogram()
	if err != nil {
		return 0, true, damaged(err)
	}
	n = h.Estimate()
	if save {
		err = s.edit(&c, length, sketch.CountAt, binary.LittleEndian.AppendUint64(nil, n))
	}
	return n, save, err
}

// mergeSketches returns the union of the sketches at the keys, and whether one of
// them is dense.
func mergeSketches(t StringTxn, keys []string) (largest *[sketch.Registers]uint8, dense bool, err error) {
	largest = new([sketch.Registers]uint8)
	for _, key := range keys {
		s, ok, err := HyperLogLog{Txn: t, Key: key}.read()
		if err != nil {
			return nil, false, err
		}
		if !ok {
			continue
		}
		dense = dense || s.IsDense()
		if err := s.MaxInto(largest); err != nil {
			return nil, false, damaged(err)
		}
	}
	return largest, dense, nil
}

// MergeHyperLogLogs adds to the sketch at dest, made if it does not exist, what
// the sketches at the keys have. The deadline stays. O(1) a key, with a large
// constant: 16384 registers.
func MergeHyperLogLogs(t StringTxn, dest string, keys []string) error {
	largest, dense, err := mergeSketches(t, append([]string{dest}, keys...))
	if err != nil {
		return err
	}
	s, ok, err := HyperLogLog{Txn: t, Key: dest}.read()
	if err != nil {
		return err
	}
	if !ok {
		s = sketch.New()
	}
	if dense {
		if s, err = s.Dense(); err != nil {
			return damaged(err)
		}
	}
	for i, value := range largest {
		if value == 0 {
			continue
		}
		if s, _, err = s.Raise(i, int(value)); err != nil {
			return damaged(err)
		}
	}
	s.Invalidate()
	return notifyUnless(t, EventPFAdd, dest, String{Txn: t, Key: dest}.putEdited(s))
}
