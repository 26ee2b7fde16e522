package bitcask

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/undo"
	"github.com/stavedb/stave/keydir"
)

// Lists, and the chunks of strings. Pushes and pops leave a list at consecutive indexes. An element that is removed from the
// middle leaves a hole, and one that is inserted there gets a sub-index, so that both write one record. The manifest announces
// holes and sub-indexes before the first is written.

// PutIndex sets the element of a list, or the chunk of a string, at an index.
func (t *Tx) PutIndex(ns int, key string, coll keydir.Collection, index int64, value []byte) error {
	return t.PutPlace(ns, key, coll, keydir.ListPlace{Index: index}, value)
}

// PutPlace is PutIndex of any place in a list.
func (t *Tx) PutPlace(ns int, key string, coll keydir.Collection, at keydir.ListPlace, value []byte) error {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return err
	}
	if _, ok := coll.LocAtPlace(at); !ok && coll.Full() {
		return fmt.Errorf("bitcask: %d elements: %w", coll.Len(), ErrIndexFull)
	}
	if at.Sub > 0 {
		if err := t.announcePlaces(); err != nil {
			return err
		}
	}
	typ := coll.Type()
	t.touch(sp, h, key, typ, coll)
	loc, err := t.add(KindElement, typ, sp, h, key, format.PlaceName(at), value)
	if err != nil {
		return err
	}
	old, had := coll.PutPlace(at, loc)
	if t.made.is(sp, h, key) {
		return nil
	}
	t.undo.Append(undo.Op{Kind: undo.PutAt, Dir: sp.Dir, Hash: h, Key: key, Index: at.Index, Score: at.Sub, Loc: old, Had: had})
	return nil
}

// announcePlaces has the manifest announce holes and sub-indexes.
func (t *Tx) announcePlaces() error {
	err := t.s.man.need(manifest.FeaturePlaces)
	if err != nil && !failure.IsRetryable(err) {
		return t.s.log.Fail(err)
	}
	if err != nil {
		return t.refuse(failure.NameNoSpace(err))
	}
	return nil
}

// DeleteRange removes the elements of a list from one place to another, both included. One tombstone covers them all. A
// full disk may not take the note in the manifest that there are such tombstones: then each element has its own. It may
// not take the note that there are holes either: then nothing is removed in the middle.
func (t *Tx) DeleteRange(ns int, key string, coll keydir.Collection, from, to keydir.ListPlace) (n int, err error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return 0, err
	}
	head, tail := coll.Bounds()
	if from.Index > head && to.Index < tail || from.Sub > 0 || to.Sub > 0 {
		if err := t.announcePlaces(); err != nil {
			return 0, err
		}
	}
	if from == to {
		return t.deleteRange(sp, h, key, coll, from, to)
	}
	switch err := t.s.man.need(manifest.FeatureRanges); {
	case err == nil:
		return t.deleteRange(sp, h, key, coll, from, to)
	case !failure.IsRetryable(err):
		return 0, t.s.log.Fail(err)
	}
	return t.deleteEach(sp, h, key, coll, from, to)
}

// deleteRange is DeleteRange by one tombstone, which is announced.
func (t *Tx) deleteRange(sp *namespace.Space, h uint64, key string, coll keydir.Collection, from, to keydir.ListPlace) (n int, err error) {
	t.touch(sp, h, key, keydir.List, coll)
	name := format.PlaceName(from)
	if from == to {
		old, had := coll.DeletePlace(from)
		if !had {
			return 0, nil
		}
		n = 1
		t.undo.Append(undo.Op{Kind: undo.DeleteAt, Dir: sp.Dir, Hash: h, Key: key, Index: from.Index, Score: from.Sub, Loc: old})
	} else {
		removed := coll.DeleteRange(from, to)
		if n = removed.Len(); n == 0 {
			return 0, nil
		}
		name = format.RangeName(from, to)
		t.undo.Append(undo.Op{Kind: undo.DeleteRange, Dir: sp.Dir, Hash: h, Key: key, Removed: &removed})
	}
	t.made = madeCollection{}
	if _, err := t.add(KindElementTombstone, keydir.List, sp, h, key, name, nil); err != nil {
		return 0, err
	}
	return n, nil
}

// deleteEach is DeleteRange with a tombstone for each element.
func (t *Tx) deleteEach(sp *namespace.Space, h uint64, key string, coll keydir.Collection, from, to keydir.ListPlace) (n int, err error) {
	before := t.here()
	var places []keydir.ListPlace
	coll.EachPlace(func(at keydir.ListPlace, _ keydir.Loc) bool {
		if !at.Less(from) && !to.Less(at) {
			places = append(places, at)
		}
		return !to.Less(at)
	})
	for _, at := range places {
		if _, err := t.deleteRange(sp, h, key, coll, at, at); err != nil {
			t.rollbackTo(before)
			return 0, err
		}
	}
	return len(places), nil
}
