package db_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// The operations of the model test on parts of strings, which are cut into chunks if they are long.

func init() {
	modelReads = append(modelReads, opGetBit, opBitCount)
	modelWrites = append(modelWrites, opSetRange, opSetRange, opSetBit, opSetBit, opStretch, opStretch, opStretch, opSketchAdd, opSketchAdd, opSketchCount)
}

// offset is a position in a string or after its end.
func (x *modelOp) offset(v *modelValue) int {
	if x.rng.IntN(20) == 0 {
		return x.rng.IntN(3000)
	}
	return x.rng.IntN(min(len(v.string()), 20_000) + 30)
}

// write is what remains of a string when part has been written to it.
func (v *modelValue) write(at int, part string) {
	if gap := at + len(part) - len(v.str); gap > 0 {
		v.str += strings.Repeat("\x00", gap)
	}
	v.str = v.str[:at] + part + v.str[at+len(part):]
}

func opSetRange(x *modelOp) {
	key, part := x.key(), x.value()
	v, want := x.get(key, db.TypeString)
	at := x.offset(v)
	x.begin("SETRANGE %q %d %q", key, at, part)
	n := len(v.string())
	if want == nil && part != "" {
		v, _ = x.make(key, db.TypeString)
		v.write(at, part)
		n = len(v.str)
	}
	got, err := x.keys.String(key).SetRange(int64(at), []byte(part))
	x.result(got, err, n, want)
}

func opSetBit(x *modelOp) {
	key, on := x.key(), x.rng.IntN(2) == 0
	v, want := x.get(key, db.TypeString)
	at, mask := x.offset(v), byte(0x80>>x.rng.IntN(8))
	bit := int64(at)*8 + int64(bits.LeadingZeros8(mask))
	x.begin("SETBIT %q %d %v", key, bit, on)
	was := false
	if want == nil {
		v, _ = x.make(key, db.TypeString)
		if at >= len(v.str) {
			v.write(at, "\x00")
		}
		was = v.str[at]&mask != 0
		now := v.str[at] &^ mask
		if on {
			now |= mask
		}
		v.write(at, string([]byte{now}))
	}
	got, err := x.keys.Bitmap(key).Set(bit, on)
	x.result(got, err, was, want)
}

func opGetBit(x *modelOp) {
	key := x.key()
	v, want := x.get(key, db.TypeString)
	at, mask := x.offset(v), byte(0x80>>x.rng.IntN(8))
	x.begin("GETBIT %q in byte %d", key, at)
	on := at < len(v.string()) && v.str[at]&mask != 0
	got, err := x.keys.Bitmap(key).Get(int64(at)*8 + int64(bits.LeadingZeros8(mask)))
	x.result(got, err, on, want)
}

func opBitCount(x *modelOp) {
	key := x.key()
	x.begin("BITCOUNT %q", key)
	v, want := x.get(key, db.TypeString)
	n := int64(0)
	for i := range len(v.string()) {
		n += int64(bits.OnesCount8(v.str[i]))
	}
	got, err := x.keys.Bitmap(key).Count(db.AllBits)
	x.result(got, err, n, want)
}

// opStretch sets a string that is longer than most.
func opStretch(x *modelOp) {
	key, value := x.key(), strings.Repeat(x.value(), 1+x.rng.IntN(12))
	if len(value) > 2000 {
		return
	}
	x.begin("SET %q %q", key, value)
	x.result(nil, x.keys.String(key).Put([]byte(value)), nil, nil)
	x.space[key] = &modelValue{typ: db.TypeString, str: value}
}

// wholeString is what a string is to package structures that is never cut: with it the model adds to a sketch.
type wholeString struct {
	structures.Txn
	value []byte
}

func (w *wholeString) Find(string) (slot keydir.Slot, f keydir.Collection, err error) {
	if w.value != nil {
		slot.Type = keydir.String
	}
	return slot, f, nil
}

func (w *wholeString) Value(dst []byte, _, _ string, _ keydir.Type, _ keydir.Loc) ([]byte, error) {
	return append(dst, w.value...), nil
}

func (w *wholeString) ValuePart(dst []byte, _, _ string, _ keydir.Type, _ keydir.Loc, from, to int) ([]byte, error) {
	return append(dst, w.value[min(from, len(w.value)):min(to, len(w.value))]...), nil
}

func (w *wholeString) ValueLen(_, _ string, _ keydir.Type, _ keydir.Loc) (int, error) {
	return len(w.value), nil
}

func (w *wholeString) PutString(_ string, value []byte) error {
	w.value = bytes.Clone(value)
	return nil
}

func (w *wholeString) ChunkSize() int { return 1 << 30 }

func (w *wholeString) Notify(structures.EventKind, string) {}

// sketchKey is mostly a key on which little else is done.
func (x *modelOp) sketchKey() string {
	if x.rng.IntN(4) == 0 {
		return x.key()
	}
	return "hash:a:b"
}

// sketch is the string at a key as a sketch of the model; put makes it the string again.
func (x *modelOp) sketch(key string) (w *wholeString, put func(), want error) {
	v, want := x.get(key, db.TypeString)
	w = new(wholeString)
	if v != nil {
		w.value = append([]byte{}, v.str...)
	}
	return w, func() {
		if want == nil && w.value != nil {
			v, _ = x.make(key, db.TypeString)
			v.str = string(w.value)
		}
	}, want
}

// opSketchAdd is PFADD, sometimes of so many elements that the sketch becomes dense.
func opSketchAdd(x *modelOp) {
	key, elements := x.sketchKey(), make([][]byte, x.rng.IntN(5))
	if x.rng.IntN(10) == 0 {
		elements = make([][]byte, 2500)
	}
	for i := range elements {
		elements[i] = fmt.Appendf(nil, "element %d", x.rng.IntN(5000))
	}
	x.begin("PFADD %q %d elements", key, len(elements))
	w, put, want := x.sketch(key)
	changed := false
	if want == nil {
		changed, want = structures.HyperLogLog{Txn: w, Key: key}.Add(elements)
	}
	put()
	got, err := x.keys.HyperLogLog(key).Add(elements...)
	x.result(got, err, changed, want)
}

// opSketchCount is PFCOUNT where it can save what it has counted.
func opSketchCount(x *modelOp) {
	key := x.sketchKey()
	x.begin("PFCOUNT %q", key)
	w, put, want := x.sketch(key)
	n := uint64(0)
	if want == nil {
		n, _, want = structures.CountHyperLogLogs(w, []string{key}, true)
	}
	put()
	got, err := x.keys.HyperLogLog(key).Count()
	x.result(got, err, n, want)
}
