package group_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestParseSlots: what a text says, and what it is written as.
func TestParseSlots(t *testing.T) {
	for text, want := range map[string]string{
		"": "0-16383", "0-16383": "0-16383", "7": "7", "7-7": "7", "3,1,2": "1-3", "0-4,5-9": "0-9", "9000,0-8191": "0-8191,9000", "16383": "16383",
	} {
		s, err := group.ParseSlots(text)
		if err != nil || s.String() != want || s.IsAll() != (want == "0-16383") {
			t.Errorf("%q: %v, %v, want %s", text, s, err, want)
		}
	}
	for _, text := range []string{",", "x", "1-", "-1", "2-1", "16384", "0-16384", "1,1", "0-5,5-9", "1 2", "0-8191,", "1--2", "+1", "99999999999999999999"} {
		if s, err := group.ParseSlots(text); err == nil {
			t.Errorf("%q: %v", text, s)
		}
	}
}

// TestSlots compares what is asked of slots with sets of numbers.
func TestSlots(t *testing.T) {
	r := chance.Rand(t)
	random := func() (s group.Slots, has []bool) {
		has = make([]bool, group.SlotCount)
		var parts []string
		for next := 0; ; {
			first := next + r.IntN(6000)
			last := first + r.IntN(1+r.IntN(6000))
			if last >= group.SlotCount {
				break
			}
			for slot := first; slot <= last; slot++ {
				has[slot] = true
			}
			parts = append(parts, group.SlotRange{First: first, Last: last}.String())
			next = last + 1
		}
		if len(parts) == 0 {
			return nil, has
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		s, err := group.ParseSlots(strings.Join(parts, ","))
		if err != nil {
			t.Fatal(err)
		}
		return s, has
	}
	check := func(what string, s group.Slots, has []bool) {
		t.Helper()
		n := 0
		for slot, is := range has {
			if s.Has(slot) != is {
				t.Fatalf("%s: %s has %d: %t", what, s, slot, !is)
			}
			if is {
				n++
			}
		}
		if s.Count() != n {
			t.Fatalf("%s: %s are %d, not %d", what, s, s.Count(), n)
		}
		if again, err := group.ParseSlots(s.String()); n > 0 && (err != nil || !slices.Equal(again, s)) {
			t.Fatalf("%s: %s is read as %s, %v", what, s, again, err)
		}
	}
	for range 50 {
		a, hasA := random()
		b, hasB := random()
		check("read", a, hasA)
		for slot, is := range hasB {
			hasA[slot] = hasA[slot] && !is
		}
		check("without "+b.String(), a.Without(b), hasA)
	}
}

// TestCheckSlots: a group begins with slots that no other one has.
func TestCheckSlots(t *testing.T) {
	others := map[string]group.Record{"g": {Slots: "0-99"}, "h": {Slots: "90-199,300"}, "broken": {Slots: "?"}}
	for _, text := range []string{"200-299", "301-16383"} {
		if err := group.CheckSlots(text, others); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]group.SlotsTakenError{
		"":        {Other: "g", Slots: group.Slots{{First: 0, Last: 99}}},
		"95-1000": {Other: "g", Slots: group.Slots{{First: 95, Last: 99}}},
		"100-400": {Other: "h", Slots: group.Slots{{First: 100, Last: 199}, {First: 300, Last: 300}}},
	} {
		got := new(group.SlotsTakenError)
		if err := group.CheckSlots(text, others); !errors.As(err, &got) || got.Other != want.Other || !slices.Equal(got.Slots, want.Slots) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := group.CheckSlots("?", nil); err == nil {
		t.Error("a text that is none is taken")
	}
	all := map[string]group.Record{"all": {}}
	if err := group.CheckSlots("5", all); err == nil || !strings.Contains(err.Error(), "the slots 5 are those of the group all") {
		t.Error(err)
	}
}
