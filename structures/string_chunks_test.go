package structures_test

import (
	"bytes"
	"math/bits"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// typeOf is what the key holds as the store sees it.
func (m *memory) typeOf(key string) keydir.Type {
	slot, _ := m.find(key)
	return slot.Type
}

// chunkOf is the length of the chunks of a string, 0 if it is not cut.
func (m *memory) chunkOf(key string) int {
	slot, f := m.find(key)
	if slot.Type != keydir.Chunks {
		return 0
	}
	head, _ := f.Bounds()
	size, _, _ := keydir.ChunkAt(head)
	return size
}

// TestChunkedString does random edits and reads to a string, whose chunks have 16
// bytes, or 16 to 64 when it is set whole, and to a slice of bytes.
func TestChunkedString(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	s, b := m.string("k"), structures.Bitmap{Txn: m, Key: "k"}
	var want []byte
	random := func(n int) []byte {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rng.Uint32() * (rng.Uint32() & 1))
		}
		return data
	}
	steps := 10_000
	if testing.Short() {
		steps = 3000
	}
	cut, recut := 0, 0
	for range steps {
		before := m.chunkOf("k")
		at := rng.IntN(len(want) + 50)
		switch rng.IntN(10) {
		case 0:
			want = random(rng.IntN(300 << rng.IntN(2)))
			m.chunk = 16 << rng.IntN(3)
			set(t, m, "k", string(want))
		case 1:
			part := random(rng.IntN(40))
			want = append(want, part...)
			n, err := s.Append(part)
			must(t, err)
			equal(t, "APPEND", n, len(want))
		case 2:
			part := random(rng.IntN(60))
			n, err := s.SetRange(int64(at), part)
			must(t, err)
			if len(part) > 0 {
				want = append(want, make([]byte, max(0, at+len(part)-len(want)))...)
				copy(want[at:], part)
			}
			equal(t, "SETRANGE", n, len(want))
		case 3:
			bit := at*8 + rng.IntN(8)
			was, err := b.Set(int64(bit), bit%3 == 0)
			must(t, err)
			want = append(want, make([]byte, max(0, at+1-len(want)))...)
			mask := byte(0x80 >> (bit % 8))
			equal(t, "SETBIT", was, want[at]&mask != 0)
			if want[at] &^= mask; bit%3 == 0 {
				want[at] |= mask
			}
		case 4:
			bit := at*8 + rng.IntN(8)
			on, err := b.Get(int64(bit))
			must(t, err)
			equal(t, "GETBIT", on, at < len(want) && want[at]&(0x80>>(bit%8)) != 0)
		case 5:
			end := at + rng.IntN(60)
			got, err := s.Range([]byte("x"), int64(at), int64(end))
			must(t, err)
			equal(t, "GETRANGE", string(got), "x"+string(want[min(at, len(want)):min(end+1, len(want))]))
		case 6:
			got, _, err := s.Get([]byte("x"))
			must(t, err)
			if string(got) != "x"+string(want) {
				t.Fatalf("GET gives %d bytes: %q\nwant %d: %q", len(got)-1, got[1:], len(want), want)
			}
			n, err := s.Len()
			must(t, err)
			equal(t, "STRLEN", n, len(want))
		case 7, 8:
			testBits(t, b, want, rng.IntN(len(want)*8+1), rng.IntN(len(want)*8+1))
		case 9:
			if len(want) > 500 {
				_, err := m.key("k").Delete()
				must(t, err)
				want = nil
			}
		}
		if m.typeOf("k") == keydir.Chunks {
			cut++
			if now := m.chunkOf("k"); before > 16 && now == 16 {
				recut++
			}
		}
		if t.Failed() {
			return
		}
	}
	if cut < steps/10 || cut > steps*19/20 {
		t.Errorf("the string was cut in %d of %d steps", cut, steps)
	}
	if recut == 0 {
		t.Error("no edit has cut the string into shorter chunks")
	}
}

// testBits compares what a bitmap says of a range of bits with a look at each of them.
func testBits(t *testing.T, b structures.Bitmap, data []byte, start, end int) {
	t.Helper()
	r := structures.BitRange{Start: int64(start), End: int64(end), Bits: true}
	count, first := 0, [2]int64{-1, -1}
	for bit := start; bit <= end && bit < len(data)*8; bit++ {
		on := int(data[bit/8] >> (7 - bit%8) & 1)
		count += on
		if first[on] < 0 {
			first[on] = int64(bit)
		}
	}
	n, err := b.Count(r)
	must(t, err)
	equal(t, "BITCOUNT", n, int64(count))
	for on, want := range first {
		pos, err := b.Position(on == 1, r)
		must(t, err)
		if len(data) > 0 {
			equal(t, "BITPOS", pos, want)
		}
	}
	all, err := b.Count(structures.AllBits)
	must(t, err)
	total := 0
	for _, x := range data {
		total += bits.OnesCount8(x)
	}
	equal(t, "BITCOUNT of all", all, int64(total))
}

// TestChunkedFields: operations on a bitfield in chunks have the results of those on one that is
// not.
func TestChunkedFields(t *testing.T) {
	rng := chance.Rand(t)
	cut, whole := newMemory(), newMemory()
	whole.chunk = 1 << 20
	for range 500 {
		ops := make([]structures.BitfieldOp, 1+rng.IntN(4))
		for i := range ops {
			ops[i] = structures.BitfieldOp{
				Action: structures.BitfieldAction(rng.IntN(3)), Signed: true, Bits: 1 + rng.IntN(64),
				Offset: rng.Int64N(4000), Value: int64(rng.Uint64()), Overflow: structures.Overflow(rng.IntN(3)),
			}
		}
		writes := cut.writes
		got, err := structures.Bitmap{Txn: cut, Key: "k"}.Field(ops)
		must(t, err)
		want, err := structures.Bitmap{Txn: whole, Key: "k"}.Field(ops)
		must(t, err)
		for i := range want {
			equal(t, "result", got[i], want[i])
		}
		if cut.typeOf("k") == keydir.Chunks && cut.writes-writes > 40 {
			t.Fatalf("%d operations wrote %d chunks", len(ops), cut.writes-writes)
		}
		equal(t, "value", get(t, cut, "k"), get(t, whole, "k"))
		if t.Failed() {
			return
		}
	}
	equal(t, "type", cut.typeOf("k"), keydir.Chunks)
}

// TestEditsTouchTheirChunks: an edit of a long string reads and writes the chunks
// that it changes, and a read those that it returns.
func TestEditsTouchTheirChunks(t *testing.T) {
	m := newMemory()
	s, b := m.string("k"), structures.Bitmap{Txn: m, Key: "k"}
	for name, c := range map[string]struct {
		do            func() error
		reads, writes int
	}{
		"APPEND":           {func() error { _, err := s.Append([]byte("x")); return err }, 0, 1},
		"SETRANGE within":  {func() error { _, err := s.SetRange(803, []byte("x")); return err }, 1, 1},
		"SETRANGE of two":  {func() error { _, err := s.SetRange(810, []byte("0123456789")); return err }, 2, 2},
		"SETRANGE of one":  {func() error { _, err := s.SetRange(320, []byte("0123456789abcdef")); return err }, 0, 1},
		"SETRANGE far out": {func() error { _, err := s.SetRange(500<<20, []byte("x")); return err }, 0, 1},
		"SETBIT":           {func() error { _, err := b.Set(8*700, true); return err }, 2, 1},
		"SETBIT as it was": {func() error { _, err := b.Set(8*704+2, true); return err }, 1, 0},
		"GETBIT":           {func() error { _, err := b.Get(8 * 900); return err }, 1, 0},
		"GETRANGE":         {func() error { _, err := s.Range(nil, 100, 110); return err }, 1, 0},
		"STRLEN":           {func() error { _, err := s.Len(); return err }, 0, 0},
		"BITCOUNT":         {func() error { _, err := b.Count(structures.BitRange{Start: 32, End: 95}); return err }, 4, 0},
		"BITPOS":           {func() error { _, err := b.Position(true, structures.AllBits); return err }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, m, "k", strings.Repeat("0123456789abcdef", 1000))
			m.reads, m.writes = 0, 0
			must(t, c.do())
			equal(t, "reads", m.reads, c.reads)
			equal(t, "writes", m.writes, c.writes)
		})
	}
}

// TestChunkedStringIsAString: a long string is a string to whatever does not care how
// long it is, and is no number.
func TestChunkedStringIsAString(t *testing.T) {
	m := newMemory()
	long := strings.Repeat("1", 129)
	set(t, m, "k", long)
	must(t, m.SetDeadline("k", 900))
	equal(t, "stored", m.typeOf("k"), keydir.Chunks)
	typ, err := m.key("k").Type()
	must(t, err)
	equal(t, "type", typ, keydir.String)
	if _, err := m.string("k").Incr(1); err != structures.ErrNotInteger {
		t.Errorf("INCR: %v", err)
	}
	if _, err := m.hash("k").Put("f", nil); err != structures.ErrWrongType {
		t.Errorf("HSET: %v", err)
	}
	if _, err := m.key("k").Sort(structures.SortOptions{}); err != structures.ErrWrongType {
		t.Errorf("SORT: %v", err)
	}
	sum, err := m.string("k").IncrFloat([]byte("1"))
	must(t, err)
	equal(t, "INCRBYFLOAT", len(sum), 129)
	equal(t, "deadline", m.deadlines["k"], 900)

	set(t, m, "sparse", "abc")
	_, err = m.string("sparse").SetRange(1000, []byte("def"))
	must(t, err)
	m.writes = 0
	copied, _, err := m.key("sparse").Copy(m, "copy", structures.IfAbsent)
	must(t, err)
	equal(t, "copied", copied, true)
	equal(t, "chunks that the copy wrote", m.writes, 2)
	equal(t, "copy", get(t, m, "copy"), "abc"+strings.Repeat("\x00", 997)+"def")
	res, err := m.string("sparse").Set([]byte("short"), structures.SetOptions{Get: true})
	must(t, err)
	equal(t, "old", string(res.Old), get(t, m, "copy"))
	equal(t, "stored", m.typeOf("sparse"), keydir.String)
	must(t, structures.GetMany(m, []string{"sparse", "copy"}, func(i int, value []byte) bool {
		equal(t, "MGET", len(value), []int{5, 1003}[i])
		return true
	}))
}

// TestLongRecordIsCut: a string that was written whole is cut by the first edit,
// and keeps its deadline.
func TestLongRecordIsCut(t *testing.T) {
	for name, edit := range map[string]func(s structures.String) error{
		"APPEND":   func(s structures.String) error { _, err := s.Append([]byte("x")); return err },
		"SETRANGE": func(s structures.String) error { _, err := s.SetRange(500, []byte("x")); return err },
		"SETBIT":   func(s structures.String) error { _, err := structures.Bitmap(s).Set(4003, true); return err },
		"BITFIELD": func(s structures.String) error {
			_, err := structures.Bitmap(s).Field([]structures.BitfieldOp{{Action: structures.BitfieldSet, Bits: 8, Offset: 4000, Value: 'x'}})
			return err
		},
	} {
		m := newMemory()
		value := bytes.Repeat([]byte("some text "), 50)
		must(t, m.PutString("k", value))
		must(t, m.SetDeadline("k", 77))
		must(t, edit(m.string("k")))
		equal(t, name, m.typeOf("k"), keydir.Chunks)
		equal(t, "deadline", m.deadlines["k"], 77)
		equal(t, "value", get(t, m, "k")[:500], string(value))
		equal(t, "length", len(get(t, m, "k")), 501)
	}
}

// TestSmallEditsCutShort: a small edit cuts a string into short chunks, if it is not too long for that; a
// long one does not, and neither does what only reads, or changes nothing.
func TestSmallEditsCutShort(t *testing.T) {
	const long, short = 256, 16
	bit := func(b structures.Bitmap) error { _, err := b.Set(8, true); return err }
	appendOf := func(n int) func(b structures.Bitmap) error {
		return func(b structures.Bitmap) error {
			_, err := structures.String(b).Append(make([]byte, n))
			return err
		}
	}
	field := func(op structures.BitfieldOp) func(b structures.Bitmap) error {
		return func(b structures.Bitmap) error { _, err := b.Field([]structures.BitfieldOp{op}); return err }
	}
	for name, c := range map[string]struct {
		length int
		edit   func(b structures.Bitmap) error
		want   int // length of the chunks, 0 for one record
	}{
		"SETBIT of little":                        {8*short - 1, bit, 0},
		"SETBIT of one record":                    {8*short + 1, bit, short},
		"SETBIT of long chunks":                   {8*long + 1, bit, short},
		"SETBIT of many long chunks":              {128*long + 1, bit, long},
		"SETBIT of as many as are cut":            {128 * long, bit, short},
		"APPEND of a long part to one record":     {8 * short, appendOf(long), 0},
		"APPEND of a long part that cuts":         {8 * long, appendOf(long), long},
		"APPEND of a long part to long chunks":    {9 * long, appendOf(long), long},
		"APPEND of less to one record":            {8 * short, appendOf(long - 1), short},
		"BITFIELD that reads long chunks":         {9 * long, field(structures.BitfieldOp{Bits: 8}), long},
		"BITFIELD that changes nothing":           {8 * long, field(structures.BitfieldOp{Action: structures.BitfieldSet, Bits: 8}), 0},
		"BITFIELD that writes to one record":      {8 * long, field(structures.BitfieldOp{Action: structures.BitfieldIncr, Bits: 8, Value: 1}), short},
		"BITFIELD that writes to long chunks":     {9 * long, field(structures.BitfieldOp{Action: structures.BitfieldIncr, Bits: 8, Value: 1}), short},
		"SETBIT that leaves it as it was, of one": {8 * long, func(b structures.Bitmap) error { _, err := b.Set(8, false); return err }, 0},
	} {
		m := newMemory()
		m.chunk = long
		set(t, m, "k", strings.Repeat("\x00", c.length))
		must(t, m.SetDeadline("k", 5))
		must(t, c.edit(structures.Bitmap{Txn: m, Key: "k"}))
		equal(t, name, m.chunkOf("k"), c.want)
		equal(t, name+": deadline", m.deadlines["k"], 5)
	}
}
