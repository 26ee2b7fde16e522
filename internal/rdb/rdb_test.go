package rdb_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/rdb"
)

// seal adds the footer to a value that is given in hex.
func seal(t testing.TB, body string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return rdb.Resealed(append(b, make([]byte, 10)...))
}

// show is a value on one line.
func show(v rdb.Value) string {
	text := fmt.Sprintf("%d %q", v.Kind, v.Elements)
	if v.Kind == rdb.SortedSet {
		text += fmt.Sprint(" ", v.Scores)
	}
	if v.Deadlines != nil {
		text += fmt.Sprint(" ", v.Deadlines)
	}
	if s := v.Stream; s != nil {
		text += fmt.Sprintf(" %v last %v deleted %v added %d", s.Entries, s.Last, s.Delete, s.Added)
		for _, g := range s.Groups {
			text += fmt.Sprintf(" group %q %v %d", g.Name, g.Last, g.Read)
			for _, c := range g.Consumers {
				text += fmt.Sprintf(" %q %d %d", c.Name, c.Seen, c.Active)
			}
			text += fmt.Sprint(" ", g.Pending)
		}
	}
	return text
}

// TestPayload takes apart a payload that a redis-server 7.0 made for SET k 10.
func TestPayload(t *testing.T) {
	payload, err := hex.DecodeString("00c00a0a006e9f57450eae63bb")
	if err != nil {
		t.Fatal(err)
	}
	v, err := rdb.Decode(payload)
	if err != nil || show(v) != `0 ["10"]` {
		t.Errorf("%s, %v", show(v), err)
	}
	var w rdb.Writer
	w.Begin(rdb.String, 0)
	w.Bytes([]byte("10"))
	if got := w.Seal(); string(got) != string(payload) {
		t.Errorf("wrote %x, want %x", got, payload)
	}
	for i := range payload {
		damaged := append([]byte{}, payload...)
		damaged[i] ^= 4
		if _, err := rdb.Decode(damaged); err != rdb.ErrPayload {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := rdb.Decode(payload[:i]); err != rdb.ErrPayload {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	newer := append([]byte{}, payload...)
	newer[3] = rdb.Newest + 1
	if _, err := rdb.Decode(rdb.Rechecked(newer)); err != rdb.ErrPayload {
		t.Errorf("a newer version: %v", err)
	}
}

// TestOldEncodings reads what redis-server 7.0 no longer writes, and what only newer ones do.
func TestOldEncodings(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"zipmap":             {"09 10 02 01 61 02 00 78 79 01 62 01 03 7a 00 00 00 ff", `4 ["a" "xy" "b" "z"]`},
		"ziplist strings":    {"0a 14 14000000 0f000000 0200 00 03 616263 05 4001 78 ff", `1 ["abc" "x"]`},
		"set listpack":       {"14 0c 0c000000 0200 81 61 02 05 01 ff", `2 ["a" "5"]`},
		"scores as text":     {"03 02 01 61 03 312e35 01 62 ff", `3 ["a" "b"] [1.5 -Inf]`},
		"string in 32 bits":  {"00 80 00000002 6869", `0 ["hi"]`},
		"string in 64 bits":  {"00 81 0000000000000002 6869", `0 ["hi"]`},
		"timed hash":         {"18 8813000000000000 02 01 01 61 01 78 00 01 62 01 79", `4 ["a" "x" "b" "y"] [5000 0]`},
		"timed hash, later":  {"18 8813000000000000 02 43 e9 01 61 01 78 01 01 62 01 79", `4 ["a" "x" "b" "y"] [6000 5000]`},
		"timed listpack":     {"19 8813000000000000 19 19000000 0600 81 61 02 81 78 02 f1 8813 03 81 62 02 81 79 02 00 01 ff", `4 ["a" "x" "b" "y"] [5000 0]`},
		"compressed":         {"00 c3 05 0a 00 61 e0 00 00", `0 ["aaaaaaaaaa"]`},
		"bytes after it all": {"00 01 61 ffff", `0 ["a"]`},
	} {
		v, err := rdb.Decode(seal(t, tt.body))
		if err != nil || show(v) != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, show(v), err, tt.want)
		}
	}
}

// ziplist builds a list of the time before listpacks.
func ziplist(entries ...string) string {
	body, previous := []byte{}, 0
	last := 10
	for _, entry := range entries {
		last = 10 + len(body)
		start := len(body)
		if previous < 254 {
			body = append(body, byte(previous))
		} else {
			body = binary.LittleEndian.AppendUint32(append(body, 254), uint32(previous))
		}
		body = append(body, entry...)
		previous = len(body) - start
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(11+len(body)))
	head = binary.LittleEndian.AppendUint32(head, uint32(last))
	head = binary.LittleEndian.AppendUint16(head, uint16(len(entries)))
	return string(head) + string(body) + "\xff"
}

func TestZiplists(t *testing.T) {
	long := strings.Repeat("x", 300)
	list := ziplist("\xf1", "\xfd", "\xfe\x80", "\xc0\xff\x7f", "\xf0\x00\x00\x80", "\xd0\xff\xff\xff\x7f", "\xe0\x00\x00\x00\x00\x00\x00\x00\x80",
		"\x02ab", "\x41\x2c"+long, "\x80\x00\x00\x00\x01y", "\x00")
	numbers := `"0" "12" "-128" "32767" "-8388608" "2147483647" "-9223372036854775808" "ab" "` + long + `" "y" ""`
	scores := ziplist("\x01m", "\xf3", "\x01n", "\x04-inf", "\x01o", "\x031.5")
	for name, tt := range map[string]struct {
		code byte
		text string
		want string
	}{
		"list":       {10, list, "1 [" + numbers + "]"},
		"hash":       {13, ziplist("\x01f", "\x01v", "\x01g", "\xf2"), `4 ["f" "v" "g" "1"]`},
		"sorted set": {12, scores, `3 ["m" "n" "o"] [2 -Inf 1.5]`},
	} {
		v, err := rdb.Decode(rdb.Resealed(append(withLength(tt.code, tt.text), make([]byte, 10)...)))
		if err != nil || show(v) != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, show(v), err, tt.want)
		}
	}
	nodes := append([]byte{14, 2}, withLength(0, ziplist("\x01a"))[1:]...)
	nodes = append(nodes, withLength(0, ziplist("\xf3", "\x01b"))[1:]...)
	v, err := rdb.Decode(rdb.Resealed(append(nodes, make([]byte, 10)...)))
	if err != nil || show(v) != `1 ["a" "2" "b"]` {
		t.Errorf("quicklist: %s, %v", show(v), err)
	}
}

// withLength is a type and a string after it.
func withLength(code byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{code, 0x80}, uint32(len(text))), text...)
}

func TestBadFormat(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":                "",
		"unknown type":           "63 01 61",
		"a module's type":        "07 00",
		"a stream":               "0f 00",
		"no elements":            "01 00",
		"an empty intset":        "0b 08 02000000 00000000",
		"an empty listpack":      "10 07 07000000 0000 ff",
		"more than there is":     "00 05 6162",
		"a count beyond it all":  "01 81 ffffffffffffffff 01 61",
		"an encoded count":       "01 c0 01 01 61",
		"an unknown encoding":    "00 c4 00",
		"an unknown length":      "00 82 00",
		"a member twice":         "02 02 01 61 01 61",
		"a field twice":          "04 02 01 61 01 78 01 61 01 79",
		"a name without a value": "10 0a 0a000000 0100 81 61 02 ff",
		"not a number":           "05 01 01 61 000000000000f87f",
		"not a number as text":   "03 01 01 61 fd",
		"a score of letters":     "03 01 01 61 01 78",
		"a wrong listpack size":  "10 0d 0c000000 0200 81 61 02 81 62 02 ff",
		"a listpack without end": "14 0b 0b000000 0200 81 61 02 05 01",
		"bytes after a listpack": "14 0d 0d000000 0200 81 61 02 05 01 ff 00",
		"an odd intset":          "0b 0b 02000000 02000000 0100 02",
		"integers of 3 bytes":    "0b 0b 03000000 01000000 010000",
		"inflated too little":    "00 c3 05 0b 00 61 e0 00 00",
		"inflated too much":      "00 c3 05 09 00 61 e0 00 00",
		"reference before all":   "00 c3 05 0a 00 61 e0 00 05",
		"a bomb":                 "00 c3 05 81 0000000010000000 00 61 e0 00 00",
		"an unknown node":        "12 01 03 01 61",
		"a first deadline cut":   "18 00",
		"a first deadline late":  "18 0000000000400000 01 00 01 61 01 78",
		"a deadline late":        "18 ffffffffff3f0000 01 02 01 61 01 78",
		"a deadline of letters":  "19 0000000000000000 10 10000000 0300 81 61 02 81 78 02 81 62 02 ff",
		"a field without one":    "19 0000000000000000 0d 0d000000 0200 81 61 02 81 78 02 ff",
	} {
		if v, err := rdb.Decode(seal(t, body)); err != rdb.ErrFormat {
			t.Errorf("%s: %s, %v", name, show(v), err)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for kind, parts := range map[rdb.Kind][]string{
		rdb.String:    {"-129"},
		rdb.List:      {"", "-128", "128", "32768", "-2147483648", "2147483648", "01", strings.Repeat("x", 70), strings.Repeat("y", 20000)},
		rdb.Set:       {"a", "b", "\x00"},
		rdb.Hash:      {"f", "v", "", "12"},
		rdb.SortedSet: {"m", "n"},
	} {
		var w rdb.Writer
		n := len(parts)
		if kind == rdb.Hash {
			n /= 2
		}
		w.Begin(kind, n)
		want := rdb.Value{Kind: kind}
		for i, part := range parts {
			w.Bytes([]byte(part))
			want.Elements = append(want.Elements, []byte(part))
			if kind == rdb.SortedSet {
				score := []float64{math.Inf(-1), 0.1}[i]
				w.Score(score)
				want.Scores = append(want.Scores, score)
			}
		}
		v, err := rdb.Decode(w.Seal())
		if err != nil || show(v) != show(want) {
			t.Errorf("%s, %v; want %s", show(v), err, show(want))
		}
	}
}

// firstOf is the first deadline that there is.
func firstOf(deadlines []int64) int64 {
	first := int64(rdb.LastDeadline)
	for _, ms := range deadlines {
		if ms > 0 {
			first = min(first, ms)
		}
	}
	return first
}

// TestTimedHash writes the bytes that Redis 7.4 writes for a hash with deadlines that is too large for a listpack.
func TestTimedHash(t *testing.T) {
	var w rdb.Writer
	w.BeginTimed(3, 5000)
	for _, f := range []struct {
		ms   int64
		name string
	}{{6000, "a"}, {0, "b"}, {5000, "c"}} {
		w.Deadline(f.ms)
		w.Bytes([]byte(f.name))
		w.Bytes([]byte("7"))
	}
	got := w.Seal()
	const want = "18" + "8813000000000000" + "03" + "43e9" + "0161" + "c007" + "00" + "0162" + "c007" + "01" + "0163" + "c007" + "0c00"
	if body := hex.EncodeToString(got[:len(got)-8]); body != want {
		t.Errorf("wrote %s, want %s", body, want)
	}
	v, err := rdb.Decode(got)
	if err != nil || show(v) != `4 ["a" "7" "b" "7" "c" "7"] [6000 0 5000]` {
		t.Errorf("%s, %v", show(v), err)
	}
}

// encoded is a payload of the value.
func encoded(v rdb.Value) []byte {
	if v.Kind == rdb.StreamKind {
		var w rdb.StreamWriter
		for _, e := range v.Stream.Entries {
			w.Add(e.ID, e.Fields)
		}
		return w.Seal(*v.Stream)
	}
	var w rdb.Writer
	n := len(v.Elements)
	if v.Kind == rdb.Hash {
		n /= 2
	}
	if v.Deadlines == nil {
		w.Begin(v.Kind, n)
	} else {
		w.BeginTimed(n, firstOf(v.Deadlines))
	}
	for i, b := range v.Elements {
		if v.Deadlines != nil && i%2 == 0 {
			w.Deadline(v.Deadlines[i/2])
		}
		w.Bytes(b)
		if v.Kind == rdb.SortedSet {
			w.Score(v.Scores[i])
		}
	}
	return w.Seal()
}

// FuzzDecode takes any bytes for a value. Its allocations are bounded by its input, and a decoded value can be
// written and read again.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		"00 c00a", "00 c3 05 0a 00 61 e0 00 00", "01 02 01 61 01 62", "05 01 01 61 000000000000f03f", "14 0c 0c000000 0200 81 61 02 05 01 ff",
		"09 10 02 01 61 02 00 78 79 01 62 01 03 7a 00 00 00 ff", "0a 14 14000000 0f000000 0200 00 03 616263 05 4001 78 ff",
		"0b 0a 02000000 01000000 0100", "12 01 02 0a 0a000000 0100 81 61 02 ff", "12 01 01 01 61",
		"18 8813000000000000 02 43 e9 01 61 01 78 01 01 62 01 79",
		"19 8813000000000000 19 19000000 0600 81 61 02 81 78 02 f1 8813 03 81 62 02 81 79 02 00 01 ff", "03 02 01 61 03 312e35 01 62 ff",
		"0f 00 00 00 00 00", "13 00 00 05 00 00 00 00 00 07 00",
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		payload := rdb.Resealed(append(append([]byte{}, body...), make([]byte, 10)...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := rdb.Decode(payload)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10+1024*uint64(len(body)) {
			t.Fatalf("%d bytes made it allocate %d", len(body), used)
		}
		if err != nil {
			return
		}
		again, err := rdb.Decode(encoded(v))
		if err != nil || show(again) != show(v) {
			t.Fatalf("%s, written and read again: %s, %v", show(v), show(again), err)
		}
	})
}
