package keydir

import "sync/atomic"

// Slot is what the directory knows of a key. For String and Deadline, Loc is
// where the record is; for the others it is an opaque reference to the collection, to
// be passed to CollectionOf.
type Slot struct {
	Type Type
	Loc  Loc
}

// SlotBytes is the memory that a slot takes in a table that is full; the tables are
// between seven and nine tenths full.
const SlotBytes = slotBytes

// Directory maps the user keys of one namespace to their slots. It keeps no keys:
// a slot is found by its hash, and the caller proves the identity of a key against
// the record; collections keep their key.
//
// For every call but TryGet, Len, LenDeadlines, LenFieldDeadlines and Bytes the caller holds the lock of
// the hash's stripe: shared for methods that read, exclusive for the others.
type Directory struct {
	hash      hasher
	regions   [Stripes]atomic.Pointer[region] // K2: regions[s] is touched under the lock of stripe s only, except by TryGet
	keys      atomic.Int64
	deadlines atomic.Int64
	expiring  atomic.Int64 // collections of FieldDeadlines
	bytes     atomic.Int64
	slabs     slabs
	arenaMost int // chunks that one arena takes before its collections are full
}

// NewDirectory returns an empty directory. Hashes handed to it are hashes under seed.
func NewDirectory(seed Seed) *Directory {
	d := &Directory{hash: hasher{seed: seed, mask: ^uint64(0)}, arenaMost: maxChunks - spareChunks}
	d.slabs.bytes = &d.bytes
	return d
}

// Limit lowers how much memory one collection, or the small collections of one stripe, may
// take before they are full, from 16 GiB to some of the given bytes.
func (d *Directory) Limit(bytes int) { d.arenaMost = min(bytes/maxChunk, maxChunks-spareChunks) }

// Full reports whether there is no room for one more collection at a hash. Whoever adds
// one all the same may exceed what can be addressed, which panics.
func (d *Directory) Full(h uint64) bool {
	r := d.at(h)
	return r != nil && r.collections.arena != nil && r.collections.arena.full(d.arenaMost)
}

// chunksRef marks the reference to the collection of a string in chunks: it is a pending
// location, and no transaction has so many records.
const chunksRef = PendingSegment<<40 | 1<<39

// pack returns the words of a slot. Three bits have no number left for Chunks: a
// string in chunks has the word of a string, and a reference that says so.
func pack(h uint64, s Slot) (word, loc uint64) {
	if s.Type == Chunks {
		return h&^typeMask | uint64(String), chunksRef | uint64(s.Loc)
	}
	return h&^typeMask | uint64(s.Type), uint64(s.Loc)
}

func unpack(word, loc uint64) Slot {
	if isChunks(word, loc) {
		return Slot{Chunks, Loc(loc &^ chunksRef)}
	}
	return Slot{Type(word & typeMask), Loc(loc)}
}

func isChunks(word, loc uint64) bool { return Type(word&typeMask) == String && loc >= chunksRef }

func (d *Directory) at(h uint64) *region { return d.regions[StripeOf(h)].Load() }

// grown returns the region of a hash, made if need be.
func (d *Directory) grown(h uint64) *region {
	r := d.at(h)
	if r == nil {
		r = newRegion(d)
		d.regions[StripeOf(h)].Store(r)
	}
	return r
}

// counter returns the counter of the slots of a type.
func (d *Directory) counter(t Type) *atomic.Int64 {
	switch t {
	case Deadline:
		return &d.deadlines
	case FieldDeadlines:
		return &d.expiring
	}
	return &d.keys
}

func (d *Directory) count(t Type, delta int64) { d.counter(t).Add(delta) }

// Find returns the i-th slot of a hash. The low three bits of hashes do not count.
// Hashes may collide, and a key with a deadline has two slots, so callers
// try i = 0, 1, ... until ok is false.
func (d *Directory) Find(h uint64, i int) (s Slot, ok bool) {
	r := d.at(h)
	if r == nil {
		return Slot{}, false
	}
	t := r.table(h)
	word, loc := t.at(t.seek(h) + i)
	if word == 0 || word>>3 != h>>3 {
		return Slot{}, false
	}
	return unpack(word, loc), true
}

// Prefetch loads the memory in which searches for these hashes begin. A search waits for it
// before it knows where to go on. Here nothing depends on what is loaded, so that the cache misses
// of many hashes overlap.
func (d *Directory) Prefetch(hashes []uint64) {
	for _, h := range hashes {
		r := d.at(h)
		if r == nil {
			continue
		}
		t := r.table(h)
		if pos := t.home(h); pos < t.slots {
			page := t.pages[pos>>pageShift]
			atomic.LoadUint64(&page[pos&pageMask*slotWords])
		}
	}
}

// Insert adds a slot. It does not look for one that is there already.
func (d *Directory) Insert(h uint64, s Slot) {
	if s.Type == None || s.Type > Chunks {
		panic("BUG: keydir: slot of type " + s.Type.String())
	}
	r := d.grown(h)
	r.begin()
	r.insert(pack(h, s))
	r.end()
	d.count(s.Type, 1)
}

// Replace replaces the exact slot old by new. It reports false if there is no such slot.
func (d *Directory) Replace(h uint64, old, new Slot) bool {
	r := d.at(h)
	if r == nil {
		return false
	}
	t := r.table(h)
	pos := t.find(pack(h, old))
	if pos < 0 {
		return false
	}
	word, loc := pack(h, new)
	if old.Type == new.Type {
		t.relocate(pos, loc)
		return true
	}
	r.begin()
	t.set(pos, word, loc)
	r.end()
	if d.counter(old.Type) != d.counter(new.Type) {
		d.count(old.Type, -1)
		d.count(new.Type, 1)
	}
	return true
}

// Delete removes the exact slot. It reports false if there is no such slot.
func (d *Directory) Delete(h uint64, s Slot) bool {
	r := d.at(h)
	if r == nil {
		return false
	}
	word, loc := pack(h, s)
	pos := r.table(word).find(word, loc)
	if pos < 0 {
		return false
	}
	r.begin()
	r.delete(word, pos)
	r.end()
	d.count(s.Type, -1)
	return true
}

// Len returns the number of keys: slots other than those of deadlines. It may be called at any time.
func (d *Directory) Len() int { return int(d.keys.Load()) }

// LenDeadlines returns the number of deadline slots. It may be called at any time.
func (d *Directory) LenDeadlines() int { return int(d.deadlines.Load()) }

// LenFieldDeadlines returns the number of hashes with fields that have a deadline. It may be
// called at any time.
func (d *Directory) LenFieldDeadlines() int { return int(d.expiring.Load()) }

// Bytes estimates the memory that the directory and its collections take. It may be
// called at any time.
func (d *Directory) Bytes() int64 { return d.bytes.Load() }

// StripeLen returns the number of slots in a stripe, those of deadlines included.
func (d *Directory) StripeLen(stripe int) int {
	if r := d.regions[stripe].Load(); r != nil {
		return r.slots()
	}
	return 0
}

// Scan calls fn for the slots of a stripe in ascending order of hash, from the hash
// from on, until fn returns false. The hashes that fn sees have their low three bits
// clear. fn must not change the directory. A scan may stop and go on later, from
// h|7 + 1 of the last hash: slots that were there all the while are all seen once,
// whatever came and went and however the table grew meanwhile.
func (d *Directory) Scan(stripe int, from uint64, fn func(h uint64, s Slot) bool) {
	r := d.regions[stripe].Load()
	if r == nil || StripeOf(from) > stripe {
		return
	}
	if StripeOf(from) < stripe {
		from = uint64(stripe) << (64 - stripeBits)
	}
	r.scan(from, func(word, loc uint64) bool {
		return fn(word&^typeMask, unpack(word, loc))
	})
}

// RandomSlot returns an almost uniformly random slot of a stripe, picked by the random number x.
// It reports false only if the stripe is empty.
func (d *Directory) RandomSlot(stripe int, x uint64) (h uint64, s Slot, ok bool) {
	r := d.regions[stripe].Load()
	if r == nil {
		return 0, Slot{}, false
	}
	word, loc := r.near(x)
	return word &^ typeMask, unpack(word, loc), word != 0
}
