package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
)

// TestEveryBit flips each bit of each file of a small closed store, one at a time: the store either
// gives an error that names the file, or holds exactly what it held.
func TestEveryBit(t *testing.T) {
	files, values := smallStore(t)
	flips, told, passed, size := 0, 0, 0, 0
	for _, b := range files {
		size += len(b) * 8
	}
	part := longTests.Start(t, 1).Part(t, 100)
	defer part.End()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "LOCK" {
			continue
		}
		for bit := range len(files[name]) * 8 {
			if testing.Short() && bit%13 != 0 || !part.Take(passed+bit, size) {
				continue
			}
			damaged := maps.Clone(files)
			damaged[name] = slices.Clone(files[name])
			damaged[name][bit/8] ^= 1 << (bit % 8)
			flips++
			if verdict(t, fmt.Sprintf("%s bit %d", name, bit), damaged, values) {
				told++
			}
		}
		passed += len(files[name]) * 8
	}
	t.Logf("%d bits flipped: %d told, %d harmless", flips, told, flips-told)
}

// smallStore is a store of two sealed segments with hints and an active one.
func smallStore(t *testing.T) (files map[string][]byte, values map[string]string) {
	t.Helper()
	fs := restore(t, nil)
	values = map[string]string{}
	for range 2 { // the hints of the first round are there after the second
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 400}, seam.Options{FS: fs}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			key, value := fmt.Sprint("k", i%5), fmt.Sprintf("value %d", len(values)+i)
			put(t, s, key, value)
			values[key] = value
		}
		if _, err := s.Delete("k4"); err != nil {
			t.Fatal(err)
		}
		delete(values, "k4")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return snapshot(t, fs, "d"), values
}

// verdict opens a damaged store and reports whether the damage was detected. It fails the test on a
// wrong, stale or missing value without an error.
func verdict(t *testing.T, name string, files map[string][]byte, values map[string]string) (told bool) {
	t.Helper()
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 400}, seam.Options{FS: restore(t, files)}))
	if err != nil {
		if !typed(err) {
			t.Errorf("%s: open: %v", name, err)
		}
		return true
	}
	for _, key := range []string{"k0", "k1", "k2", "k3", "k4"} {
		got, err := s.Get(key)
		value, ok := values[key]
		switch {
		case err == nil && ok && string(got) == value, errors.Is(err, bitcask.ErrNotFound) && !ok:
		case err != nil && typed(err):
			told = true
		default:
			t.Errorf("%s: %s is %q, %v; want %q", name, key, got, err, value)
		}
	}
	if _, err := s.Check(context.Background(), func(bitcask.Finding) { told = true }); err != nil {
		t.Errorf("%s: check: %v", name, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: close: %v", name, err)
	}
	return told
}

func typed(err error) bool {
	var c *bitcask.CorruptError
	for _, target := range []error{bitcask.ErrVersion, bitcask.ErrForeign, bitcask.ErrMissing, bitcask.ErrManifest} {
		if errors.Is(err, target) {
			return true
		}
	}
	return errors.As(err, &c)
}

// FuzzOpen opens a store of which a stretch of one file is replaced, or missing from some offset
// on: it gives an error, or holds exactly what it held.
func FuzzOpen(f *testing.F) {
	f.Add(uint8(0), uint16(0), false, []byte{})
	f.Add(uint8(1), uint16(40), false, make([]byte, 64))
	f.Add(uint8(2), uint16(9), true, []byte{})
	f.Add(uint8(5), uint16(70), false, []byte("\xff\xff\xff\xff\xff\xff\xff\x7f"))
	var (
		once   sync.Once
		files  map[string][]byte
		values map[string]string
	)
	f.Fuzz(func(t *testing.T, file uint8, offset uint16, cut bool, other []byte) {
		once.Do(func() {
			files, values = smallStore(t)
			delete(files, "LOCK")
		})
		names := slices.Sorted(maps.Keys(files))
		name := names[int(file)%len(names)]
		b := slices.Clone(files[name])
		at := int(offset) % (len(b) + 1)
		if cut {
			b = append(b[:at], other...)
		} else {
			copy(b[at:], other)
		}
		damaged := maps.Clone(files)
		damaged[name] = b
		size := 0
		for _, b := range damaged {
			size += len(b)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		verdict(t, fmt.Sprintf("%s from %d", name, at), damaged, values)
		runtime.ReadMemStats(&after)
		// To open, read and check a store of few bytes takes a hundredth of that.
		const spare = 4 << 20
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(64*size+spare) {
			t.Errorf("%s from %d: %d bytes allocated for a store of %d", name, at, n, size)
		}
	})
}
