package tracking

import (
	"hash/maphash"
	"maps"
	"slices"
)

// prefixIndex finds who follows a prefix of a key, in the time that its bytes take and that of one look-up for each length that
// prefixes have. Its zero value is empty; the mutex of the table guards it.
type prefixIndex struct {
	seed    maphash.Seed
	byHash  map[uint64][]*followed
	count   int
	ofLen   map[int]int // how many prefixes have a length
	lengths []int       // those lengths, ascending
}

// followed is a prefix, and the clients that follow it.
type followed struct {
	prefix  string
	clients map[*Client]struct{}
}

// add makes a client follow prefixes.
func (x *prefixIndex) add(c *Client, prefixes []string) {
	if x.byHash == nil {
		*x = prefixIndex{seed: maphash.MakeSeed(), byHash: map[uint64][]*followed{}, ofLen: map[int]int{}}
	}
	for _, prefix := range prefixes {
		hash, f := x.find(prefix)
		if f == nil {
			f = &followed{prefix, make(map[*Client]struct{})}
			x.byHash[hash] = append(x.byHash[hash], f)
			x.ofLen[len(prefix)]++
			x.count++
		}
		f.clients[c] = struct{}{}
	}
	x.measure()
}

// remove is its inverse.
func (x *prefixIndex) remove(c *Client, prefixes []string) {
	for _, prefix := range prefixes {
		hash, f := x.find(prefix)
		if delete(f.clients, c); len(f.clients) > 0 {
			continue
		}
		others := slices.DeleteFunc(x.byHash[hash], func(other *followed) bool { return other == f })
		if x.byHash[hash] = others; len(others) == 0 {
			delete(x.byHash, hash)
		}
		if x.ofLen[len(prefix)]--; x.ofLen[len(prefix)] == 0 {
			delete(x.ofLen, len(prefix))
		}
		x.count--
	}
	x.measure()
}

func (x *prefixIndex) find(prefix string) (hash uint64, f *followed) {
	hash = maphash.String(x.seed, prefix)
	return hash, of(x.byHash[hash], prefix)
}

// of returns which of those with one hash is a prefix; nil: none.
func of(list []*followed, prefix string) *followed {
	if i := slices.IndexFunc(list, func(f *followed) bool { return f.prefix == prefix }); i >= 0 {
		return list[i]
	}
	return nil
}

// measure notes which lengths there are. One that has gone, and another that has come, are not noted in one call.
func (x *prefixIndex) measure() {
	if len(x.lengths) != len(x.ofLen) {
		x.lengths = slices.Sorted(maps.Keys(x.ofLen))
	}
}

// each calls fn with what is followed and a prefix of the key, the shortest first.
func (x *prefixIndex) each(key string, fn func(*followed)) {
	var h maphash.Hash
	h.SetSeed(x.seed)
	done := 0
	for _, n := range x.lengths {
		if n > len(key) {
			return
		}
		h.WriteString(key[done:n])
		done = n
		if f := of(x.byHash[h.Sum64()], key[:n]); f != nil {
			fn(f)
		}
	}
}
