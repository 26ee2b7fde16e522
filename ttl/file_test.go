package ttl_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/ttl"
)

var update = flag.Bool("update", false, "rewrite golden files")

var storeID = [16]byte{0: 0xa0, 15: 0xaf}

// memory returns a file system with an empty store directory, and fails the test if a handle is left open.
func memory(t testing.TB) *vfs.Mem {
	m := vfs.NewMem()
	must(t, m.MkdirAll("db"))
	t.Cleanup(func() {
		if leaks := m.Leaks(); len(leaks) > 0 {
			t.Errorf("left open: %v", leaks)
		}
	})
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fill(entries ...ttl.Entry) *ttl.Deadlines {
	x := ttl.NewDeadlines()
	for _, e := range entries {
		x.Set(e.Namespace, e.Key, e.Deadline)
	}
	return x
}

// some is a small index, one entry for each namespace: so that its file has the same bytes every time.
var some = []ttl.Entry{
	{Namespace: 0, Key: "session:1", Deadline: 1_700_000_000_000}, {Namespace: 1, Key: "", Deadline: -1},
	{Namespace: 70000, Key: "a\x00:b\xff", Deadline: math.MaxInt64},
}

func slurp(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadOnly)
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b
}

// mark is a mark with that sequence.
func mark(upTo uint64) ttl.Mark {
	return ttl.Mark{Opening: 0x1112131415161718, Sequence: upTo, Segment: 0x21222324, Length: 0x3132333435363738, Sum: 0x41424344}
}

// put makes a file system whose TTL file has these bytes.
func put(t testing.TB, data []byte) *vfs.Mem {
	t.Helper()
	m := memory(t)
	f, err := m.Open("db/TTL", vfs.Create)
	must(t, err)
	_, err = f.WriteAt(data, 0)
	must(t, errors.Join(err, f.Close()))
	return m
}

func TestWriteAndReadBack(t *testing.T) {
	many := []ttl.Entry{}
	for i := range 10_000 {
		many = append(many, ttl.Entry{Namespace: uint32(i % 5), Key: fmt.Sprint("key:", i), Deadline: int64(i * i)})
	}
	for name, entries := range map[string][]ttl.Entry{
		"no entries": {}, "one of each kind": some, "many blocks": many,
		"keys longer than a block": {{Key: strings.Repeat("x", 200_000), Deadline: 1}, {Key: strings.Repeat("y", 65_535), Deadline: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			m := memory(t)
			for _, upTo := range []uint64{0, 17, math.MaxUint64} { // The second replaces the first.
				must(t, ttl.Write(m, "db", storeID, mark(upTo), fill(entries...)))
				gotUpTo, got, err := ttl.Read(m, "db", storeID)
				must(t, err)
				sortEntries(got)
				want := slices.Clone(entries)
				sortEntries(want)
				if gotUpTo != mark(upTo) || !slices.Equal(got, want) {
					t.Errorf("%d entries up to %d came back as %d up to %v", len(want), upTo, len(got), gotUpTo)
				}
			}
			if names, _ := m.List("db"); !slices.Equal(names, []string{"TTL"}) {
				t.Errorf("the directory holds %q", names)
			}
		})
	}
}

func TestGoldenFile(t *testing.T) {
	const golden = "testdata/checkpoint-v2.hex"
	m := memory(t)
	must(t, ttl.Write(m, "db", storeID, mark(0x0102030405060708), fill(some...)))
	dump := hex.Dump(slurp(t, m, "db/TTL"))
	if *update {
		must(t, os.WriteFile(golden, []byte(dump), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if dump != string(want) {
		t.Errorf("the file has the bytes\n%s\nwant\n%s", dump, want)
	}

	// And the file of the released format opens, whatever is written now.
	upTo, got, err := ttl.Read(put(t, undump(t, golden)), "db", storeID)
	must(t, err)
	if upTo != mark(0x0102030405060708) || !slices.Equal(got, some) {
		t.Errorf("the golden file holds %v up to %v", got, upTo)
	}
}

// undump reads a golden file.
func undump(t *testing.T, name string) (raw []byte) {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	for line := range strings.Lines(string(text)) {
		b, err := hex.DecodeString(strings.ReplaceAll(line[10:58], " ", ""))
		must(t, err)
		raw = append(raw, b...)
	}
	return raw
}

// TestFirstVersion has a file that says of the log no more than a sequence number: it is not believed, and no damage.
func TestFirstVersion(t *testing.T) {
	raw := undump(t, "testdata/checkpoint-v1.hex")
	for _, data := range [][]byte{raw, raw[:48]} { // with entries and without
		if _, entries, err := ttl.Read(put(t, data), "db", storeID); !errors.Is(err, ttl.ErrVersion) || entries != nil {
			t.Errorf("%d entries, %v", len(entries), err)
		}
	}
}

func TestRemove(t *testing.T) {
	m := memory(t)
	must(t, ttl.Write(m, "db", storeID, mark(1), fill(some...)))
	rec := vfstest.NewRecorder(m)
	must(t, ttl.Remove(rec, "db"))
	must(t, ttl.Remove(rec, "db"))
	if names, _ := m.List("db"); len(names) > 0 {
		t.Errorf("the directory holds %q", names)
	}
	if got := rec.Trace(vfstest.OpSyncDir); got != "sync-dir db\nsync-dir db\n" {
		t.Errorf("synced: %s", got)
	}
}

func TestReadRefuses(t *testing.T) {
	m := memory(t)
	_, _, err := ttl.Read(m, "db", storeID)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	must(t, ttl.Write(m, "db", storeID, mark(5), fill(some...)))
	if _, _, err := ttl.Read(m, "db", [16]byte{1}); !errors.Is(err, ttl.ErrForeign) || !strings.Contains(err.Error(), "TTL") {
		t.Errorf("another store's file gives %v", err)
	}
	data := slurp(t, m, "db/TTL")
	data[8] = 3
	_, _, err = ttl.Read(put(t, data), "db", storeID)
	var corrupt *ttl.CorruptError
	if !errors.As(err, &corrupt) || errors.Is(err, ttl.ErrVersion) {
		t.Errorf("a flipped bit in the version gives %v, want corruption", err)
	}
	corrupt = nil
	binary.LittleEndian.PutUint32(data[76:], crc32.ChecksumIEEE(data[:76]))
	_, _, err = ttl.Read(put(t, data), "db", storeID)
	if !errors.Is(err, ttl.ErrVersion) || errors.As(err, &corrupt) {
		t.Errorf("a later version gives %v, want ErrVersion and no corruption", err)
	}
}

// refused checks that a damaged file gives an error and nothing else.
func refused(t *testing.T, data []byte, damage string) {
	t.Helper()
	upTo, entries, err := ttl.Read(put(t, data), "db", storeID)
	var corrupt *ttl.CorruptError
	switch {
	case err == nil || upTo != (ttl.Mark{}) || entries != nil:
		t.Fatalf("%s: read %d entries up to %v, %v", damage, len(entries), upTo, err)
	case errors.As(err, &corrupt):
		if corrupt.File != filepath.Join("db", "TTL") || corrupt.Offset < 0 || corrupt.Offset > int64(len(data)) {
			t.Fatalf("%s: the error does not name the place: %v", damage, err)
		}
	default: // Flips of the version and of the store id fail the checksum first.
		t.Fatalf("%s: %v is no corruption", damage, err)
	}
}

func encoded(t *testing.T, upTo uint64, entries ...ttl.Entry) []byte {
	t.Helper()
	m := memory(t)
	must(t, ttl.Write(m, "db", storeID, mark(upTo), fill(entries...)))
	return slurp(t, m, "db/TTL")
}

func TestEveryBitFlipIsDetected(t *testing.T) {
	data := encoded(t, 5, some...)
	for bit := range len(data) * 8 {
		flipped := bytes.Clone(data)
		flipped[bit/8] ^= 1 << (bit % 8)
		refused(t, flipped, fmt.Sprintf("bit %d of byte %d flipped", bit%8, bit/8))
	}
}

func TestEveryCutAndZeroedTailIsDetected(t *testing.T) {
	data := encoded(t, 5, some...)
	for n := range data {
		refused(t, data[:n], fmt.Sprintf("cut to %d bytes", n))
		zeroed := append(bytes.Clone(data[:n]), make([]byte, len(data)-n)...)
		if !bytes.Equal(zeroed, data) {
			refused(t, zeroed, fmt.Sprintf("zeros from byte %d on", n))
		}
		refused(t, append(bytes.Clone(data), make([]byte, n+1)...), fmt.Sprintf("%d zeros more", n+1))
	}
}

// TestGraftedBlocksAreDetected replaces each sector by the same one of other checkpoints, and each by its neighbour.
func TestGraftedBlocksAreDetected(t *testing.T) {
	key := func(i int) string { return fmt.Sprintf("%070000d", i) } // One entry is one block.
	entries := []ttl.Entry{{Namespace: 0, Key: key(0), Deadline: 1}, {Namespace: 1, Key: key(1), Deadline: 2}, {Namespace: 2, Key: key(2), Deadline: 3}}
	data := encoded(t, 5, entries...)
	changed := slices.Clone(entries)
	for i := range changed {
		changed[i].Deadline += 1000
	}
	block := (len(data) - 80) / 3
	for i := range 3 {
		for what, donor := range map[string][]byte{"an earlier": encoded(t, 4, entries...), "another": encoded(t, 5, changed...)} {
			at := 80 + i*block
			if bytes.Equal(donor[:80], data[:80]) {
				continue // The same stamp, so the same promise about the log: whatever it says is right.
			}
			graft := bytes.Clone(data)
			copy(graft[at:at+block], donor[at:])
			refused(t, graft, fmt.Sprintf("block %d of %s checkpoint", i, what))
		}
		swapped := bytes.Clone(data)
		a, b := 80+i*block, 80+(i+1)%3*block
		copy(swapped[a:a+block], data[b:])
		copy(swapped[b:b+block], data[a:])
		refused(t, swapped, fmt.Sprintf("block %d swapped with the next", i))
		doubled := bytes.Clone(data)
		copy(doubled[a:a+block], data[b:b+block])
		refused(t, doubled, fmt.Sprintf("block %d replaced by the next", i))
		refused(t, append(bytes.Clone(data[:a]), data[a+block:]...), fmt.Sprintf("block %d missing", i))
	}
	refused(t, append(bytes.Clone(data), data[80+2*block:]...), "the last block twice")
}

// TestOrderOfOperations pins the order in which things become durable.
func TestOrderOfOperations(t *testing.T) {
	rec := vfstest.NewRecorder(memory(t))
	must(t, ttl.Write(rec, "db", storeID, mark(5), fill(some...)))
	want := `remove db/TTL.new (remove db/TTL.new: file does not exist)
create db/TTL.new
write db/TTL.new 0+80
write db/TTL.new 80+70
sync db/TTL.new
close db/TTL.new
rename db/TTL.new -> db/TTL
sync-dir db
`
	if got := rec.Trace(); got != want {
		t.Errorf("the operations are\n%s\nwant\n%s", got, want)
	}
}

// TestEveryFailureOfWrite fails each operation of a write over an older checkpoint, in each way.
func TestEveryFailureOfWrite(t *testing.T) {
	base := memory(t)
	must(t, ttl.Write(base, "db", storeID, mark(1), fill(some[0])))
	healthy := vfstest.NewFault(base.Clone())
	must(t, ttl.Write(healthy, "db", storeID, mark(2), fill(some...)))
	for n := range healthy.Ops() {
		for _, rule := range []vfstest.Rule{
			{Err: syscall.EIO}, {Err: syscall.EIO, Sticky: true}, {Err: syscall.ENOSPC, Partial: 20}, {Err: syscall.EMFILE, Applied: true},
		} {
			rule.Skip = n
			m := base.Clone()
			err := ttl.Write(vfstest.NewFault(m, rule), "db", storeID, mark(2), fill(some...))
			if !errors.Is(err, rule.Err) {
				t.Errorf("operation %d failing with %v gives %v", n, rule.Err, err)
			}
			if leaks := m.Leaks(); len(leaks) > 0 {
				t.Errorf("operation %d failing leaves %v open", n, leaks)
			}
			upTo, got, err := ttl.Read(m, "db", storeID)
			if err != nil || upTo == mark(1) && !slices.Equal(got, some[:1]) || upTo == mark(2) && !slices.Equal(got, some) {
				t.Errorf("operation %d failing leaves %v up to %v, %v", n, got, upTo, err)
			}
			must(t, ttl.Write(m, "db", storeID, mark(3), fill(some...))) // Leftovers do not stand in the way.
			if names, _ := m.List("db"); !slices.Equal(names, []string{"TTL"}) {
				t.Errorf("operation %d failing, then a good write leave %q", n, names)
			}
		}
	}
}

func TestEveryFailureOfRead(t *testing.T) {
	m := memory(t)
	must(t, ttl.Write(m, "db", storeID, mark(1), fill(some...)))
	healthy := vfstest.NewFault(m)
	_, _, err := ttl.Read(healthy, "db", storeID)
	must(t, err)
	for n := range healthy.Ops() {
		for _, rule := range []vfstest.Rule{{Err: syscall.EIO}, {Err: syscall.EIO, Partial: 3}, {Err: io.EOF, Partial: 3}} {
			rule.Skip = n
			upTo, got, err := ttl.Read(vfstest.NewFault(m, rule), "db", storeID)
			if err == nil || upTo != (ttl.Mark{}) || got != nil {
				t.Errorf("operation %d failing gives %v up to %v, %v", n, got, upTo, err)
			}
			if errors.Is(rule.Err, syscall.EIO) && !errors.Is(err, syscall.EIO) {
				t.Errorf("operation %d failing gives %v, want EIO", n, err)
			}
		}
	}
}
