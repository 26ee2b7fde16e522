package keydir

import (
	"encoding/binary"
	"sync/atomic"
)

// collectionSet holds the collections of one region. A collection is known by its id, a handle of the
// arena. While it is small it is the handle's block, like this:
//
//	| type 1 | key length 2 | entries 2 | body bytes 2 | meta 8 | key | body |
//
// The body is a run of entries or, of a list or a string in chunks, an index and the locations from that index on.
// A collection that outgrows smallLimit becomes a big, and small again when it has shrunk to
// half of that; its id stays.
type collectionSet struct {
	hash  *hasher
	arena *arena // nil until the first collection
	bigs  []*big
	idle  []uint32 // indexes in bigs that are nil
	bytes *atomic.Int64
	most  *int // Directory.arenaMost
}

const (
	smallHead = 15 // bytes before the key

	// smallLimit bounds the bytes of a small collection; zsetLimit those of one with
	// scores, which is sorted by score anew whenever that order is asked for.
	smallLimit = 2048 - headerBytes
	zsetLimit  = 1024 - headerBytes
)

// big is a collection of several pages. Its memory is its own, so that to
// drop it is to forget it.
type big struct {
	typ     Type
	meta    Loc
	key     string
	arena   arena
	members index  // by hash; of all but what is indexed
	scores  *index // by score, of collections with scores
	list    *list  // of what is indexed
}

func (s *collectionSet) init(d *Directory) { s.hash, s.bytes, s.most = &d.hash, &d.bytes, &d.arenaMost }

func sizeLimit(t Type) int {
	if t.scored() {
		return zsetLimit
	}
	return smallLimit
}

func shapeOf(t Type) shape {
	if t.scored() {
		return scored
	}
	return plain
}

func (s *collectionSet) makeArena() {
	if s.arena == nil {
		s.arena = new(arena)
		s.arena.init(s.bytes)
	}
}

// create makes an empty collection and returns its id.
func (s *collectionSet) create(t Type, key string) uint32 {
	if len(key) > MaxName {
		panic("BUG: keydir: key is too long")
	}
	s.makeArena()
	id := s.arena.newHandle()
	if smallHead+len(key) > sizeLimit(t)/2 {
		s.setBig(id, s.newBig(t, key))
		return id
	}
	s.writeHead(id, t, key, 0, 0)
	return id
}

// writeHead gives a small collection its block, with room for a body of that many bytes.
func (s *collectionSet) writeHead(id uint32, t Type, key string, body int, meta Loc) small {
	b := s.arena.alloc(id, smallHead+len(key)+body)
	b[0] = uint8(t)
	binary.LittleEndian.PutUint16(b[1:], uint16(len(key)))
	copy(b[smallHead:], key)
	f := small(b)
	f.setBody(0, 0)
	f.setMeta(meta)
	return f
}

func (s *collectionSet) newBig(t Type, key string) *big {
	g := &big{typ: t, key: key}
	g.arena.init(s.bytes)
	g.arena.reuse = true
	g.arena.account(bigBytes + len(key))
	switch t {
	case List, Chunks:
		g.list = newList(&g.arena)
	case ZSet, FieldDeadlines:
		g.scores = &index{arena: &g.arena, hash: s.hash, shape: ranked}
		fallthrough
	default:
		g.members = index{arena: &g.arena, hash: s.hash, shape: shapeOf(t)}
	}
	return g
}

// setBig makes g what the id stands for.
func (s *collectionSet) setBig(id uint32, g *big) {
	if n := len(s.idle); n > 0 {
		i := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.bigs[i] = g
		s.arena.setAddress(id, foreign|i)
		return
	}
	s.bigs = append(s.bigs, g)
	s.arena.setAddress(id, foreign|uint32(len(s.bigs)-1))
}

// big returns the big collection of an id, nil if it is small.
func (s *collectionSet) big(id uint32) *big {
	if a := s.arena.address(id); a&foreign != 0 {
		return s.bigs[a&^foreign]
	}
	return nil
}

func (s *collectionSet) small(id uint32) small { return small(s.arena.block(id)) }

// clear takes a big collection from its id.
func (s *collectionSet) clear(id uint32) *big {
	i := s.arena.address(id) &^ foreign
	g := s.bigs[i]
	s.bigs[i] = nil
	s.idle = append(s.idle, i)
	s.bytes.Add(-int64(g.arena.held))
	return g
}

// promote makes a small collection big.
func (s *collectionSet) promote(id uint32) *big {
	f := s.small(id)
	g := s.newBig(f.typ(), string(f.key()))
	g.meta = f.meta()
	if g.typ.Indexed() {
		head := f.head()
		for i := range f.span() {
			if loc := f.locAt(i); loc != 0 {
				g.list.put(head+int64(i), loc)
			}
		}
	} else {
		c := cursor{run: f.run(s.hash)}
		for e, ok := c.next(); ok; e, ok = c.next() {
			name := view(c.run.nameOf(e))
			var score uint64
			if g.typ.scored() {
				score = c.run.score(e)
			}
			hash := c.run.key(e)
			at, _ := g.members.seek(hash, name)
			g.insert(at, hash, name, c.run.loc(e), score)
		}
	}
	s.arena.release(id)
	s.setBig(id, g)
	return g
}

// demote makes a big collection small if it has shrunk enough.
func (s *collectionSet) demote(id uint32, g *big) {
	room := sizeLimit(g.typ)/2 - smallHead - len(g.key)
	if g.typ.Indexed() {
		if room < 0 || g.list.span() > uint64(room-8)/8 || room < 8 {
			return
		}
	} else if g.members.size > room {
		return
	}
	s.clear(id)
	if g.typ.Indexed() {
		f := s.writeHead(id, g.typ, g.key, 8+8*int(g.list.span()), g.meta)
		f.copyList(g.list)
		return
	}
	f := s.writeHead(id, g.typ, g.key, g.members.size, g.meta)
	body := f[smallHead+len(g.key):]
	used := 0
	for _, group := range g.members.groups {
		for _, r := range group.refs {
			used += copy(body[used:], g.members.run(r.page).data)
		}
	}
	f.setBody(g.members.n, used)
	run := f.run(s.hash)
	run.retag(whole)
}

// insert puts an element where it belongs among the members, and where its score says.
func (g *big) insert(at spot, hash uint64, name string, loc Loc, score uint64) {
	g.members.insert(at, hash, name, loc, score)
	if g.scores != nil {
		at, _ = g.scores.seek(score, name)
		g.scores.insert(at, score, name, 0, 0)
	}
}

// small is the block of a small collection.
type small []byte

func (f small) typ() Type     { return Type(f[0]) }
func (f small) keyLen() int   { return int(binary.LittleEndian.Uint16(f[1:])) }
func (f small) n() int        { return int(binary.LittleEndian.Uint16(f[3:])) }
func (f small) used() int     { return int(binary.LittleEndian.Uint16(f[5:])) }
func (f small) meta() Loc     { return Loc(binary.LittleEndian.Uint64(f[7:])) }
func (f small) key() []byte   { return f[smallHead : smallHead+f.keyLen()] }
func (f small) body() []byte  { start := smallHead + f.keyLen(); return f[start : start+f.used()] }
func (f small) setMeta(l Loc) { binary.LittleEndian.PutUint64(f[7:], uint64(l)) }

func (f small) setBody(n, used int) {
	binary.LittleEndian.PutUint16(f[3:], uint16(n))
	binary.LittleEndian.PutUint16(f[5:], uint16(used))
}

// run returns the entries of a small collection other than a list.
func (f small) run(h *hasher) run {
	return run{data: f.body(), n: f.n(), shape: shapeOf(f.typ()), window: whole, hash: h}
}

// insertAt makes room for size bytes at an offset of a small collection's body. It reports
// false, and does nothing, if the collection would outgrow its limit.
func (s *collectionSet) insertAt(id uint32, off, size int) (small, bool) {
	f := s.small(id)
	used, start := f.used(), smallHead+f.keyLen()
	if start+used+size > sizeLimit(f.typ()) {
		return nil, false
	}
	f = small(s.arena.resize(id, start+used+size))
	openGap(f[start:], off, used, size)
	f.setBody(f.n(), used+size)
	return f, true
}

// removeAt takes size bytes at an offset out of a small collection's body.
func (s *collectionSet) removeAt(id uint32, off, size int) small {
	f := s.small(id)
	used, start := f.used(), smallHead+f.keyLen()
	closeGap(f[start:], off, used, size)
	f.setBody(f.n(), used-size)
	return small(s.arena.resize(id, start+used-size))
}
