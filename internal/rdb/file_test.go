package rdb_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stavedb/stave/internal/rdb"
)

// unhex is what hex digits in groups stand for.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fileOf is a file of a version with those items and the right checksum.
func fileOf(version int, items []byte) []byte {
	b := append(fmt.Appendf(nil, "REDIS%04d", version), items...)
	b = append(b, 0xff)
	if version < 5 {
		return b
	}
	return rdb.Rechecked(append(b, make([]byte, 8)...))
}

// readAll reads a file, puts pieces together, and shows its keys.
func readAll(r io.Reader) (f *rdb.FileReader, keys []string, pieces int, err error) {
	var whole rdb.Value
	f = rdb.NewFileReader(r)
	err = f.Visit(func(e *rdb.Entry) error {
		if pieces++; e.First {
			whole = rdb.Value{Kind: e.Value.Kind}
		}
		join(&whole, e.Value)
		if e.Last {
			keys = append(keys, fmt.Sprintf("%d %q %d: %s", e.Database, e.Name, e.Deadline, show(whole)))
		}
		return nil
	})
	return f, keys, pieces, err
}

// join adds a piece to a value.
func join(whole *rdb.Value, piece rdb.Value) {
	if piece.Kind == rdb.String && len(whole.Elements) > 0 {
		whole.Elements[0] = slices.Concat(append([][]byte{whole.Elements[0]}, piece.Elements...)...)
	} else {
		whole.Elements = append(whole.Elements, piece.Elements...)
	}
	whole.Scores = append(whole.Scores, piece.Scores...)
	whole.Deadlines = append(whole.Deadlines, piece.Deadlines...)
	if s := piece.Stream; s != nil {
		one := *s
		if whole.Stream != nil {
			one.Entries = append(whole.Stream.Entries, s.Entries...)
		}
		whole.Stream = &one
	}
}

const everyItem = "fa 09 72656469732d766572 05 372e302e31" + // AUX redis-ver 7.0.1
	"fe 03 fb 05 01" + // database 3, sizes
	"fc 0100000000000000 00 01 61 01 78" + // a deadline in ms
	"fd 02000000 f8 05 00 01 62 c0 05" + // in s, and idle time
	"f9 07 00 01 63 c3 05 0a 00 61 e0 00 00" + // frequency, compressed
	"f5 02 7878" + // functions
	"f7 81 45e25238df912c03 02 02 01 05 02 3f 05 01 78 00" + // a module's record
	"fe 00 07 01 64 81 45e25238df912c03 03 00000000 04 0000000000000000 00" + // its value
	"f4 01 02 03" + // a slot of a cluster
	"01 01 65 02 01 78 c1 0102"

func TestFile(t *testing.T) {
	data := fileOf(10, unhex(t, everyItem))
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data))} {
		f, keys, _, err := readAll(io.MultiReader(r, strings.NewReader("rest")))
		want := []string{`3 "a" 1: 0 ["x"]`, `3 "b" 2000: 0 ["5"]`, `3 "c" 0: 0 ["aaaaaaaaaa"]`, `0 "e" 0: 1 ["x" "513"]`}
		if err != nil || !slices.Equal(keys, want) {
			t.Errorf("%s: %q, %v", name, keys, err)
		}
		rest, err := io.ReadAll(f.Rest())
		if err != nil || string(rest) != "rest" || f.Offset() != int64(len(data)) || f.Version() != 10 {
			t.Errorf("%s: %q after %d bytes, %v", name, rest, f.Offset(), err)
		}
		left := map[string]int64{"libraries of functions": 1, "records of the module ReJSON-RL": 1, "keys of the module ReJSON-RL": 1}
		if fmt.Sprint(f.LeftOut()) != fmt.Sprint(left) {
			t.Errorf("%s: left out %v", name, f.LeftOut())
		}
	}
}

// TestFileLibraries hands libraries over, with where they begin, and ends with the error of whoever takes them.
func TestFileLibraries(t *testing.T) {
	data := fileOf(10, unhex(t, everyItem))
	refused := errors.New("refused")
	for _, want := range []error{nil, refused} {
		var text string
		var at int64
		f := rdb.NewFileReader(bytes.NewReader(data))
		f.Library = func(b []byte, offset int64) error {
			text, at = string(b), offset
			return want
		}
		err := f.Visit(func(*rdb.Entry) error { return nil })
		if err != want || text != "xx" || data[at] != 0xf5 || f.LeftOut()["libraries of functions"] != 0 {
			t.Errorf("%q at %d, %v, %v", text, at, err, f.LeftOut())
		}
	}
}

// TestFileVersions reads files without a checksum, with one that is switched off, and of a later version.
func TestFileVersions(t *testing.T) {
	for _, version := range []int{1, 4, 5, 9, 12, 13, 9999} {
		data := fileOf(version, unhex(t, "fe 00 00 01 61 01 78"))
		if _, keys, _, err := readAll(bytes.NewReader(data)); err != nil || len(keys) != 1 {
			t.Errorf("version %d: %q, %v", version, keys, err)
		}
		if version >= 5 {
			copy(data[len(data)-8:], make([]byte, 8))
			if _, _, _, err := readAll(bytes.NewReader(data)); err != nil {
				t.Errorf("version %d, no checksum: %v", version, err)
			}
		}
	}
}

// TestFileDamage cuts a file everywhere and changes each of its bytes.
func TestFileDamage(t *testing.T) {
	data := fileOf(11, unhex(t, everyItem))
	for i := range data {
		_, _, _, err := readAll(bytes.NewReader(data[:i]))
		if e, ok := errors.AsType[*rdb.FileError](err); !ok || !errors.Is(err, rdb.ErrTruncated) || e.Offset > int64(i) {
			t.Errorf("cut at %d: %v", i, err)
		}
		damaged := slices.Clone(data)
		damaged[i] ^= 16
		if _, _, _, err := readAll(bytes.NewReader(damaged)); err == nil && i >= 9 {
			t.Errorf("byte %d changed: no error", i)
		}
	}
	broken := errors.New("broken")
	if _, _, _, err := readAll(io.MultiReader(bytes.NewReader(data[:40]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a read that fails: %v", err)
	}
	for name, tt := range map[string]struct{ items, want string }{
		"type":      {"63 01 61", `byte 12, key "a": a value of type 99, which came after version 12 of the format and cannot be skipped`},
		"length":    {"00 01 61 81 0000000100000000", `byte 21, key "a": a length of 4294967296 bytes, and the longest string has 536870912`},
		"value":     {"0b 01 61 03 010203", `byte 16, key "a": its value, of type 11, cannot be decoded`},
		"module":    {"07 01 61 00 09", `byte 14, key "a": a module's value has a part of kind 9, which is unknown`},
		"long text": {"00 80 20000001", `byte 15: a length of 536870913 bytes, and the longest string has 536870912`},
	} {
		if _, _, _, err := readAll(bytes.NewReader(fileOf(10, unhex(t, tt.items)))); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// TestFilePieces reads large values, which come in pieces.
func TestFilePieces(t *testing.T) {
	key := []byte("\x01k")
	for name, tt := range map[string]struct {
		value  []byte
		pieces int
		length int
	}{
		"string":     {withLength(0, strings.Repeat("0123456789abcdef", 1<<20)), 4, 1},
		"compressed": {lzfOf(0, 9<<20), 3, 1},
		"list":       {elements(1, 400_000, 1), 3, 400_000},
		"hash":       {elements(4, 400_000, 2), 6, 800_000},
		"listpack":   {lzfPack(t, 16, 1_000_000), 6, 1_000_000},
		"zset":       {lzfPack(t, 17, 1_000_000), 6, 500_000},
		"set":        {intset(400_000), 3, 400_000},
	} {
		data := fileOf(10, slices.Concat(tt.value[:1], key, tt.value[1:]))
		length, pieces, first, last := 0, 0, 0, 0
		err := rdb.NewFileReader(bytes.NewReader(data)).Visit(func(e *rdb.Entry) error {
			pieces++
			if e.First {
				first++
			}
			if e.Last {
				last++
			}
			if length += len(e.Value.Elements); e.Value.Kind == rdb.String {
				length = 1
			}
			if e.Value.Kind == rdb.SortedSet && len(e.Value.Scores) != len(e.Value.Elements) || e.Value.Kind == rdb.Hash && len(e.Value.Elements)%2 != 0 {
				return fmt.Errorf("cut within an element: %d, %d scores", len(e.Value.Elements), len(e.Value.Scores))
			}
			return nil
		})
		if err != nil || pieces < tt.pieces || pieces > tt.pieces+1 || length != tt.length || first != 1 || last != 1 {
			t.Errorf("%s: %d elements in %d pieces (first %d, last %d), %v", name, length, pieces, first, last, err)
		}
	}
}

// elements is a value of n times so many short strings.
func elements(code byte, n, each int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{code, 0x80}, uint32(n))
	for i := range n * each {
		b = binary.LittleEndian.AppendUint32(append(b, 0xc2), uint32(i))
	}
	return b
}

func intset(n int) []byte {
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 8), uint32(n))
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
	}
	return withLength(11, string(b))
}

// lzfOf is a string of n times the same byte, compressed.
func lzfOf(code byte, n int) []byte {
	packed := []byte{0, 'a'}
	for left := n - 1; left > 0; {
		run := min(left, 264)
		if run < 9 {
			packed = append(packed, byte(run-1))
			packed = append(packed, strings.Repeat("a", run)...)
		} else {
			packed = append(packed, 0xe0, byte(run-9), 0)
		}
		left -= run
	}
	b := binary.BigEndian.AppendUint32([]byte{code, 0xc3, 0x80}, uint32(len(packed)))
	return append(binary.BigEndian.AppendUint32(append(b, 0x80), uint32(n)), packed...)
}

// lzfPack is a listpack of n small numbers, in LZF of literals.
func lzfPack(t testing.TB, code byte, n int) []byte {
	t.Helper()
	pack := binary.LittleEndian.AppendUint32(nil, uint32(6+2*n+1))
	pack = append(pack, 0xff, 0xff)
	for i := range n {
		pack = append(pack, byte(i%100), 1)
	}
	pack = append(pack, 0xff)
	var packed []byte
	for part := range slices.Chunk(pack, 32) {
		packed = append(append(packed, byte(len(part)-1)), part...)
	}
	b := binary.BigEndian.AppendUint32([]byte{code, 0xc3, 0x80}, uint32(len(packed)))
	return append(binary.BigEndian.AppendUint32(append(b, 0x80), uint32(len(pack))), packed...)
}

// TestFileMemory reads files that promise more than they hold, and one whose 160 KB stand for 14 MB.
func TestFileMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		items []byte
		most  uint64
	}{
		"a string of 512 MiB":   {unhex(t, "00 01 61 80 20000000 6162"), 9 << 20},
		"a list without end":    {unhex(t, "01 01 61 81 0000ffffffffffff 6162"), 1 << 20},
		"a listpack of zeroes":  {append([]byte("\x10\x01a"), lzfOf(0, 14<<20)[1:]...), 16 << 20},
		"a stream's node":       {append([]byte("\x0f\x01a\x01\x100123456789abcdef"), lzfOf(0, 14<<20)[1:]...), 16 << 20},
		"an intset of billions": {unhex(t, "0b 01 61 0a 08000000 ffffffff 0000"), 1 << 20},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _, err := readAll(bytes.NewReader(fileOf(10, tt.items)))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > tt.most {
			t.Errorf("%s: %v, allocated %d", name, err, used)
		}
	}
}

// FuzzFile takes any bytes for the items of a file. A value that Decode takes is the same in a file.
func FuzzFile(f *testing.F) {
	f.Add(unhex(f, everyItem))
	f.Add(unhex(f, "05 01 61 01 01 61 000000000000f03f"))
	f.Add(unhex(f, "18 01 6b 8813000000000000 02 43 e9 01 61 01 78 01 01 62 01 79"))
	f.Add(unhex(f, "13 01 6b 00 00 05 00 00 00 00 00 07 01 01 67 05 00 07 00 00"))
	f.Fuzz(func(t *testing.T, items []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, keys, _, err := readAll(bytes.NewReader(fileOf(12, items)))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 5<<20+8192*uint64(len(items)) {
			t.Fatalf("%d bytes made it allocate %d", len(items), used)
		}
		if err != nil && !errors.As(err, new(*rdb.FileError)) {
			t.Fatalf("an error of another kind: %v", err)
		}
		if len(items) < 3 || items[1] != 1 || items[0] > 0xf0 {
			return
		}
		payload := rdb.Resealed(slices.Concat(items[:1], items[3:], make([]byte, 10)))
		v, err := rdb.Decode(payload)
		if err != nil || slices.ContainsFunc(v.Scores, math.IsNaN) {
			return
		}
		if want := fmt.Sprintf("0 %q 0: %s", items[2:3], show(v)); len(keys) == 0 || keys[0] != want {
			t.Fatalf("as a payload %s, in a file %q", want, keys)
		}
	})
}
