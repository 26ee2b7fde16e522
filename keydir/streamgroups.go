package keydir

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/stavedb/stave/internal/ordered"
)

// What the consumer groups of a stream have is one collection alongside the stream, of type StreamGroups. Groups have
// numbers within their stream, and consumers within their group; a number may be given again once what had it is gone.
// Its elements, with the values that their records have:
//
//	g:{name of the group}              number of the group, last delivered id, entries read (-1: unknown)
//	c:{group}:{name of the consumer}   number of the consumer, when it was seen, when it was active: Unix milliseconds (-1: never)
//	p:{group}:{id}                     number of the consumer, when the entry was delivered: Unix milliseconds; deliveries
//
// {group} is the number in 8 hex digits, {id} 16 bytes, big-endian, for this name is in memory twice. A value is text,
// its parts separated by a space. Its first part is a number that the score has as well. Two names are those of
// tombstones only:
//
//	G:{group}             the group with all that it has
//	C:{group}:{consumer}  the consumer, its number in 8 hex digits, with its pending entries; read, and not written any more
//
// The score puts together what belongs together: groups, then consumers by group, then pending entries by group and
// consumer. So how many entries are pending for a consumer is a difference of two ranks.
const (
	groupKind    = uint64(0) << 62
	consumerKind = uint64(1) << 62
	pendingKind  = uint64(2) << 62
	groupShift   = 31

	// MaxGroup is the greatest number of a group or a consumer.
	MaxGroup = 1<<groupShift - 1

	groupPrefix   = 2 + ordered.HexLen/2 // of the name of what a group has: kind, colon, number
	pendingLength = groupPrefix + 1 + 16
)

// GroupPrefix is how many bytes the name of a consumer is shorter than that of its element.
const GroupPrefix = groupPrefix + 1

func appendGroup(dst []byte, n uint32) []byte {
	var b [ordered.HexLen]byte
	return append(dst, ordered.AppendHex(b[:0], uint64(n))[ordered.HexLen/2:]...)
}

// GroupElem is the name of the element of a group.
func GroupElem(name string) string { return "g:" + name }

// ConsumerElem is the name of the element of a consumer.
func ConsumerElem(group uint32, name string) string {
	b := append(make([]byte, 0, GroupPrefix+len(name)), "c:"...)
	return string(append(append(appendGroup(b, group), ':'), name...))
}

// PendingElem is the name of the element of a pending entry.
func PendingElem(group uint32, id StreamID) string {
	var b [pendingLength]byte
	return string(AppendPending(b[:0], group, id))
}

// AppendPending appends the name of the element of a pending entry.
func AppendPending(dst []byte, group uint32, id StreamID) []byte {
	dst = append(appendGroup(append(dst, "p:"...), group), ':')
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.Ms), id.Seq)
}

// GroupRange is the name of the tombstone of a group and of all that it has.
func GroupRange(group uint32) string { return string(appendGroup([]byte("G:"), group)) }

// ConsumerRange is the name of the tombstone of a consumer and of its pending entries, which older versions wrote.
// Nothing may write it (I12): the value of its record says whose a pending entry is, so what the tombstone removes
// depends on which record of the entry a merge has left.
func ConsumerRange(group, consumer uint32) string {
	return string(appendGroup(append(appendGroup([]byte("C:"), group), ':'), consumer))
}

// IsPending reports whether an element is a pending entry.
func IsPending(elem string) bool { return elem != "" && elem[0] == 'p' }

// PendingID is the id in the name of a pending entry.
func PendingID(elem []byte) StreamID {
	b := elem[len(elem)-16:]
	return StreamID{Ms: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:])}
}

// GroupsScore is the score of an element, from its name and its value.
func GroupsScore(elem, value []byte) (score uint64, ok bool) {
	first, _, _ := bytes.Cut(value, []byte(" "))
	n, err := strconv.ParseUint(string(first), 10, groupShift)
	if err != nil || len(first) > 1 && first[0] == '0' || len(elem) < 2 || elem[1] != ':' {
		return 0, false
	}
	if elem[0] == 'g' {
		return GroupScore(uint32(n)), true
	}
	group, ok := parseGroup(elem)
	if !ok || len(elem) < GroupPrefix || elem[groupPrefix] != ':' {
		return 0, false
	}
	switch {
	case elem[0] == 'c':
		return ConsumerScore(group, uint32(n)), true
	case elem[0] == 'p' && len(elem) == pendingLength:
		return PendingScore(group, uint32(n)), true
	}
	return 0, false
}

// GroupScore is the score of a group.
func GroupScore(group uint32) uint64 { return groupKind | uint64(group) }

// ConsumerScore is the score of a consumer.
func ConsumerScore(group, consumer uint32) uint64 {
	return consumerKind | uint64(group)<<groupShift | uint64(consumer)
}

// PendingScore is the score of each entry that is pending for a consumer.
func PendingScore(group, consumer uint32) uint64 {
	return pendingKind | uint64(group)<<groupShift | uint64(consumer)
}

// GroupNumber is the number that ends a score: that of a group if the score is a group's, else that of a consumer.
func GroupNumber(score uint64) uint32 { return uint32(score & MaxGroup) }

// GroupOf is the number of the group in the name of what a group has, or of a tombstone; ok is false for a group itself.
func GroupOf(elem []byte) (group uint32, ok bool) {
	if elem[0] == 'g' {
		return 0, false
	}
	return parseGroup(elem)
}

// parseGroup reads the number of the group in a name.
func parseGroup(elem []byte) (uint32, bool) {
	if len(elem) < groupPrefix {
		return 0, false
	}
	digits := [ordered.HexLen]byte{'0', '0', '0', '0', '0', '0', '0', '0'}
	copy(digits[ordered.HexLen/2:], elem[2:groupPrefix])
	n, ok := ordered.ParseHex(digits[:])
	return uint32(n), ok && n <= MaxGroup
}

// ScoreRange is the scores from one to another, both inclusive.
type ScoreRange struct{ From, To uint64 }

// GroupsRangeOf is what a tombstone of groups removes: ranges of scores; none if it is of one element.
func GroupsRangeOf(elem []byte) (ranges []ScoreRange, ok bool) {
	if !IsGroupsRange(string(elem)) {
		return nil, true
	}
	group, ok := parseGroup(elem)
	if !ok || elem[1] != ':' {
		return nil, false
	}
	if elem[0] == 'G' {
		return []ScoreRange{
			{GroupScore(group), GroupScore(group)}, {ConsumerScore(group, 0), ConsumerScore(group, MaxGroup)},
			{PendingScore(group, 0), PendingScore(group, MaxGroup)},
		}, len(elem) == groupPrefix
	}
	if len(elem) != groupPrefix+1+ordered.HexLen/2 || elem[groupPrefix] != ':' {
		return nil, false
	}
	consumer, ok := parseGroup(elem[groupPrefix-1:])
	return []ScoreRange{
		{ConsumerScore(group, consumer), ConsumerScore(group, consumer)}, {PendingScore(group, consumer), PendingScore(group, consumer)},
	}, ok
}

// IsConsumerRange reports whether a name is one of ConsumerRange.
func IsConsumerRange(elem string) bool { return elem != "" && elem[0] == 'C' }

// IsGroupsRange reports whether a tombstone of groups removes more than one element.
func IsGroupsRange(elem string) bool { return elem != "" && (elem[0] == 'G' || IsConsumerRange(elem)) }

// Within lists the elements of some ranges of scores.
func (c Collection) Within(ranges []ScoreRange) (elems []string) {
	for _, r := range ranges {
		c.AscendRank(c.Rank(r.From, ""), func(elem []byte, score uint64) bool {
			if score > r.To {
				return false
			}
			elems = append(elems, string(elem))
			return true
		})
	}
	return elems
}
