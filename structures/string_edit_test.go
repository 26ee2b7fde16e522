package structures_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

func TestGetAndExpire(t *testing.T) {
	m := newMemory()
	set(t, m, "k", "v")
	value, ok, err := m.string("k").GetAndExpire([]byte("="), 2000, 1000)
	equal(t, "value", string(value), "=v")
	equal(t, "ok, err", ok && err == nil, true)
	equal(t, "deadline", m.deadlines["k"], int64(2000))
	if _, _, err := m.string("k").GetAndPersist(nil); err != nil {
		t.Fatal(err)
	}
	if _, set := m.deadlines["k"]; set {
		t.Error("the deadline is still there")
	}
	if _, _, err := m.string("k").GetAndExpire(nil, 0, 1000); err != structures.ErrExpireTime {
		t.Errorf("deadline 0: %v", err)
	}
	if value, _, _ := m.string("k").GetAndExpire(nil, 1000, 1000); string(value) != "v" {
		t.Errorf("value of a key that expires now = %q", value)
	}
	if _, ok, _ := m.string("k").GetAndDelete(); ok {
		t.Error("a deadline that has passed did not delete the key")
	}
	set(t, m, "k", "w")
	value, ok, err = m.string("k").GetAndDelete()
	equal(t, "deleted", string(value), "w")
	equal(t, "ok, err", ok && err == nil, true)
	if typ, _ := (structures.Key{Txn: m, Key: "k"}).Type(); typ != 0 {
		t.Errorf("type after GetAndDelete = %v", typ)
	}
}

func TestSetRange(t *testing.T) {
	for _, c := range []struct {
		old    string
		offset int64
		part   string
		want   string
	}{
		{"", 0, "a", "a"}, {"", 2, "a", "\x00\x00a"}, {"hello", 1, "EL", "hELlo"}, {"hello", 5, "!", "hello!"}, {"hello", 7, "!", "hello\x00\x00!"},
		{"hello", 9, "", "hello"}, {"", 9, "", ""},
	} {
		m := newMemory()
		if c.old != "" {
			set(t, m, "k", c.old)
		}
		n, err := m.string("k").SetRange(c.offset, []byte(c.part))
		if err != nil || n != len(c.want) || get(t, m, "k") != c.want && c.want != "" {
			t.Errorf("%q with %q at %d: %d, %v; want %q", c.old, c.part, c.offset, n, err, c.want)
		}
	}
	m := newMemory()
	if _, err := m.string("k").SetRange(-1, nil); err != structures.ErrOffset {
		t.Errorf("negative offset: %v", err)
	}
	for _, offset := range []int64{structures.MaxString, 1<<63 - 1} {
		if _, err := m.string("k").SetRange(offset, []byte("x")); err != structures.ErrTooLong {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	equal(t, "records written by refusals", m.writes, 0)
}

func TestIncrFloat(t *testing.T) {
	m := newMemory()
	for _, c := range []struct {
		delta, sum string
		err        error
	}{
		{"0.1", "0.1", nil}, {"0.2", "0.3", nil}, {"-0.3", "0", nil}, {"1e17", "100000000000000000", nil},
		{"0.5", "100000000000000000.5", nil}, {"nan", "", structures.ErrNotFloat}, {"inf", "", structures.ErrSumInfinite},
		{"1.0000000", "100000000000000001.5", nil},
	} {
		sum, err := m.string("k").IncrFloat([]byte(c.delta))
		if string(sum) != c.sum || err != c.err {
			t.Errorf("+ %s = %q, %v; want %q, %v", c.delta, sum, err, c.sum, c.err)
		}
	}
	equal(t, "stored", get(t, m, "k"), "100000000000000001.5")
	h := m.hash("h")
	if _, err := h.IncrFloat("f", []byte("inf")); err != structures.ErrNaNOrInfinity {
		t.Errorf("infinite increment of a field: %v", err)
	}
	if sum, err := h.IncrFloat("f", []byte("1.5")); string(sum) != "1.5" || err != nil {
		t.Errorf("a new field = %q, %v", sum, err)
	}
	if _, err := h.Put("f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.IncrFloat("f", []byte("1")); err != structures.ErrHashNotFloat {
		t.Errorf("a field that is no float: %v", err)
	}
}

// The length is that of the textbook's table, and the runs spell the text on
// both sides.
func TestLongestCommonSubsequence(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	for range 300 {
		a, b := randomText(rng), randomText(rng)
		set(t, m, "a", string(a))
		set(t, m, "b", string(b))
		lcs, err := structures.LongestCommonSubsequence(m, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		table := make([][]int, len(a)+1)
		table[0] = make([]int, len(b)+1)
		for i := range a {
			table[i+1] = make([]int, len(b)+1)
			for j := range b {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
				if a[i] == b[j] {
					table[i+1][j+1] = table[i][j] + 1
				}
			}
		}
		equal(t, "length", len(lcs.Text), table[len(a)][len(b)])
		var left, right []byte
		for i := len(lcs.Matches) - 1; i >= 0; i-- {
			run := lcs.Matches[i]
			left = append(left, a[run.A:run.A+run.Length]...)
			right = append(right, b[run.B:run.B+run.Length]...)
		}
		if !bytes.Equal(left, lcs.Text) || !bytes.Equal(right, lcs.Text) {
			t.Fatalf("LCS of %q and %q is %q; its runs are %q and %q", a, b, lcs.Text, left, right)
		}
	}
	set(t, m, "long", string(make([]byte, 1<<20)))
	if _, err := structures.LongestCommonSubsequence(m, "long", "long"); err != structures.ErrLCSTooLong {
		t.Errorf("two long strings: %v", err)
	}
	if _, err := m.hash("h").Put("f", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := structures.LongestCommonSubsequence(m, "none", "h"); err != structures.ErrLCSType {
		t.Errorf("a hash: %v", err)
	}
}

func randomText(rng *rand.Rand) []byte {
	text := make([]byte, rng.IntN(40))
	for i := range text {
		text[i] = "abcd"[rng.IntN(4)]
	}
	return text
}
