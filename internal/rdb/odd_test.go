package rdb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/rdb"
)

// The end of a stream without groups, in bytes from the end of its payload before the footer: all numbers are small.
const (
	endLength    = 9
	endLast      = 8 // and the sequence number after it
	endFirst     = 6
	endDeleted   = 4
	endAdded     = 2
	nodeCount    = 1 + 1 + 1 + 16 + 1 + 6 // from the beginning: type, nodes, length of an id, id, length of a listpack, its header
	footerLength = 10
)

// threeEntries is a stream of 1-1, 1-2 and 2-1.
func threeEntries(t *testing.T) []byte {
	var w rdb.StreamWriter
	for _, id := range []rdb.StreamID{{Ms: 1, Seq: 1}, {Ms: 1, Seq: 2}, {Ms: 2, Seq: 1}} {
		w.Add(id, [][]byte{[]byte("f"), []byte("v")})
	}
	payload := w.Seal(rdb.Stream{Last: rdb.StreamID{Ms: 2, Seq: 1}, Added: 3})
	if n := len(payload) - footerLength; payload[n-endLength] != 3 || payload[n-endLast] != 2 || payload[n-endAdded] != 3 || payload[nodeCount] != 3 {
		t.Fatalf("%x: a number does not stand where this test looks for it", payload)
	}
	return payload
}

// oddStreams are streams whose derived numbers contradict their entries. Redis takes all of them.
func oddStreams(t *testing.T) map[string][]byte {
	odd := map[string][]byte{}
	for name, numbers := range map[string]map[int]byte{
		"length too large": {endLength: 5}, "length too small": {endLength: 1}, "no length": {endLength: 0},
		"last id before the top":   {endLast: 1},
		"no last id":               {endLast: 0, endLast - 1: 0},
		"too few added":            {endAdded: 1},
		"none added":               {endAdded: 0},
		"first id is another":      {endFirst: 9},
		"node with more entries":   {-nodeCount: 9},
		"node with fewer entries":  {-nodeCount: 1},
		"node without entries":     {-nodeCount: 0},
		"node with deleted ones":   {-nodeCount - 2: 3},
		"all of them":              {endLength: 0, endLast: 0, endLast - 1: 0, endAdded: 0, -nodeCount: 0, -nodeCount - 2: 1},
		"deleted beyond the last":  {endDeleted: 9, endDeleted - 1: 9},
		"deleted above the length": {endDeleted: 1, endDeleted - 1: 9, endAdded: 3, endLength: 4},
	} {
		payload := threeEntries(t)
		for at, n := range numbers {
			if at > 0 {
				at = len(payload) - footerLength - at
			} else {
				at = -at
			}
			payload[at] = n
		}
		odd[name] = rdb.Resealed(payload)
	}
	return odd
}

// TestOddStreams decodes streams whose numbers do not agree, as values and in files: the entries count.
func TestOddStreams(t *testing.T) {
	for name, payload := range oddStreams(t) {
		v, err := rdb.Decode(payload)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := v.Stream
		if len(s.Entries) != 3 || s.Added < 3 || s.Last.Less(rdb.StreamID{Ms: 2, Seq: 1}) || s.Last.Less(s.Delete) {
			t.Errorf("%s: %+v", name, s)
		}
		body := payload[:len(payload)-footerLength]
		_, keys, _, err := readAll(bytes.NewReader(fileOf(10, slices.Concat(body[:1], []byte("\x01a"), body[1:]))))
		if err != nil || len(keys) != 1 {
			t.Errorf("%s, in a file: %q, %v", name, keys, err)
		}
	}
	whole, err := rdb.Decode(threeEntries(t))
	if err != nil || whole.Stream.Recounted {
		t.Errorf("%+v, %v", whole.Stream, err)
	}
	for _, name := range []string{"length too small", "last id before the top", "too few added"} {
		if v, err := rdb.Decode(oddStreams(t)[name]); err != nil || !v.Stream.Recounted {
			t.Errorf("%s: nothing says that it was counted anew", name)
		}
	}
}

// TestPendingOfNobody: a pending entry that is no consumer's, which Redis loads, is left out.
func TestPendingOfNobody(t *testing.T) {
	var w rdb.StreamWriter
	id := rdb.StreamID{Ms: 1, Seq: 1}
	w.Add(id, [][]byte{[]byte("f"), []byte("v")})
	g := rdb.StreamGroup{Name: []byte("g"), Last: id, Read: 1, Consumers: []rdb.StreamConsumer{{Name: []byte("c")}}, Pending: []rdb.StreamPending{{ID: id}}}
	payload := w.Seal(rdb.Stream{Last: id, Added: 1, Groups: []rdb.StreamGroup{g}})
	body := payload[: len(payload)-footerLength-1-16 : len(payload)]
	if body[len(body)-1] == 1 {
		t.Fatalf("%x does not end with what is pending for c", payload)
	}
	payload = rdb.Resealed(append(append(slices.Clone(body), 0), make([]byte, footerLength)...))
	v, err := rdb.Decode(payload)
	if err != nil || len(v.Stream.Groups) != 1 || len(v.Stream.Groups[0].Pending) != 0 || !v.Stream.Recounted {
		t.Errorf("%+v, %v", v.Stream, err)
	}
}

// TestReadOfOldGroups: files from before it was counted do not say how much a group has read; Redis estimates it.
func TestReadOfOldGroups(t *testing.T) {
	for _, tt := range []struct {
		last rdb.StreamID
		want int64
	}{{rdb.StreamID{}, 0}, {rdb.StreamID{Ms: 1, Seq: 1}, 1}, {rdb.StreamID{Ms: 1, Seq: 2}, -1}, {rdb.StreamID{Ms: 2, Seq: 1}, 3}, {rdb.StreamID{Ms: 9}, -1}} {
		payload := threeEntries(t)
		body := slices.Clone(payload[:len(payload)-footerLength-endFirst]) // what follows the last id came later
		body[0] = 15
		body = append(body, 1, 1, 'g', byte(tt.last.Ms), byte(tt.last.Seq), 0, 0)
		v, err := rdb.Decode(rdb.Resealed(append(body, make([]byte, footerLength)...)))
		if err != nil || v.Stream.Groups[0].Read != tt.want {
			t.Errorf("a group at %v: %+v, %v, want %d", tt.last, v.Stream, err, tt.want)
		}
	}
}

// TestValkey reads files and payloads of Valkey 9, and writes a file: its magic, its hash with deadlines, what a cluster notes.
func TestValkey(t *testing.T) {
	hash := "02" + "01 61 01 62 ffffffffffffffff" + "01 63 01 64 00d8c32cbb030000"
	want := `0 "h" 0: 4 ["a" "b" "c" "d"] [0 4102444800000]`
	items := "f3 02 6a62 01 05 41 00" + // an import of slots
		"f4 01 02 03" + "16 01 68 " + hash
	file := slices.Concat([]byte("VALKEY080"), unhex(t, items), []byte{0xff}, make([]byte, 8))
	if f, keys, _, err := readAll(bytes.NewReader(rdb.Rechecked(file))); err != nil || !slices.Equal(keys, []string{want}) || f.Version() != 80 {
		t.Errorf("%q, %v, want %q", keys, err, want)
	}
	var written bytes.Buffer
	w := rdb.NewFileWriter(&written, 80)
	w.BeginTimed([]byte("h"), 0, 2, 4102444800000)
	w.TimedField([]byte("a"), []byte("b"), 0)
	w.TimedField([]byte("c"), []byte("d"), 4102444800000)
	alone := slices.Concat([]byte("VALKEY080"), unhex(t, "16 01 68 "+hash), []byte{0xff}, make([]byte, 8))
	if err := w.End(); err != nil || !bytes.Equal(written.Bytes(), rdb.Rechecked(alone)) {
		t.Errorf("wrote %x, %v, want %x", written.Bytes(), err, alone)
	}
	payload := slices.Concat([]byte{22}, unhex(t, hash), make([]byte, footerLength))
	binary.LittleEndian.PutUint16(payload[len(payload)-footerLength:], 80)
	if v, err := rdb.Decode(rdb.Rechecked(payload)); err != nil || show(v) != want[9:] {
		t.Errorf("%s, %v", show(v), err)
	}
	binary.LittleEndian.PutUint16(payload[len(payload)-footerLength:], 81)
	if _, err := rdb.Decode(rdb.Rechecked(payload)); !errors.Is(err, rdb.ErrPayload) {
		t.Errorf("a version that nobody knows: %v", err)
	}
	for head, want := range map[string]bool{
		"VALKEY080": true, "VALKEY100 and more": true, "REDIS0011": true, "VALKEY08": false, "VALKEYxyz": false, "REDIS is fast": false, "REDIS0000": false,
	} {
		if got := rdb.IsFile([]byte(head)); got != want {
			t.Errorf("%q is a file: %t", head, got)
		}
	}
}

// TestReleaseCandidates reads hashes with deadlines as release candidates of Redis 7.4 wrote them: each in full.
func TestReleaseCandidates(t *testing.T) {
	list := "0f000000 0300" + "8161 02" + "8162 02" + "05 01" + "ff" // a, b, 5
	for name, value := range map[string]string{
		"hash":     "16 01 68 01" + "05" + "01 61 01 62",
		"listpack": "17 01 68 0f" + list,
	} {
		_, keys, _, err := readAll(bytes.NewReader(fileOf(12, unhex(t, value))))
		if want := `0 "h" 0: 4 ["a" "b"] [5]`; err != nil || !slices.Equal(keys, []string{want}) {
			t.Errorf("%s: %q, %v, want %q", name, keys, err, want)
		}
	}
}

// TestBadValuesAreSkipped puts a value that cannot be decoded between two keys, of every type in which a part can be
// wrong although it is known where the value ends: the others are read, and the bad one is named.
func TestBadValuesAreSkipped(t *testing.T) {
	stream := threeEntries(t)
	body := stream[1 : len(stream)-footerLength]
	node := slices.Clone(body) // begins after the type
	node[nodeCount-1] = 0xfe   // no encoding of a listpack has that
	group := slices.Concat(body[:len(body)-1], []byte{2}, []byte("\x01g\x01\x01\x00\x00\x00"), []byte("\x01g\x01\x01\x00\x00\x00"))
	for name, value := range map[string]string{
		"compressed string":    "00 00c3 01 05 61",
		"text score":           "03 00 01 0161 02 7878",
		"score that is none":   "03 00 01 0161 fd",
		"binary score":         "05 00 01 0161 010000000000f87f",
		"zipmap":               "09 00 03 010203",
		"ziplist":              "0a 00 03 010203",
		"intset":               "0b 00 03 010203",
		"sorted ziplist":       "0c 00 03 010203",
		"hash ziplist":         "0d 00 03 010203",
		"quicklist":            "0e 00 02 03 010203 03 040506",
		"hash listpack":        "10 00 03 010203",
		"zset listpack":        "11 00 03 010203",
		"odd listpack":         "10 00 0a 0a000000 0100 8161 02 ff",
		"score in a listpack":  "11 00 0d 0d000000 0200 8161 02 8162 02 ff",
		"quicklist of packs":   "12 00 02 02 03 010203 01 01 61",
		"set listpack":         "14 00 03 010203",
		"deadline of a field":  "18 00 0000000000000000 01 81ffffffffffffffff 01 61 01 62",
		"first deadline":       "18 00 ffffffffffffffff 01 00 01 61 01 62",
		"deadlines in a pack":  "19 00 0000000000000000 03 010203",
		"stream with bad node": "13 00" + fmt.Sprintf("%x", node),
		"stream, group twice":  "13 00" + fmt.Sprintf("%x", group),
		"stream, short id":     "0f 00 01 02 6161 03 010203 00 00 00 00",
	} {
		bytesOf := unhex(t, value)
		bad := slices.Concat(bytesOf[:1], []byte("\x03bad"), bytesOf[2:])
		data := fileOf(12, slices.Concat(unhex(t, "00 01 61 01 78"), bad, unhex(t, "fc 0100000000000000 00 01 7a 01 78")))
		if _, keys, _, err := readAll(bytes.NewReader(data)); err == nil || len(keys) != 1 {
			t.Errorf("%s: nobody asked for a skip, and %q, %v", name, keys, err)
		}
		var keys []string
		var why *rdb.FileError
		f := rdb.NewFileReader(bytes.NewReader(data))
		f.Bad = func(e *rdb.Entry, err *rdb.FileError) error {
			keys, why = append(keys, "-"+string(e.Name)), err
			return nil
		}
		err := f.Visit(func(e *rdb.Entry) error {
			keys = append(keys, fmt.Sprint(string(e.Name), e.Deadline))
			return nil
		})
		if want := []string{"a0", "-bad", "z1"}; err != nil || !slices.Equal(keys, want) || why.Key != "bad" || !errors.Is(why, rdb.ErrFormat) || why.Offset < 14 || why.Offset > int64(len(data)-9) {
			t.Errorf("%s: %q, %+v, %v", name, keys, why, err)
		}
		stop := errors.New("stop")
		f = rdb.NewFileReader(bytes.NewReader(data))
		f.Bad = func(*rdb.Entry, *rdb.FileError) error { return stop }
		if err := f.Visit(func(*rdb.Entry) error { return nil }); !errors.Is(err, stop) {
			t.Errorf("%s: %v, want the error of Bad", name, err)
		}
	}
}

// TestBadPieceIsSkipped: a value of many pieces of which the last is bad is read to its end, and held at no time.
func TestBadPieceIsSkipped(t *testing.T) {
	good := elements(1, 400_000, 1)
	zset := slices.Concat([]byte{5, 0x80, 0, 6, 0x1a, 0x80}, bytes.Repeat(append([]byte("\x01m"), make([]byte, 8)...), 399_999), append([]byte("\x01n"), unhex(t, "010000000000f87f")...))
	data := fileOf(10, slices.Concat(zset[:1], []byte("\x01k"), zset[1:], good[:1], []byte("\x01l"), good[1:]))
	f := rdb.NewFileReader(bytes.NewReader(data))
	bad, pieces, length := 0, 0, 0
	f.Bad = func(*rdb.Entry, *rdb.FileError) error { bad++; return nil }
	err := f.Visit(func(e *rdb.Entry) error {
		if string(e.Name) == "k" {
			pieces++
		} else {
			length += len(e.Value.Elements)
		}
		return nil
	})
	if err != nil || bad != 1 || pieces == 0 || length != 400_000 {
		t.Errorf("%d bad, %d pieces before, then %d elements, %v", bad, pieces, length, err)
	}
}
