package structures_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

func (m *memory) bitmap(key string) structures.Bitmap { return structures.Bitmap{Txn: m, Key: key} }

// bitsOf writes a string as ones and zeros.
func bitsOf(s string) string {
	var text strings.Builder
	for i := range len(s) * 8 {
		text.WriteByte('0' + s[i/8]>>(7-i%8)&1)
	}
	return text.String()
}

// Every method is compared with the same on a text of ones and zeros.
func TestBitmapAgainstText(t *testing.T) {
	rng := chance.Rand(t)
	for range 400 {
		m := newMemory()
		data := make([]byte, 1+rng.IntN(40))
		fill := byte(0xff * rng.IntN(2))
		for i := range data {
			if data[i] = fill; rng.IntN(12) == 0 {
				data[i] = byte(rng.Uint32())
			}
		}
		set(t, m, "k", string(data))
		text := bitsOf(string(data))
		b := m.bitmap("k")
		for range 20 {
			r := structures.BitRange{Start: rng.Int64N(400) - 200, End: rng.Int64N(400) - 200, Bits: rng.IntN(2) == 0, Open: rng.IntN(2) == 0}
			from, to := bitWindow(r, len(data))
			want := int64(strings.Count(text[from:to], "1"))
			if r.Start < 0 && r.End < 0 && r.Start > r.End {
				want = 0
			}
			n, err := b.Count(r)
			if err != nil || n != want {
				t.Fatalf("Count(%+v) of %s = %d, %v; want %d", r, text, n, err, want)
			}
			for on, digit := range map[bool]string{true: "1", false: "0"} {
				want := int64(strings.Index(text[from:to], digit))
				switch {
				case want >= 0:
					want += int64(from)
				case !on && r.Open && from < to && to == len(text):
					want = int64(to)
				}
				pos, err := b.Position(on, r)
				if err != nil || pos != want {
					t.Fatalf("Position(%t, %+v) of %s = %d, %v; want %d", on, r, text, pos, err, want)
				}
			}
			offset := rng.Int64N(400)
			on, err := b.Get(offset)
			must(t, err)
			equal(t, "bit", on, offset < int64(len(text)) && text[offset] == '1')
		}
	}
}

// bitWindow is the window of a range in a text of bits.
func bitWindow(r structures.BitRange, bytes int) (from, to int) {
	n, unit := bytes, 8
	if r.Bits {
		n, unit = bytes*8, 1
	}
	start, end := int(r.Start), int(r.End)
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	if end = min(end, n-1); start > end {
		return 0, 0
	}
	return start * unit, (end + 1) * unit
}

func TestBitmapSet(t *testing.T) {
	m := newMemory()
	b := m.bitmap("k")
	was, err := b.Set(9, true)
	must(t, err)
	equal(t, "was", was, false)
	equal(t, "value", get(t, m, "k"), "\x00\x40")
	must(t, m.SetDeadline("k", 77))
	writes := m.writes
	was, err = b.Set(9, true)
	must(t, err)
	equal(t, "was", was, true)
	equal(t, "records written without a change", m.writes, writes)
	was, err = b.Set(9, false)
	must(t, err)
	equal(t, "was", was, true)
	equal(t, "value", get(t, m, "k"), "\x00\x00")
	equal(t, "deadline", m.deadlines["k"], int64(77))
	_, err = m.bitmap("new").Set(16, false)
	must(t, err)
	equal(t, "a zero makes the string grow", get(t, m, "new"), "\x00\x00\x00")
	for _, offset := range []int64{-1, structures.MaxString * 8, math.MaxInt64} {
		if _, err := b.Set(offset, true); err != structures.ErrBitOffset {
			t.Errorf("Set(%d): %v", offset, err)
		}
		if _, err := b.Get(offset); err != structures.ErrBitOffset {
			t.Errorf("Get(%d): %v", offset, err)
		}
	}
}

func TestCombineBits(t *testing.T) {
	for _, c := range []struct {
		op   structures.BitOp
		keys []string
		want string
	}{
		{structures.BitAnd, []string{"long", "short"}, "\x01\x22\x00\x00\x00\x00\x00\x00\x00\x00"},
		{structures.BitOr, []string{"short", "none", "long"}, "\x03\x33ghijklmn"},
		{structures.BitXor, []string{"long", "long"}, strings.Repeat("\x00", 10)},
		{structures.BitXor, []string{"long", "short", "short"}, "\x01\x33ghijklmn"},
		{structures.BitNot, []string{"short"}, "\xfc\xdd"},
		{structures.BitDiff, []string{"long", "short"}, "\x00\x11ghijklmn"},
		{structures.BitDiff, []string{"short", "long", "none"}, "\x02\x00" + strings.Repeat("\x00", 8)},
		{structures.BitDiff1, []string{"short", "long"}, "\x00\x11ghijklmn"},
		{structures.BitDiff1, []string{"none", "short", "short"}, "\x03\x22"},
		{structures.BitAndOr, []string{"short", "none", "long"}, "\x01\x22" + strings.Repeat("\x00", 8)},
		{structures.BitOne, []string{"long", "short"}, "\x02\x11ghijklmn"},
		{structures.BitOne, []string{"short", "short", "short"}, "\x00\x00"},
		{structures.BitOne, []string{"short"}, "\x03\x22"},
		{structures.BitAndOr, []string{"none", "none"}, "(none)"},
		{structures.BitAnd, []string{"none"}, "(none)"},
		{structures.BitNot, []string{"none"}, "(none)"},
	} {
		m := newMemory()
		set(t, m, "long", "\x01\x33ghijklmn")
		set(t, m, "short", "\x03\x22")
		set(t, m, "dest", "old")
		must(t, m.SetDeadline("dest", 5))
		n, err := structures.CombineBits(m, c.op, "dest", c.keys)
		must(t, err)
		got := get(t, m, "dest")
		if got != c.want || n != len(strings.TrimPrefix(got, "(none)")) {
			t.Errorf("operation %d of %q = %q, %d; want %q", c.op, c.keys, got, n, c.want)
		}
		if _, set := m.deadlines["dest"]; set {
			t.Error("the destination keeps its deadline")
		}
	}
	if _, err := structures.CombineBits(newMemory(), structures.BitNot, "d", []string{"a", "b"}); err != structures.ErrBitNot {
		t.Errorf("NOT of two: %v", err)
	}
	for _, op := range []structures.BitOp{structures.BitDiff, structures.BitDiff1, structures.BitAndOr} {
		if _, err := structures.CombineBits(newMemory(), op, "d", []string{"a"}); err != structures.ErrBitTwoSources {
			t.Errorf("operation %d of one: %v", op, err)
		}
	}
}

// The results are compared with arithmetic on integers without bounds.
func TestBitfieldOverflow(t *testing.T) {
	rng := chance.Rand(t)
	for range 20000 {
		m := newMemory()
		b := m.bitmap("k")
		op := structures.BitfieldOp{Signed: rng.IntN(2) == 0, Offset: rng.Int64N(100), Overflow: structures.Overflow(rng.IntN(3))}
		op.Bits = 1 + rng.IntN(63)
		if op.Signed && rng.IntN(6) == 0 {
			op.Bits = 64
		}
		random := func() int64 { return int64(rng.Uint64()) >> rng.IntN(64) }
		start := op
		start.Action, start.Value, start.Overflow = structures.BitfieldSet, random(), structures.OverflowWrap
		incr := op
		incr.Action, incr.Value = structures.BitfieldIncr, random()
		look := op
		look.Action = structures.BitfieldGet
		results, err := b.Field([]structures.BitfieldOp{start, look, incr, look})
		must(t, err)
		old, sum, after := results[1].Value, results[2], results[3].Value

		low, high := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), uint(op.Bits))
		if op.Signed {
			low.Rsh(high, 1).Neg(low)
			high.Add(high, low)
		}
		exact := new(big.Int).Add(big.NewInt(old), big.NewInt(incr.Value))
		want, ok := exact.Int64(), true
		if exact.Cmp(low) < 0 || exact.Cmp(high) >= 0 {
			switch op.Overflow {
			case structures.OverflowFail:
				ok = false
			case structures.OverflowSat:
				if want = low.Int64(); exact.Cmp(low) > 0 {
					want = new(big.Int).Sub(high, big.NewInt(1)).Int64()
				}
			case structures.OverflowWrap:
				span := new(big.Int).Lsh(big.NewInt(1), uint(op.Bits))
				exact.Mod(exact.Sub(exact, low), span)
				want = exact.Add(exact, low).Int64()
			}
		}
		if sum.OK != ok || ok && (sum.Value != want || after != want) || !ok && after != old {
			t.Fatalf("%+v: %d + %d = %+v, then %d; want %d, %t", op, old, incr.Value, sum, after, want, ok)
		}
		if outside := strings.Trim(bitsOf(get(t, m, "k"))[:op.Offset], "0"); outside != "" {
			t.Fatalf("%+v wrote before its offset", op)
		}
	}
}

func TestBitfieldRefusals(t *testing.T) {
	m := newMemory()
	for _, c := range []struct {
		op   structures.BitfieldOp
		want error
	}{
		{structures.BitfieldOp{Bits: 0}, structures.ErrBitfieldType},
		{structures.BitfieldOp{Bits: 64}, structures.ErrBitfieldType},
		{structures.BitfieldOp{Bits: 65, Signed: true}, structures.ErrBitfieldType},
		{structures.BitfieldOp{Bits: 1, Offset: -1}, structures.ErrBitOffset},
		{structures.BitfieldOp{Bits: 1, Offset: structures.MaxString * 8}, structures.ErrBitOffset},
		{structures.BitfieldOp{Bits: 8, Action: structures.BitfieldSet, Offset: structures.MaxString*8 - 1}, structures.ErrTooLong},
	} {
		if _, err := m.bitmap("k").Field([]structures.BitfieldOp{{Action: structures.BitfieldSet, Bits: 1}, c.op}); err != c.want {
			t.Errorf("%+v: %v, want %v", c.op, err, c.want)
		}
	}
	equal(t, "records written by refusals", m.writes, 0)
}
