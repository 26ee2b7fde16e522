package structures_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stavedb/stave/structures"
)

func TestCombination(t *testing.T) {
	m := newMemory()
	addAll(t, m, "a", "x=1 y=2 inf=+Inf")
	addAll(t, m, "b", "y=3 z=4 inf=-Inf")
	_, err := m.set("s").Add([]string{"y", "w"})
	must(t, err)
	type combination = structures.Combination
	ab := []string{"a", "b"}
	for _, tt := range []struct {
		c    combination
		want string
	}{
		{combination{Op: structures.Union, Keys: ab}, "inf=0 x=1 z=4 y=5"},
		{combination{Op: structures.Inter, Keys: ab}, "inf=0 y=5"},
		{combination{Op: structures.Diff, Keys: ab}, "x=1"},
		{combination{Op: structures.Inter, Keys: ab, Aggregate: structures.Min}, "inf=-Inf y=2"},
		{combination{Op: structures.Inter, Keys: ab, Aggregate: structures.Max}, "y=3 inf=+Inf"},
		{combination{Op: structures.Union, Keys: ab, Weights: []float64{0, 10}}, "inf=-Inf x=0 y=30 z=40"},
		{combination{Op: structures.Union, Keys: []string{"a", "s"}, Weights: []float64{1, 5}}, "x=1 w=5 y=7 inf=+Inf"},
		{combination{Op: structures.Inter, Keys: []string{"a", "a"}}, "x=2 y=4 inf=+Inf"},
		{combination{Op: structures.Inter, Keys: []string{"a", "none"}}, ""},
		{combination{Op: structures.Diff, Keys: []string{"none", "a"}}, ""},
		{combination{Op: structures.Union}, ""},
	} {
		n, err := m.zset("to").PutCombined(tt.c)
		must(t, err)
		equal(t, fmt.Sprintf("%+v", tt.c), whole(t, m, "to"), tt.want)
		size, err := m.zset("to").Len()
		must(t, err)
		equal(t, "size", n, size)
	}
	for _, op := range []structures.SetOp{structures.Union, structures.Inter, structures.Diff} {
		must(t, m.PutString("text", nil))
		if _, err := (combination{Op: op, Keys: []string{"none", "text"}}).Combine(m); err != structures.ErrWrongType {
			t.Errorf("a string among the keys: %v", err)
		}
	}
	if _, err := (combination{Keys: ab, Weights: []float64{math.NaN()}}).Combine(m); err != structures.ErrNotFloat {
		t.Errorf("weight NaN: %v", err)
	}
}
