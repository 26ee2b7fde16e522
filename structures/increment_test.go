package structures_test

import (
	"testing"

	"github.com/stavedb/stave/structures"
)

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
