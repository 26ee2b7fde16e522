package keydir_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/keydir"
)

// FuzzStreamGroups: names of elements are one-to-one, their scores stand together as they belong together, and a
// tombstone of a range covers exactly what it names.
func FuzzStreamGroups(f *testing.F) {
	f.Add(uint32(0), uint32(1), "g", uint64(1), uint64(2), []byte("p:00000001:0123456789abcdef"), []byte("7 0 0"))
	f.Add(uint32(1<<31-1), uint32(1<<31-1), "", uint64(1<<64-1), uint64(1<<64-1), []byte("C:00000001:00000002"), []byte("07 0 0"))
	f.Add(uint32(5), uint32(0), "a:b", uint64(0), uint64(0), []byte("G:0000000g"), []byte("2147483648"))
	f.Fuzz(func(t *testing.T, group, consumer uint32, name string, ms, seq uint64, elem, value []byte) {
		group &= keydir.MaxGroup
		consumer &= keydir.MaxGroup
		id := keydir.StreamID{Ms: ms, Seq: seq}
		pending := keydir.PendingElem(group, id)
		if got := keydir.PendingID([]byte(pending)); got != id {
			t.Fatalf("%v came back as %v", id, got)
		}
		number := func(n uint32) []byte {
			b := []byte{}
			for ; n > 0 || len(b) == 0; n /= 10 {
				b = append([]byte{byte('0' + n%10)}, b...)
			}
			return append(b, " 1 1"...)
		}
		for elem, want := range map[string]uint64{
			keydir.GroupElem(name): keydir.GroupScore(consumer), keydir.ConsumerElem(group, name): keydir.ConsumerScore(group, consumer),
			pending: keydir.PendingScore(group, consumer),
		} {
			if score, ok := keydir.GroupsScore([]byte(elem), number(consumer)); !ok || score != want || keydir.GroupNumber(score) != consumer {
				t.Fatalf("%q: %x, want %x", elem, score, want)
			}
			if keydir.IsGroupsRange(elem) {
				t.Fatalf("%q is a range", elem)
			}
		}
		within := func(elem string, score uint64) bool {
			ranges, ok := keydir.GroupsRangeOf([]byte(elem))
			if !ok || ranges == nil {
				t.Fatalf("%q is no range", elem)
			}
			for _, r := range ranges {
				if r.From <= score && score <= r.To {
					return true
				}
			}
			return false
		}
		all, one := keydir.GroupRange(group), keydir.ConsumerRange(group, consumer)
		if !within(all, keydir.GroupScore(group)) || !within(all, keydir.ConsumerScore(group, consumer)) || !within(all, keydir.PendingScore(group, consumer)) ||
			within(one, keydir.GroupScore(group)) || !within(one, keydir.ConsumerScore(group, consumer)) || !within(one, keydir.PendingScore(group, consumer)) ||
			group > 0 && (within(all, keydir.PendingScore(group-1, keydir.MaxGroup)) || within(all, keydir.GroupScore(group-1))) ||
			consumer > 0 && within(one, keydir.PendingScore(group, consumer-1)) {
			t.Fatalf("ranges of group %d, consumer %d", group, consumer)
		}
		// What is damaged may be anything.
		if score, ok := keydir.GroupsScore(elem, value); ok {
			first, _, _ := strings.Cut(string(value), " ")
			if first != strings.TrimSuffix(string(number(keydir.GroupNumber(score))), " 1 1") {
				t.Fatalf("%q of %q has score %x", value, elem, score)
			}
		}
		if ranges, ok := keydir.GroupsRangeOf(elem); ok && (ranges == nil) == keydir.IsGroupsRange(string(elem)) {
			t.Fatalf("%q: %v", elem, ranges)
		}
	})
}
