package bitcask

import (
	"bytes"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const goldenHex = "testdata/segment-v1.hex"

var (
	goldenStore = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	goldenSeed  = keydir.Seed{1, 2}
)

// TestGoldenSegment compares a segment written now with the golden one, byte by
// byte, and decodes it with what docs/FORMAT.md says and nothing else: the
// meanings in the file are the decoder's.
func TestGoldenSegment(t *testing.T) {
	var segment []byte
	synctest.Test(t, func(t *testing.T) { segment = writeGoldenSegment(t) }) // for the time in the footer
	text := explainSegment(t, segment)
	if *update {
		if err := os.WriteFile(goldenHex, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(goldenHex)
	if err != nil {
		t.Fatal(err)
	}
	held := parseHex(t, string(golden))
	if !bytes.Equal(segment, held) {
		t.Errorf("what is written now differs from %s:\n%s", goldenHex, text)
	}
	if got := explainSegment(t, held); got != string(golden) {
		t.Errorf("%s decodes as\n%s", goldenHex, got)
	}
}

// writeGoldenSegment makes a store of a known id and hash seed and seals its
// first segment.
func writeGoldenSegment(t *testing.T) []byte {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fs := vfs.NewMem()
	random := crand.Reader
	defer func() { crand.Reader = random }()
	crand.Reader = bytes.NewReader(bytes.Repeat([]byte{1, 2, 3, 4}, 64)) // for the nonce
	must(fs.MkdirAll("d"))
	m, err := manifest.Create(fs, "d", goldenStore, goldenSeed)
	must(err)
	must(m.Close())
	s, err := Open("d", &Options{Sync: SyncNone, seam: seam.Options{FS: fs, NoHints: true}})
	must(err)
	must(s.Put("k", []byte("v")))
	tx, err := s.Begin(true, "z", "k")
	must(err)
	coll, err := tx.Collection(0, "z", keydir.ZSet)
	must(err)
	must(tx.PutScored(0, "z", coll, "m", ordered.Float(1.5)))
	must(tx.SetDeadline(0, "k", 4e12))
	_, err = tx.Commit()
	must(err)
	tx.End()
	_, err = s.Delete("z")
	must(err)
	must(s.Rotate())
	must(s.Close())
	f, err := fs.Open("d/000000001.data", vfs.ReadOnly)
	must(err)
	size, err := f.Size()
	must(err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(err)
	must(f.Close())
	return b
}

// parseHex reads the bytes of a commented dump.
func parseHex(t *testing.T, text string) []byte {
	t.Helper()
	var b []byte
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		line = fmt.Sprintf("%-*s", hexColumn+hexWidth, strings.TrimSpace(line))
		digits := strings.ReplaceAll(line[hexColumn:hexColumn+hexWidth], " ", "")
		part, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if want := fmt.Sprintf("%-*d", hexColumn, len(b)); line[:hexColumn] != want {
			t.Fatalf("line %q: offset is %s", line, want)
		}
		b = append(b, part...)
	}
	return b
}

// A line of the dump: offset, up to 16 bytes, meaning.
const (
	hexColumn = 8
	hexBytes  = 16
	hexWidth  = 3*hexBytes + 1
)

// explainer decodes a segment front to back and writes down what it finds. It shares no code with
// the package: the format is the written one, not what two ends agree on.
type explainer struct {
	t    *testing.T
	b    []byte
	pos  int
	out  strings.Builder
	seal uint32
}

func explainSegment(t *testing.T, segment []byte) string {
	t.Helper()
	x := &explainer{t: t, b: segment}
	x.out.WriteString("# A segment in version 1 of the format, field by field: offset, bytes, meaning.\n" +
		"# See docs/FORMAT.md. A test decodes this file; go test ./bitcask -run Golden -update rewrites it.\n")
	x.header()
	for x.pos < len(x.b) {
		x.frame()
	}
	return x.out.String()
}

// title begins a part.
func (x *explainer) title(format string, args ...any) {
	fmt.Fprintf(&x.out, "\n# %s\n", fmt.Sprintf(format, args...))
}

// take consumes n bytes and writes them down.
func (x *explainer) take(n int, format string, args ...any) []byte {
	x.t.Helper()
	if n > len(x.b)-x.pos {
		x.t.Fatalf("%d bytes at %d, of %d", n, x.pos, len(x.b))
	}
	field := x.b[x.pos : x.pos+n]
	meaning := fmt.Sprintf(format, args...)
	for part := range slices.Chunk(field, hexBytes) {
		line := fmt.Sprintf("%-*d%-*s%s", hexColumn, x.pos, hexWidth, fmt.Sprintf("% x", part), meaning)
		x.out.WriteString(strings.TrimRight(line, " ") + "\n")
		x.pos += len(part)
		meaning = ""
	}
	return field
}

func (x *explainer) peek32(at int) uint32 { return binary.LittleEndian.Uint32(x.b[at:]) }
func (x *explainer) peek64(at int) uint64 { return binary.LittleEndian.Uint64(x.b[at:]) }

// sum is the seeded checksum of the bytes from one offset to another. Its seed
// belongs to the offset of the frame or record, base.
func (x *explainer) sum(base, from, to int) uint32 {
	return crc32.Update(x.seal+uint32(base)*0x9E3779B1, crc32.IEEETable, x.b[from:to])
}

// crc takes a checksum and compares it.
func (x *explainer) crc(want uint32, meaning string) {
	x.t.Helper()
	at := x.pos
	if got := binary.LittleEndian.Uint32(x.take(4, "%s", meaning)); got != want {
		x.t.Errorf("%s at %d is %08x, want %08x", meaning, at, got, want)
	}
}

func (x *explainer) header() {
	x.title("segment header")
	x.take(8, "magic %q", x.b[:8])
	x.take(2, "version %d", binary.LittleEndian.Uint16(x.b[8:]))
	x.take(2, "flags %d", binary.LittleEndian.Uint16(x.b[10:]))
	x.take(4, "segment id %d", x.peek32(12))
	x.take(16, "store id")
	x.take(4, "nonce")
	x.crc(crc32.ChecksumIEEE(x.b[:36]), "crc of bytes 0 to 36")
	x.seal = crc32.Update(crc32.ChecksumIEEE(x.b[16:32]), crc32.IEEETable, x.b[12:16])
}

func (x *explainer) frame() {
	start := x.pos
	word, seq := x.peek32(start+4), x.peek64(start+8)
	size := int(word & (1<<30 - 1))
	end := start + size
	many, foot := word>>31 == 1, word>>30&1 == 1
	what := "one record"
	switch {
	case foot:
		what = "footer"
	case many:
		what = "many records"
	}
	x.title("frame at %d: %s", start, what)
	x.crc(x.sum(start, start+4, start+24), fmt.Sprintf("frame crc, of bytes 4 to 24, seeded with offset %d", start))
	x.take(4, "size %d, %s", size, what)
	x.take(8, "sequence %d", seq)
	x.take(4, "synced through %d", x.peek32(x.pos))
	switch {
	case foot:
		x.footer(end)
	case many:
		x.records(start, end, seq)
	default:
		x.record(end, seq, "sum: ")
	}
	if x.pos != end {
		x.t.Errorf("frame at %d ends at %d, want %d", start, x.pos, end)
	}
}

func (x *explainer) footer(end int) {
	x.crc(x.sum(x.pos+4, x.pos+4, end), "sum: crc of the body, seeded with its offset")
	x.take(8, "%d records", x.peek64(x.pos))
	x.take(8, "lowest sequence %d", x.peek64(x.pos))
	x.take(8, "highest sequence %d", x.peek64(x.pos))
	x.take(6, "time: Unix ms")
	x.take(2, "nonce")
}

// records decodes the records of a frame of many. The frame's sum covers their
// checksums.
func (x *explainer) records(start, end int, seq uint64) {
	want := x.peek32(x.pos)
	x.take(4, "sum: crc of the crcs of the records, seeded with offset %d", start)
	sum := x.seal + uint32(start)*0x9E3779B1
	for x.pos < end {
		sum = crc32.Update(sum, crc32.IEEETable, x.b[x.pos:x.pos+4])
		fmt.Fprintf(&x.out, "# record %d\n", seq)
		x.record(end, seq, "")
		seq++
	}
	if sum != want {
		x.t.Errorf("sum of the frame at %d is %08x, want %08x", start, want, sum)
	}
}

var (
	goldenKinds = []string{
		"", "string", "element", "meta", "bound", "order", "deadline", "tombstone", "element tombstone", "deadline tombstone", "namespaces",
	}
	goldenTypes    = []string{"none", "string", "hash", "list", "set", "zset", "deadline"}
	goldenPrefixes = []string{"stave:", "string:", "hash:", "list:", "set:", "zset:", "ttl:"}
)

// record decodes one record of a frame that ends at end. Only a whole record
// says where its crc ends, so its lengths are looked at first.
func (x *explainer) record(end int, seq uint64, sum string) {
	start := x.pos
	tag := x.b[start+4]
	kind, typ := tag&15, tag>>4&7
	element := kind >= 2 && kind <= 5 || kind == 8
	at := start + 5
	next := func() int {
		v, n := binary.Uvarint(x.b[at:])
		at += n
		return int(v)
	}
	if tag>>7 == 1 {
		next()
	}
	next()
	name := len(goldenPrefixes[typ]) + next()
	if element {
		name += 1 + next()
	}
	value := next()
	size := at + name + value - start
	x.crc(x.sum(start, start+4, start+size), fmt.Sprintf("%srecord crc, seeded with offset %d", sum, start))
	x.take(1, "tag: kind %d %s, type %d %s", kind, goldenKinds[kind], typ, goldenTypes[typ])
	if tag>>7 == 1 {
		x.uvarint("sequence, from the frame's")
	}
	x.uvarint("namespace")
	x.uvarint("key length")
	if element {
		x.uvarint("element length")
	}
	x.uvarint("value length")
	x.take(name, "name %q", x.b[x.pos:x.pos+name])
	if value > 0 {
		x.take(value, "value %q", x.b[x.pos:x.pos+value])
	}
}

func (x *explainer) uvarint(what string) {
	v, n := binary.Uvarint(x.b[x.pos:])
	x.take(n, "%s %d", what, v)
}

// TestGoldenSegmentIsRead puts the golden segment into a store and opens it.
func TestGoldenSegmentIsRead(t *testing.T) {
	golden, err := os.ReadFile(goldenHex)
	if err != nil {
		t.Fatal(err)
	}
	segment := parseHex(t, string(golden))
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Create(fs, "d", goldenStore, goldenSeed)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(filepath.Join("d", format.DataName(1)), vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(segment, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.Log(manifest.EditAdd, binary.LittleEndian.AppendUint32(nil, 1)); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open("d", &Options{seam: seam.Options{FS: fs}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("k"); err != nil || string(got) != "v" {
		t.Errorf("k = %q, %v", got, err)
	}
	if n, d := s.Len(0), s.Deadlines(0); n != 1 || d != 1 {
		t.Errorf("%d keys and %d deadlines, want one each", n, d)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
