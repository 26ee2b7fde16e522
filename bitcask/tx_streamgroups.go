package bitcask

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// The consumer groups of a stream. In the keydir groups, consumers and pending entries are one collection alongside the
// stream, whose scores (keydir.GroupsScore) put together what belongs together: the number of entries that are pending
// for a consumer is a difference of two ranks. In the log each is a record of its own. They live as long as the stream:
// a tombstone of the key, or a string in its place, takes them away.

// StreamGroups returns what the groups of the stream at key have; not valid if it has none.
func (t *Tx) StreamGroups(ns int, key string) (keydir.Collection, error) {
	return t.alongside(ns, key, keydir.StreamGroups)
}

// PutGroups writes a group, a consumer or a pending entry of a stream that exists. elem and value are as
// keydir/streamgroups.go has them, coll is what StreamGroups returns; if it is not valid, PutGroups looks.
func (t *Tx) PutGroups(ns int, key string, coll keydir.Collection, elem string, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	score, ok := keydir.GroupsScore([]byte(elem), value)
	if !ok {
		return fmt.Errorf("BUG: %s: %q, %q", format.BadGroups, elem, value)
	}
	if len(elem) > MaxElement {
		return fmt.Errorf("bitcask: name of a group or a consumer of %d bytes: %w", len(elem), ErrTooLarge)
	}
	if !coll.Valid() {
		coll, _ = sp.Dir.FindAlongside(h, key, keydir.StreamGroups)
	}
	if coll.Valid() && coll.Full() || !coll.Valid() && sp.Dir.Full(h) {
		return fmt.Errorf("bitcask: groups of a stream: %w", ErrIndexFull)
	}
	if coll.Valid() && !keydir.IsPending(elem) { // a group or a consumer may have a record that waits
		if old, at, had := coll.Score(elem); had && old == score && t.rewrite(at, value) {
			return nil
		}
	}
	loc, err := t.add(KindElement, keydir.StreamGroups, sp, h, key, elem, value)
	if err != nil {
		return err
	}
	t.putAlongside(coll, keydir.StreamGroups, sp, h, key, elem, score, loc)
	return nil
}

// DeleteGroups removes one of them, or all that keydir.GroupRange names, with one tombstone. It returns how many there
// were. coll is as PutGroups has it. What a consumer has is removed one by one: see keydir.ConsumerRange.
func (t *Tx) DeleteGroups(ns int, key string, coll keydir.Collection, elem string) (n int, err error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return 0, err
	}
	if !coll.Valid() {
		coll, _ = sp.Dir.FindAlongside(h, key, keydir.StreamGroups)
	}
	if !coll.Valid() {
		return 0, nil
	}
	ranges, ok := keydir.GroupsRangeOf([]byte(elem))
	if !ok || keydir.IsConsumerRange(elem) {
		return 0, fmt.Errorf("BUG: %s: %q", format.BadGroups, elem)
	}
	names := []string{elem}
	if ranges != nil {
		names = coll.Within(ranges)
	}
	if n = t.dropAlongsideOf(coll, keydir.StreamGroups, sp, h, key, names...); n == 0 {
		return 0, nil
	}
	if _, err = t.add(KindElementTombstone, keydir.StreamGroups, sp, h, key, elem, nil); err != nil {
		return 0, err
	}
	return n, nil
}
