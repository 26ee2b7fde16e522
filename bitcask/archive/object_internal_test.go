package archive

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/internal/test/chance"
)

var someLog = id{generation: 3, store: [16]byte{1, 2, 3}, kind: kindLog, first: 10, last: 20, from: 1000, to: 2000}

func encoded(t *testing.T, o id, b []byte) []byte {
	t.Helper()
	all, err := io.ReadAll(newEncoder(o, bytes.NewReader(b)))
	must(t, err)
	if int64(len(all)) != encodedSize(int64(len(b))) {
		t.Errorf("%d bytes make an object of %d, not of %d", len(b), len(all), encodedSize(int64(len(b))))
	}
	return all
}

// TestObject: what an object holds comes back, whatever its length, and any change of it is an error that names it.
func TestObject(t *testing.T) {
	r := chance.Rand(t)
	for _, n := range []int{0, 1, 100, blockSize - 1, blockSize, blockSize + 1, 2*blockSize + 5} {
		b := randomBytes(r, n)
		object := encoded(t, someLog, b)
		if got, err := io.ReadAll(newDecoder(someLog, bytes.NewReader(object))); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
		}
	}
	b := randomBytes(r, 300)
	object := encoded(t, someLog, b)
	wants := func(what string, damaged []byte) {
		t.Helper()
		got, err := io.ReadAll(newDecoder(someLog, bytes.NewReader(damaged)))
		corrupt, ok := errors.AsType[*failure.CorruptError](err)
		if !ok || corrupt.File != someLog.name() || len(got) > 0 {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
	for i := range object {
		damaged := slices.Clone(object)
		damaged[i] ^= 1 << r.IntN(8)
		wants("flipped", damaged)
		wants("cut", object[:i])
	}
	if _, err := io.ReadAll(newDecoder(someLog, bytes.NewReader(append(slices.Clone(object), 0)))); !failure.IsDamage(err) {
		t.Errorf("with a byte more: %v", err)
	}
	long := encoded(t, someLog, randomBytes(r, 2*blockSize+5))
	swapped := slices.Clone(long)
	const whole = blockHead + blockSize
	copy(swapped[headerSize:], long[headerSize+whole:][:whole])
	copy(swapped[headerSize+whole:], long[headerSize:][:whole])
	wants("with two blocks exchanged", swapped)
	other := someLog
	other.last++
	wants("of another name", encoded(t, other, b))
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestObjectNames: a name is parsed into what it was made of, and anything else is no name.
func TestObjectNames(t *testing.T) {
	for _, o := range []id{
		someLog,
		{generation: 1, kind: kindLog, first: 1, last: 1<<64 - 2},
		{generation: 99999999, store: [16]byte{255}, kind: kindBase, first: 1<<64 - 1, last: 7, from: 1_700_000_000_000},
		{generation: 1, kind: kindData, first: 0xabc},
	} {
		name := o.name()
		if got, ok := parseName(name); !ok || got != o {
			t.Errorf("%s: %+v, %v; want %+v", name, got, ok, o)
		}
		for i := range name {
			for _, wrong := range []string{name[:i], name[:i] + "x" + name[i+1:], name[:i] + "-" + name[i:]} {
				if got, ok := parseName(wrong); ok && got.name() != wrong {
					t.Errorf("%s is %+v", wrong, got)
				}
			}
		}
	}
	for _, wrong := range []string{"", "/", "MANIFEST", "g00000001-x/y.log", someLog.name() + ".tmp", "a" + someLog.name()} {
		if _, ok := parseName(wrong); ok {
			t.Errorf("%q is a name", wrong)
		}
	}
}

// FuzzLog: what a log object holds is read without a panic, whatever it is.
func FuzzLog(f *testing.F) {
	var c contents
	c.buf = manifestEntry(7, []uint64{8, 16})
	c.addMark(mark{5, 6})
	c.buf = append(append(c.buf, entryFrames), make([]byte, framesHead-5)...)
	c.buf = append(c.buf, 3, 0, 0, 0, 'a', 'b', 'c')
	f.Add(c.buf)
	f.Add([]byte{entryManifest, 0, 0, 255, 255, 255, 255})
	f.Add([]byte{9})
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		v := &visitor{
			mark:     func(mark) error { n++; return nil },
			manifest: func(uint16, []uint64) error { n++; return nil },
			frames: func(_ []byte, _ int64, frames *io.LimitedReader) error {
				n++
				_, err := io.CopyN(io.Discard, frames, frames.N/2)
				return err
			},
		}
		object, err := io.ReadAll(newEncoder(someLog, bytes.NewReader(b)))
		must(t, err)
		if err := v.walk(newDecoder(someLog, bytes.NewReader(object))); err != nil && !failure.IsDamage(err) {
			t.Error(err)
		}
		if n > len(b)/7+1 {
			t.Errorf("%d entries in %d bytes", n, len(b))
		}
		if err := v.walk(newDecoder(someLog, bytes.NewReader(b))); !failure.IsDamage(err) && !errors.Is(err, failure.ErrVersion) {
			t.Errorf("of other bytes: %v", err)
		}
	})
}
