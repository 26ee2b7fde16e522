package keydir

import (
	"encoding/binary"
	"sync/atomic"
)

// collectionSet holds the collections of one stripe. A collection is known by its id, a
// handle of the arena. A small collection is the handle's block:
//
//	| type 1 | key length 2 | entries 2 | body bytes 2 | meta 8 | key | body |
//
// The body is packed entries; for a list or a string in chunks, an index and the locations from that index on; for a
// stream, a run of its entries (collection_stream.go). A collection that outgrows smallLimit becomes big, and small
// again when it has shrunk to half of that; its id stays.
type collectionSet struct {
	hash       *hasher
	arena      *arena // nil until the first collection
	bigs       []*big
	freeBigs   []uint32 // indexes in bigs that are nil
	bytes      *atomic.Int64
	arenaLimit *int // Directory.arenaLimit
}

const (
	smallHeaderBytes = 15 // bytes before the key

	// smallLimit bounds the bytes of a small collection; zsetLimit those of one with
	// scores, which is sorted by score at every read in that order, and of a stream, which is
	// walked from its beginning.
	smallLimit = 2048 - headerBytes
	zsetLimit  = 1024 - headerBytes
)

// big is a collection of several pages. It has an arena of its own, so that dropping it
// takes O(1).
type big struct {
	typ     Type
	meta    Loc
	key     string
	arena   arena
	members orderedPages   // by hash; of types with names
	order   insertionOrder // of hashes and sets
	scores  *orderedPages  // by score; of scored types
	list    *list          // of indexed types
	stream  *stream        // of a stream
}

func (cs *collectionSet) init(d *Directory) {
	cs.hash, cs.bytes, cs.arenaLimit = &d.hash, &d.bytes, &d.arenaLimit
}

// uncount takes the memory of a set that will not be used from the count of its directory.
func (cs *collectionSet) uncount() {
	if cs.arena == nil {
		return
	}
	held := cs.arena.held
	for _, g := range cs.bigs {
		held += g.arena.held
	}
	cs.bytes.Add(-int64(held))
}

// sizeLimit returns the greatest size of a small collection of a type.
func sizeLimit(t Type) int {
	if t.scored() || t == Stream {
		return zsetLimit
	}
	return smallLimit
}

// layoutOf returns the layout of the members of a type.
func layoutOf(t Type) layout {
	if t.scored() {
		return scored
	}
	return plain
}

// makeArena makes the arena of the stripe at its first collection.
func (cs *collectionSet) makeArena() {
	if cs.arena == nil {
		cs.arena = new(arena)
		cs.arena.init(cs.bytes)
	}
}

// create makes an empty collection and returns its id.
func (cs *collectionSet) create(t Type, key string) uint32 {
	if len(key) > MaxName {
		panic("BUG: keydir: key is too long")
	}
	cs.makeArena()
	id := cs.arena.newHandle()
	if smallHeaderBytes+len(key) > sizeLimit(t)/2 {
		cs.setBig(id, cs.newBig(t, key))
		return id
	}
	cs.writeHead(id, t, key, 0, 0)
	return id
}

// writeHead allocates the block of a small collection, with room for a body of that many bytes.
func (cs *collectionSet) writeHead(id uint32, t Type, key string, body int, meta Loc) small {
	b := cs.arena.alloc(id, smallHeaderBytes+len(key)+body)
	b[0] = uint8(t)
	binary.LittleEndian.PutUint16(b[1:], uint16(len(key)))
	copy(b[smallHeaderBytes:], key)
	s := small(b)
	s.setBody(0, 0)
	s.setMeta(meta)
	return s
}

// newBig makes an empty big collection without an id.
func (cs *collectionSet) newBig(t Type, key string) *big {
	g := &big{typ: t, key: key}
	g.arena.init(cs.bytes)
	g.arena.reuse = true
	g.arena.account(bigBytes + len(key))
	switch t {
	case List, Chunks:
		g.list = newList(&g.arena)
	case Stream:
		g.stream = newStream(&g.arena)
	case ZSet, FieldDeadlines, StreamGroups:
		g.scores = &orderedPages{arena: &g.arena, hash: cs.hash, layout: ranked, pending: t == StreamGroups}
		fallthrough
	default:
		g.members = orderedPages{arena: &g.arena, hash: cs.hash, layout: layoutOf(t), pending: t == StreamGroups}
		g.order = insertionOrder{kept: t.hasOrder(), integers: t == Set}
	}
	return g
}

// setBig makes g the collection of an id.
func (cs *collectionSet) setBig(id uint32, g *big) {
	if n := len(cs.freeBigs); n > 0 {
		i := cs.freeBigs[n-1]
		cs.freeBigs = cs.freeBigs[:n-1]
		cs.bigs[i] = g
		cs.arena.setAddress(id, foreign|i)
		return
	}
	cs.bigs = append(cs.bigs, g)
	cs.arena.setAddress(id, foreign|uint32(len(cs.bigs)-1))
}

// big returns the big collection of an id, nil if it is small.
func (cs *collectionSet) big(id uint32) *big {
	if a := cs.arena.address(id); a&foreign != 0 {
		return cs.bigs[a&^foreign]
	}
	return nil
}

func (cs *collectionSet) small(id uint32) small { return small(cs.arena.block(id)) }

// detachBig removes the big collection from its id.
func (cs *collectionSet) detachBig(id uint32) *big {
	i := cs.arena.address(id) &^ foreign
	g := cs.bigs[i]
	cs.bigs[i] = nil
	cs.freeBigs = append(cs.freeBigs, i)
	cs.bytes.Add(-int64(g.arena.held))
	return g
}

// promote makes a small collection big.
func (cs *collectionSet) promote(id uint32) *big {
	s := cs.small(id)
	g := cs.newBig(s.typ(), string(s.key()))
	g.meta = s.meta()
	switch {
	case g.typ.Indexed():
		head := s.head()
		for i := range s.span() {
			if loc := s.locAt(i); loc != 0 {
				g.list.put(head+int64(i), loc)
			}
		}
	case g.typ == Stream:
		if s.n() > 0 {
			g.stream.newPage(s.n(), streamRun(s.body()))
		}
	default:
		cur := cursor{entries: s.entries(cs.hash)}
		if g.typ == Set {
			_, g.order.integers = cur.entries.place(0)
		}
		for e, ok := cur.next(); ok; e, ok = cur.next() {
			name := asString(cur.entries.nameOf(e))
			var score uint64
			if g.typ.scored() {
				score = cur.entries.score(e)
			}
			hash := cur.entries.key(e)
			at, _ := g.members.seek(hash, name)
			if g.order.kept && !g.order.integers {
				g.insertOrder(len(g.order.upper), hash, name)
			}
			g.insert(at, hash, name, cur.entries.loc(e), score)
		}
	}
	cs.arena.release(id)
	cs.setBig(id, g)
	return g
}

// demote makes a big collection small if it has shrunk enough.
func (cs *collectionSet) demote(id uint32, g *big) {
	room := sizeLimit(g.typ)/2 - smallHeaderBytes - len(g.key)
	if g.typ.Indexed() {
		if g.list.inserted != nil || room < 0 || g.list.span() > uint64(room-8)/8 || room < 8 {
			return
		}
	} else if g.members.size > room || g.typ == Stream && g.stream.size() > room {
		return
	}
	cs.detachBig(id)
	if g.typ == Stream {
		cs.writeHead(id, g.typ, g.key, 0, g.meta)
		var list []streamEntry
		if p, ok := g.stream.pages.Min(); ok {
			list = g.stream.block(p).run().appendEntries(nil)
		}
		cs.setRun(id, list)
		return
	}
	if g.typ.Indexed() {
		s := cs.writeHead(id, g.typ, g.key, 8+8*int(g.list.span()), g.meta)
		s.copyList(g.list)
		return
	}
	s := cs.writeHead(id, g.typ, g.key, g.members.size, g.meta)
	body := s[smallHeaderBytes+len(g.key):]
	s.setBody(g.members.n, g.members.size)
	entries := s.entries(cs.hash)
	if g.order.kept {
		var room orderedElems
		g.inOrder(&room)
		off := 0
		for i := range g.members.n {
			name, loc := room.at(i)
			entries.write(off, cs.hash.sumBytes(name), asString(name), loc, 0)
			off += plain.entrySize(len(name))
		}
		return
	}
	used := 0
	for _, group := range g.members.groups {
		for _, r := range group.refs {
			used += copy(body[used:], g.members.entries(r.page).data)
		}
	}
	entries.retag(allHashes)
}

// insert inserts an element into the members at a position, and into the scores. Its place in the order has been kept.
func (g *big) insert(at position, hash uint64, name string, loc Loc, score uint64) {
	g.members.insert(at, hash, name, loc, score)
	if g.scores != nil {
		at, _ = g.scores.seek(score, name)
		g.scores.insert(at, score, name, 0, 0)
	}
}

// small is the block of a small collection.
type small []byte

func (s small) typ() Type   { return Type(s[0]) }
func (s small) keyLen() int { return int(binary.LittleEndian.Uint16(s[1:])) }
func (s small) n() int      { return int(binary.LittleEndian.Uint16(s[3:])) }
func (s small) used() int   { return int(binary.LittleEndian.Uint16(s[5:])) }
func (s small) meta() Loc   { return Loc(binary.LittleEndian.Uint64(s[7:])) }
func (s small) key() []byte { return s[smallHeaderBytes : smallHeaderBytes+s.keyLen()] }
func (s small) body() []byte {
	start := smallHeaderBytes + s.keyLen()
	return s[start : start+s.used()]
}
func (s small) setMeta(l Loc) { binary.LittleEndian.PutUint64(s[7:], uint64(l)) }

func (s small) setBody(n, used int) {
	binary.LittleEndian.PutUint16(s[3:], uint16(n))
	binary.LittleEndian.PutUint16(s[5:], uint16(used))
}

// entries returns the entries of a small collection other than a list.
func (s small) entries(h *hasher) packed {
	return packed{data: s.body(), n: s.n(), layout: layoutOf(s.typ()), tags: allHashes, hash: h}
}

// insertAt makes room for size bytes at an offset of a small collection's body. It reports
// false, and does nothing, if the collection would outgrow its limit.
func (cs *collectionSet) insertAt(id uint32, off, size int) (small, bool) {
	s := cs.small(id)
	used, start := s.used(), smallHeaderBytes+s.keyLen()
	if start+used+size > sizeLimit(s.typ()) {
		return nil, false
	}
	s = small(cs.arena.resize(id, start+used+size))
	openGap(s[start:], off, used, size)
	s.setBody(s.n(), used+size)
	return s, true
}

// removeAt removes size bytes at an offset of a small collection's body.
func (cs *collectionSet) removeAt(id uint32, off, size int) small {
	s := cs.small(id)
	used, start := s.used(), smallHeaderBytes+s.keyLen()
	closeGap(s[start:], off, used, size)
	s.setBody(s.n(), used-size)
	return small(cs.arena.resize(id, start+used-size))
}
