package group

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// SlotCount is how many slots the keys of a cluster are in.
const SlotCount = 16384

// SlotRange are the slots from one to another, both included.
type SlotRange struct{ First, Last int }

// Slots are those of a group: ranges in order, with other slots between them.
type Slots []SlotRange

// AllSlots are those of a group that is a cluster by itself.
func AllSlots() Slots { return Slots{{0, SlotCount - 1}} }

// ParseSlots reads ranges such as "0-8191,9000". The empty text means all.
func ParseSlots(text string) (Slots, error) {
	if text == "" {
		return AllSlots(), nil
	}
	var has [SlotCount]bool
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 14)
		last, errLast := strconv.ParseUint(to, 10, 14)
		if err != nil || errLast != nil || first > last {
			return nil, fmt.Errorf("slots are ranges of 0 to %d such as 0-8191,9000, and not %.100q", SlotCount-1, part)
		}
		for slot := first; slot <= last; slot++ {
			if has[slot] {
				return nil, fmt.Errorf("slot %d is twice in %.100q", slot, text)
			}
			has[slot] = true
		}
	}
	return rangesOf(&has), nil
}

// rangesOf are the slots that an array has.
func rangesOf(has *[SlotCount]bool) (s Slots) {
	for slot, is := range has {
		switch last := len(s) - 1; {
		case !is:
		case last >= 0 && s[last].Last == slot-1:
			s[last].Last = slot
		default:
			s = append(s, SlotRange{slot, slot})
		}
	}
	return s
}

// String is what ParseSlots reads, of all slots too.
func (s Slots) String() string {
	var parts []string
	for _, r := range s {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ",")
}

// String is the range as CLUSTER NODES has it, too.
func (r SlotRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Has reports whether a slot is among them.
func (s Slots) Has(slot int) bool {
	for _, r := range s {
		if slot <= r.Last {
			return slot >= r.First
		}
	}
	return false
}

// IsAll reports whether they are all that there are.
func (s Slots) IsAll() bool { return s.Count() == SlotCount }

// Count is how many there are.
func (s Slots) Count() (n int) {
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// Without are those that others do not have.
func (s Slots) Without(others ...Slots) Slots {
	var has [SlotCount]bool
	set := func(of Slots, to bool) {
		for _, r := range of {
			for slot := r.First; slot <= r.Last; slot++ {
				has[slot] = to
			}
		}
	}
	set(s, true)
	for _, other := range others {
		set(other, false)
	}
	return rangesOf(&has)
}

// SlotsTakenError refuses to begin a group that would have slots of another one of its cluster.
type SlotsTakenError struct {
	Other string // the name of that group
	Slots Slots  // that it has, and the new one would have
}

func (e *SlotsTakenError) Error() string {
	return fmt.Sprintf("the slots %s are those of the group %s: a group of the same cluster needs slots that no other one has, and any other group a cluster of its own", e.Slots, e.Other)
}

// CheckSlots returns a *SlotsTakenError if other groups have slots of a new one. Services ask it within the swap that begins a group.
func CheckSlots(text string, others map[string]Record) error {
	slots, err := ParseSlots(text)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		other, err := ParseSlots(others[name].Slots)
		if err != nil {
			continue // nobody knows which it has, and nobody sends clients there
		}
		if rest := slots.Without(other); rest.Count() < slots.Count() {
			return &SlotsTakenError{name, slots.Without(rest)}
		}
	}
	return nil
}
