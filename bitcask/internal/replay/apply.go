package replay

import (
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Index is the index that a log is applied to.
type Index struct {
	Spaces   *namespace.Table
	Segments *segment.Set
	Manifest *manifest.Manifest // which hashes two keys had at a time

	Load    func(stripe int) error // loads a stripe that is not loaded; nil: all are
	LoadAll func() error
	Later   func(Removed) // counts them as dead, later
	// Deadline is told of each change of a deadline of a key, 0 if it has none any more, by several goroutines at a
	// time; those of one key come in order. Dropped is told of spaces that no namespace uses any more.
	Deadline func(space uint32, key string, ms int64, seq uint64)
	Dropped  func(sp *namespace.Space, seq uint64)
}

// Applier applies the entries of some stripes to the keydir, in order of
// sequence. The stripes of one are no other's, so appliers run alongside each
// other without locks; what concerns all stripes waits for them all.
type Applier struct {
	Replayed uint64 // entries since the last Flush

	*Index
	after *indexfile.Contents
	live  []int64     // by segment id - Base: bytes that became live, less those that died
	fact  format.Fact // of the entry being applied
	err   error
}

// NewApplier applies to an index that contains what the INDEX does.
func NewApplier(ix *Index, after *indexfile.Contents) *Applier {
	return &Applier{Index: ix, after: after, live: make([]int64, len(ix.Segments.ByID))}
}

// Flush adds the counts to the segments. It returns Replayed, and sets that to 0.
func (a *Applier) Flush() (replayed uint64) {
	for i, sg := range a.Segments.ByID {
		if sg != nil {
			sg.LiveBytes.Add(a.live[i])
		}
	}
	clear(a.live)
	replayed, a.Replayed = a.Replayed, 0
	return replayed
}

func (a *Applier) count(loc keydir.Loc, bytes int64) {
	if i := loc.Segment() - a.Segments.Base; loc != 0 && i < uint32(len(a.live)) {
		a.live[i] += bytes
	}
}

func (a *Applier) alive(loc keydir.Loc) { a.count(loc, int64(loc.Size())) }
func (a *Applier) dead(loc keydir.Loc)  { a.count(loc, -int64(loc.Size())) }

// Removed are locations that have been removed from the keydir together: a collection, or a range of a list.
type Removed interface {
	Len() int
	Each(fn func(keydir.Loc) bool)
}

// SmallDrop is how many locations that are removed together are counted at once;
// more are counted later, so that deleting a collection stays O(1).
const SmallDrop = 64

// drop counts what has been removed together as dead, at once or later.
func (a *Applier) drop(d Removed) {
	if d.Len() > SmallDrop {
		a.Later(d)
		return
	}
	d.Each(func(loc keydir.Loc) bool {
		a.dead(loc)
		return true
	})
}

// Apply applies one entry unless the loaded INDEX already contains it. h is the hash of its key.
func (a *Applier) Apply(sg *segment.Segment, e *format.Entry, h uint64) error {
	a.Replayed++
	if e.Seq <= a.after.Stripes[keydir.StripeOf(h)] {
		return a.reportDeadlineAgain(sg, e)
	}
	if a.Load != nil {
		if err := a.Load(keydir.StripeOf(h)); err != nil { // it is this applier's
			return err
		}
	}
	row, f := e.Row(), &a.fact
	if bad := f.Read(row, e.Elem, e.Inline); bad != "" {
		return &failure.CorruptError{File: sg.Name, Offset: int64(e.At), Reason: bad}
	}
	sp := a.Spaces.ReplaySpace(e.Namespace)
	a.hide(sp, h, row, e)
	if row.Removes {
		a.remove(sp, h, row, e)
	} else {
		a.put(sp, h, row, e, keydir.MakeLoc(sg.ID, e.At, e.Size))
	}
	if row.Expiry {
		a.Deadline(sp.ID, format.Text(e.Key), deadlineOf(row, f), e.Seq)
	}
	return nil
}

// deadlineOf is the deadline that a record gives its key, 0 if none.
func deadlineOf(row *format.Row, f *format.Fact) int64 {
	if row.Removes {
		return 0
	}
	return ordered.ToInt(f.Score)
}

// namespaces applies an entry that concerns all stripes.
func (a *Applier) namespaces(sg *segment.Segment, e *format.Entry) error {
	a.Replayed++
	if err := a.LoadAll(); err != nil { // spaces that go are counted
		return err
	}
	dropped, err := a.Spaces.Replay(e.Inline)
	if err != nil {
		return &failure.CorruptError{File: sg.Name, Offset: int64(e.At), Reason: "namespace map"}
	}
	for _, sp := range dropped {
		a.Dropped(sp, e.Seq)
	}
	a.dead(a.Spaces.Record)
	a.Spaces.Record = keydir.MakeLoc(sg.ID, e.At, e.Size)
	a.alive(a.Spaces.Record)
	return nil
}

// reportDeadlineAgain reports a deadline change that the INDEX already contains but the older TTL
// file does not.
func (a *Applier) reportDeadlineAgain(sg *segment.Segment, e *format.Entry) error {
	row, f := e.Row(), &a.fact
	if !row.Expiry {
		return nil
	}
	if bad := f.Read(row, e.Elem, e.Inline); bad != "" {
		return &failure.CorruptError{File: sg.Name, Offset: int64(e.At), Reason: bad}
	}
	a.Deadline(e.Namespace, format.Text(e.Key), deadlineOf(row, f), e.Seq)
	return nil
}

// hide removes what a record makes of no use besides the older record of its name.
func (a *Applier) hide(sp *namespace.Space, h uint64, row *format.Row, e *format.Entry) {
	switch row.Hides {
	case format.HidesContent:
		a.dropAlongside(sp, h, e.Key)
		a.dropCollection(sp, h, e.Key)
	case format.HidesKey:
		a.removeKey(sp, h, e.Key)
		a.removeSlot(sp, h, keydir.Deadline, e.Key)
	case format.HidesDeadline: // which may be there without the field: a merge has taken that
		if coll, ok := sp.Dir.FindAlongside(h, format.Text(e.Key), keydir.FieldDeadlines); ok {
			a.removeScored(sp, h, coll, format.Text(e.Elem))
		}
	case format.HidesEntries:
		a.collection(sp, h, e).TrimEntries(a.fact.Stream.First).Each(a.dead)
	case format.HidesGroup:
		if coll, ok := sp.Dir.FindAlongside(h, format.Text(e.Key), e.Type); ok && a.fact.Ranges != nil {
			a.removeScored(sp, h, coll, coll.Within(a.fact.Ranges)...)
		}
	}
}

// put leads the index to a record.
func (a *Applier) put(sp *namespace.Space, h uint64, row *format.Row, e *format.Entry, loc keydir.Loc) {
	switch row.Home {
	case format.HomeSlot:
		a.putSlot(sp, h, e.Key, keydir.Slot{Type: e.Type, Loc: loc})
	case format.HomeElement:
		a.dead(locate.Put(a.collection(sp, h, e), &a.fact, loc))
		a.alive(loc)
	case format.HomeAlongside:
		coll, ok := sp.Dir.FindAlongside(h, format.Text(e.Key), e.Type)
		if !ok {
			coll = sp.Dir.NewCollection(h, e.Type, string(e.Key))
		}
		a.dead(locate.Put(coll, &a.fact, loc))
		a.alive(loc)
	case format.HomeMeta:
		coll := a.collection(sp, h, e)
		a.dead(coll.Meta())
		coll.SetMeta(loc)
		a.alive(loc)
	}
}

// remove applies what a tombstone says of its own name.
func (a *Applier) remove(sp *namespace.Space, h uint64, row *format.Row, e *format.Entry) {
	switch row.Home {
	case format.HomeSlot:
		a.removeSlot(sp, h, e.Type, e.Key)
	case format.HomeElement:
		if coll, ok := sp.Dir.FindCollection(h, format.Text(e.Key)); ok && coll.Type() == e.Type {
			if row.Hides == format.HidesRange {
				a.drop(coll.DeleteRange(a.fact.Place.List, a.fact.To))
			} else {
				a.dead(locate.Remove(coll, &a.fact.Place))
			}
		}
	case format.HomeAlongside:
		if coll, ok := sp.Dir.FindAlongside(h, format.Text(e.Key), e.Type); ok {
			a.removeScored(sp, h, coll, format.Text(e.Elem))
		}
	}
}

// putSlot puts the slot of a string or a deadline in the place of the one that
// the key has, if it has one.
func (a *Applier) putSlot(sp *namespace.Space, h uint64, key []byte, now keydir.Slot) {
	a.alive(now.Loc)
	if old, ok := a.SlotOf(sp, h, now.Type, key); ok {
		sp.Dir.Replace(h, old, now)
		a.dead(old.Loc)
		return
	}
	sp.Dir.Insert(h, now)
}

// SlotOf finds the slot of a string or a deadline.
func (a *Applier) SlotOf(sp *namespace.Space, h uint64, t keydir.Type, key []byte) (keydir.Slot, bool) {
	for i := 0; ; i++ {
		slot, ok := sp.Dir.Find(h, i)
		if !ok || slot.Type == t && a.isKey(h, slot.Loc, key) {
			return slot, ok
		}
	}
}

// removeKey removes what the key holds.
func (a *Applier) removeKey(sp *namespace.Space, h uint64, key []byte) {
	a.dropAlongside(sp, h, key)
	if !a.dropCollection(sp, h, key) {
		a.removeSlot(sp, h, keydir.String, key)
	}
}

// dropCollection removes the collection of a key, if it has one.
func (a *Applier) dropCollection(sp *namespace.Space, h uint64, key []byte) bool {
	coll, ok := sp.Dir.FindCollection(h, format.Text(key))
	if ok {
		a.drop(sp.Dir.DropCollection(h, coll))
	}
	return ok
}

// removeSlot removes the slot of a string or a deadline, if there is one.
func (a *Applier) removeSlot(sp *namespace.Space, h uint64, t keydir.Type, key []byte) {
	if slot, ok := a.SlotOf(sp, h, t, key); ok {
		sp.Dir.Delete(h, slot)
		a.dead(slot.Loc)
	}
}

// isKey reports whether a slot with the hash of a key is that of the key. Hashes of different keys
// agree about once in 2^61 pairs, and the manifest records when that happened: only then does the
// record have to be read. One that cannot be read counts as the key that its hash indicates.
func (a *Applier) isKey(h uint64, loc keydir.Loc, key []byte) bool {
	if !a.Manifest.Collided[h>>format.SpareHashBits] {
		return true
	}
	same := true
	sg := a.Segments.Find(loc.Segment())
	if sg == nil {
		return true
	}
	err := sg.Identify(loc, func(rec format.Record) { same = string(rec.Key) == string(key) })
	return err != nil || same
}

// collection finds the collection that an element belongs to, or makes it.
func (a *Applier) collection(sp *namespace.Space, h uint64, e *format.Entry) keydir.Collection {
	coll, ok := sp.Dir.FindCollection(h, format.Text(e.Key))
	switch {
	case ok && coll.Type() == e.Type && sameChunkSize(coll, e):
		return coll
	case !ok && (e.Type == keydir.Hash || e.Type == keydir.Stream):
		// Deadlines of fields that have been written again since may have come before the first field, and groups
		// before a stream's meta record.
		a.removeSlot(sp, h, keydir.String, e.Key)
	default:
		a.removeKey(sp, h, e.Key)
	}
	return sp.Dir.NewCollection(h, e.Type, string(e.Key))
}

// removeScored removes elements of such a collection, and the collection with the last of them.
func (a *Applier) removeScored(sp *namespace.Space, h uint64, coll keydir.Collection, elems ...string) {
	for _, elem := range elems {
		_, old, _ := coll.DeleteScored(elem)
		a.dead(old)
	}
	if coll.Len() == 0 {
		sp.Dir.DropCollection(h, coll)
	}
}

// dropAlongside removes the deadlines of all fields of a key, and the groups of a stream.
func (a *Applier) dropAlongside(sp *namespace.Space, h uint64, key []byte) {
	for _, typ := range keydir.Alongside {
		if coll, ok := sp.Dir.FindAlongside(h, format.Text(key), typ); ok {
			a.drop(sp.Dir.DropCollection(h, coll))
		}
	}
}

// sameChunkSize reports whether an entry belongs to the same string as the chunks that
// are there. It does if it is of anything else.
func sameChunkSize(coll keydir.Collection, e *format.Entry) bool {
	if e.Row().Part != format.PartChunk || coll.Len() == 0 {
		return true
	}
	head, _ := coll.Bounds()
	index, _ := format.ParseIndex(e.Elem)
	return head>>32 == index>>32
}
