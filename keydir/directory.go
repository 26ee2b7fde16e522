package keydir

import "sync/atomic"

// Slot is the directory's entry of a key. For String and Deadline, Loc is the location of
// the record; for the other types it is an opaque reference to the collection, to be passed
// to CollectionOf.
type Slot struct {
	Type Type
	Loc  Loc
}

// SlotBytes is the memory of a slot. Tables are between seven and nine tenths full, so a
// key takes 18 to 23 bytes.
const SlotBytes = slotBytes

// EntryBytes is the memory of a slot with its share of the room in its table: 20 bytes in the mean.
const EntryBytes = slotBytes * 5 / 4

// Directory maps the user keys of one namespace to their slots. It keeps no keys: a slot is
// found by its hash, and the caller proves a key against its record; collections keep their
// key.
//
// For every call except TryGet, Len, LenDeadlines, LenFieldDeadlines, Bytes, EntryBytes and those on visits the caller
// holds the lock of the hash's stripe: shared for methods that read, exclusive for the others.
type Directory struct {
	hash           hasher
	stripes        [Stripes]atomic.Pointer[stripe] // K2: stripes[s] is accessed under the lock of stripe s only, except by TryGet
	keys           atomic.Int64
	deadlines      atomic.Int64
	fieldDeadlines atomic.Int64           // collections of FieldDeadlines and of StreamGroups, which both stand alongside a key
	bytes          atomic.Int64           // of collections
	tables         atomic.Int64           // bytes
	visits         atomic.Pointer[visits] // nil: they are not noted
	aged           atomic.Pointer[visits] // those of the turn before; nil: none
	pages          pagePool
	arenaLimit     int // chunks that an arena may have before its collections are full
}

// Counts are how many slots there are of the kinds that a directory counts.
type Counts struct {
	Keys, Deadlines, FieldDeadlines uint32
}

func (c *Counts) count(t Type) {
	switch t {
	case Deadline:
		c.Deadlines++
	case FieldDeadlines, StreamGroups:
		c.FieldDeadlines++
	default:
		c.Keys++
	}
}

// NewDirectory returns an empty directory. The hashes passed to it are hashes under seed.
func NewDirectory(seed Seed) *Directory {
	d := &Directory{hash: hasher{seed: seed, mask: ^uint64(0)}, arenaLimit: maxChunks - spareChunks}
	d.pages.bytes = &d.tables
	return d
}

// Limit lowers the memory that one collection, or the small collections of one stripe, may
// take before they are full, from 16 GiB to about the given bytes.
func (d *Directory) Limit(bytes int) { d.arenaLimit = min(bytes/maxChunk, maxChunks-spareChunks) }

// Full reports whether there is no room for another collection at a hash. Callers must not
// add one then: what exceeds the address space panics.
func (d *Directory) Full(h uint64) bool {
	st := d.stripe(h)
	return st != nil && st.collections.arena != nil && st.collections.arena.full(d.arenaLimit)
}

// chunksRef marks the reference to the collection of a string in chunks: it is a pending
// location, and no transaction has so many records.
const chunksRef = PendingSegment<<40 | 1<<39

// pack returns the words of a slot. Three bits have no number left for Chunks, Stream and StreamGroups: a string in
// chunks has the word of a string, a stream that of a list, its groups that of a sorted set, and all a reference marked
// by chunksRef.
func pack(h uint64, s Slot) (word, loc uint64) {
	switch s.Type {
	case Chunks:
		return h&^typeMask | uint64(String), chunksRef | uint64(s.Loc)
	case Stream:
		return h&^typeMask | uint64(List), chunksRef | uint64(s.Loc)
	case StreamGroups:
		return h&^typeMask | uint64(ZSet), chunksRef | uint64(s.Loc)
	}
	return h&^typeMask | uint64(s.Type), uint64(s.Loc)
}

// unpack is the inverse of pack.
func unpack(word, loc uint64) Slot {
	t := Type(word & typeMask)
	switch {
	case loc < chunksRef:
	case t == String:
		return Slot{Chunks, Loc(loc &^ chunksRef)}
	case t == List:
		return Slot{Stream, Loc(loc &^ chunksRef)}
	case t == ZSet:
		return Slot{StreamGroups, Loc(loc &^ chunksRef)}
	}
	return Slot{t, Loc(loc)}
}

func isChunks(word, loc uint64) bool { return Type(word&typeMask) == String && loc >= chunksRef }

func (d *Directory) stripe(h uint64) *stripe { return d.stripes[StripeOf(h)].Load() }

// ensureStripe returns the stripe of a hash; it makes a missing one.
func (d *Directory) ensureStripe(h uint64) *stripe {
	st := d.stripe(h)
	if st == nil {
		st = newStripe(d)
		d.stripes[StripeOf(h)].Store(st)
	}
	return st
}

// counter returns the counter of the slots of a type.
func (d *Directory) counter(t Type) *atomic.Int64 {
	switch t {
	case Deadline:
		return &d.deadlines
	case FieldDeadlines, StreamGroups:
		return &d.fieldDeadlines
	}
	return &d.keys
}

func (d *Directory) count(t Type, delta int64) { d.counter(t).Add(delta) }

// Promise notes that a stripe, which is empty, will be loaded later, and counts its slots at
// once. Until a Loader has filled it only TryGet, which returns LookupRetry, and Promised may
// be called for it: all else panics.
func (d *Directory) Promise(stripe int, c Counts) {
	d.stripes[stripe].Store(newPromise(c))
	d.replaceCounts(Counts{}, c)
}

// Promised returns what a stripe was promised to hold; ok is false if it is not to be loaded,
// or has been.
func (d *Directory) Promised(stripe int) (c Counts, ok bool) {
	if st := d.stripes[stripe].Load(); st != nil && st.promised != nil {
		return *st.promised, true
	}
	return Counts{}, false
}

// replaceCounts counts some slots instead of others, each kind in one step.
func (d *Directory) replaceCounts(old, now Counts) {
	d.keys.Add(int64(now.Keys) - int64(old.Keys))
	d.deadlines.Add(int64(now.Deadlines) - int64(old.Deadlines))
	d.fieldDeadlines.Add(int64(now.FieldDeadlines) - int64(old.FieldDeadlines))
}

// Find returns the i-th slot of a hash. The low three bits of hashes are ignored. Hashes may
// collide, and a key with a deadline has two slots, so callers try i = 0, 1, ... until ok is
// false.
func (d *Directory) Find(h uint64, i int) (s Slot, ok bool) {
	st := d.stripe(h)
	if st == nil {
		return Slot{}, false
	}
	t := st.table(h)
	word, loc := t.at(t.seek(h) + i)
	if word == 0 || word>>3 != h>>3 {
		return Slot{}, false
	}
	return unpack(word, loc), true
}

// Prefetch loads the memory in which searches for these hashes begin. A search must wait for
// that memory; here nothing depends on it, so the cache misses of many hashes overlap.
func (d *Directory) Prefetch(hashes []uint64) {
	for _, h := range hashes {
		st := d.stripe(h)
		if st == nil {
			continue
		}
		t := st.table(h)
		if pos := t.home(h); pos < t.slots {
			page := t.pages[pos>>pageShift]
			atomic.LoadUint64(&page[pos&pageMask*slotWords])
		}
	}
}

// Insert adds a slot. It does not check whether it exists already.
func (d *Directory) Insert(h uint64, s Slot) {
	if s.Type == None || s.Type > StreamGroups {
		panic("BUG: keydir: slot of type " + s.Type.String())
	}
	st := d.ensureStripe(h)
	st.beginChange()
	st.insert(pack(h, s))
	st.endChange()
	d.count(s.Type, 1)
}

// Replace replaces the exact slot old by new. It reports false if there is no slot old.
func (d *Directory) Replace(h uint64, old, new Slot) bool {
	st := d.stripe(h)
	if st == nil {
		return false
	}
	t := st.table(h)
	pos := t.find(pack(h, old))
	if pos < 0 {
		return false
	}
	word, loc := pack(h, new)
	if old.Type == new.Type {
		t.setLoc(pos, loc)
		return true
	}
	st.beginChange()
	t.set(pos, word, loc)
	st.endChange()
	if d.counter(old.Type) != d.counter(new.Type) {
		d.count(old.Type, -1)
		d.count(new.Type, 1)
	}
	return true
}

// Delete removes the exact slot. It reports false if there is no such slot.
func (d *Directory) Delete(h uint64, s Slot) bool {
	st := d.stripe(h)
	if st == nil {
		return false
	}
	word, loc := pack(h, s)
	pos := st.table(word).find(word, loc)
	if pos < 0 {
		return false
	}
	st.beginChange()
	st.delete(word, pos)
	st.endChange()
	d.count(s.Type, -1)
	return true
}

// Len returns the number of keys: slots other than those of deadlines. It needs no lock.
func (d *Directory) Len() int { return int(d.keys.Load()) }

// LenDeadlines returns the number of deadline slots. It needs no lock.
func (d *Directory) LenDeadlines() int { return int(d.deadlines.Load()) }

// LenFieldDeadlines returns the number of hashes with fields that have a deadline, and of streams with groups. It needs
// no lock.
func (d *Directory) LenFieldDeadlines() int { return int(d.fieldDeadlines.Load()) }

// Bytes estimates the memory of the directory and its collections. It needs no lock.
func (d *Directory) Bytes() int64 {
	n := d.bytes.Load() + d.tables.Load()
	for _, v := range [...]*visits{d.visits.Load(), d.aged.Load()} {
		if v != nil {
			n += int64(8 * len(v.words))
		}
	}
	return n
}

// EntryBytes is what the slots and collections take, counted so that it falls with each slot that goes: tables give
// memory back by pages, once they are sparse, and take it again for the next keys. It needs no lock.
func (d *Directory) EntryBytes() int64 {
	return (d.keys.Load()+d.deadlines.Load()+d.fieldDeadlines.Load())*EntryBytes + d.bytes.Load()
}

// StripeLen returns the number of slots in a stripe, those of deadlines included.
func (d *Directory) StripeLen(stripe int) int {
	if st := d.stripes[stripe].Load(); st != nil {
		return st.slots()
	}
	return 0
}

// Scan calls fn for the slots of a stripe in ascending order of hash, from the hash
// from on, until fn returns false. The hashes passed to fn have their low three bits
// clear. fn must not change the directory. A scan may stop and continue later, from
// h|7 + 1 of the last hash: it sees every slot that exists all the while exactly once,
// whatever else is inserted or deleted and however the tables grow meanwhile.
func (d *Directory) Scan(stripe int, from uint64, fn func(h uint64, s Slot) bool) {
	st := d.stripes[stripe].Load()
	if st == nil || StripeOf(from) > stripe {
		return
	}
	if StripeOf(from) < stripe {
		from = uint64(stripe) << (64 - stripeBits)
	}
	st.scan(from, func(word, loc uint64) bool {
		return fn(word&^typeMask, unpack(word, loc))
	})
}

// RandomSlot returns a uniformly distributed slot of a stripe, picked by the random
// number x. It reports false only if the stripe is empty.
func (d *Directory) RandomSlot(stripe int, x uint64) (h uint64, s Slot, ok bool) {
	st := d.stripes[stripe].Load()
	if st == nil {
		return 0, Slot{}, false
	}
	word, loc := st.randomSlot(x)
	return word &^ typeMask, unpack(word, loc), word != 0
}
