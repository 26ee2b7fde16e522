package structures

import (
	"cmp"
	"slices"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/keydir"
)

// Set is a key that holds a set. Members are in memory, in the order of their
// hashes: nothing that is asked of a set reads the disk, and position i in that
// order is found without a walk, which makes a random member cheap.
type Set struct {
	Txn SetTxn
	Key string
}

func (s Set) open() (keydir.Collection, error) { return open(s.Txn, s.Key, keydir.Set) }

// Add adds members and returns how many of them are new. O(log n) a member.
func (s Set) Add(members []string) (int, error) {
	if len(members) == 0 {
		return 0, nil
	}
	for _, member := range members {
		if err := checkElem(member, nil); err != nil {
			return 0, err
		}
	}
	f, err := create(s.Txn, s.Key, keydir.Set)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, member := range members {
		if _, ok := f.Get(member); ok {
			continue // there is nothing to write
		}
		if err := s.Txn.PutElem(s.Key, f, member, nil); err != nil {
			return n, err
		}
		n++
		s.Txn.Yield()
	}
	if n > 0 {
		s.Txn.Notify(EventSAdd, s.Key)
	}
	return n, nil
}

// Remove removes members and returns how many of them were there. O(log n) a
// member.
func (s Set) Remove(members []string) (int, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return deleteElems(s.Txn, s.Key, f, members, EventSRem)
}

// Has says whether member is in the set. O(log n).
func (s Set) Has(member string) (bool, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return false, err
	}
	_, ok := f.Get(member)
	return ok, nil
}

// Len returns the number of members, 0 if the key does not exist. O(1).
func (s Set) Len() (int, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return f.Len(), nil
}

// Visit calls start, unless it is nil, with the number of members, then visit
// for each until it returns false. The slice is valid during the call only, and
// neither function may change the set. O(n).
func (s Set) Visit(start func(n int), visit func(member []byte) bool) error {
	return visitAll(s.Txn, s.Key, keydir.Set, start, func(member []byte, _ keydir.Loc) bool { return visit(member) })
}

// Scan visits some members from the cursor on and returns the cursor that
// continues, 0 at the end. A member that is there from the start of a scan to
// its end is visited exactly once. The slice is valid during the call only.
// O(o.Count).
func (s Set) Scan(cursor uint64, o ScanOptions, visit func(member []byte)) (next uint64, err error) {
	f, err := s.open()
	if err != nil {
		return 0, err
	}
	return scan(s.Txn, f, cursor, o, func(member []byte, _ keydir.Loc) error {
		visit(member)
		return nil
	})
}

// Pop removes up to n members chosen by random, a source of uniform bits, and
// returns them. O(log n) a member.
func (s Set) Pop(n int, random func() uint64) ([]string, error) {
	if n < 0 {
		return nil, ErrNegative
	}
	f, err := s.open()
	if err != nil || !f.Valid() {
		return nil, err
	}
	members := make([]string, 0, min(n, f.Len()))
	if n >= f.Len() {
		f.Each(func(member []byte, _ keydir.Loc) bool {
			members = append(members, string(member))
			return s.Txn.Step(1) == nil
		})
		if err := s.Txn.Step(0); err != nil {
			return nil, err
		}
		return members, dropAll(s.Txn, s.Key, EventSPop)
	}
	for range n {
		elem, _ := f.At(below(random(), f.Len()))
		member := string(elem)
		members = append(members, member)
		if _, err := s.Txn.DeleteElem(s.Key, f, member); err != nil {
			return nil, err
		}
	}
	if n > 0 {
		s.Txn.Notify(EventSPop, s.Key)
	}
	return members, nil
}

// VisitRandom calls start, unless it is nil, with a number of members, then
// visit with each of them until it returns false: up to n different members
// chosen by random, or -n that may repeat if n is negative. The slice is valid
// during the call only, and neither function may change the set. O(log n) a
// member.
func (s Set) VisitRandom(n int, random func() uint64, start func(n int), visit func(member []byte) bool) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	step := walk(s.Txn)
	visitRandom(f, n, random, start, func(member []byte, _ keydir.Loc) bool { return visit(member) && step() })
	return s.Txn.Step(0)
}

func visitRandom(f keydir.Collection, n int, random func() uint64, start func(n int), visit func(elem []byte, loc keydir.Loc) bool) {
	size := 0
	if f.Valid() {
		size = f.Len()
	}
	count := drawCount(n, size)
	if start != nil {
		start(count)
	}
	switch {
	case count == 0:
	case n < 0:
		for range count {
			if !visit(f.At(below(random(), size))) {
				break
			}
		}
	case count > size/8:
		visitSample(f, count, random, visit)
	default:
		visitFew(f, count, random, visit)
	}
}

// drawCount is how many of size elements are visited: up to n different ones, or -n that may repeat.
func drawCount(n, size int) int {
	count := min(n, size)
	if n < 0 && size > 0 {
		count = -n
	}
	return max(count, 0)
}

// visitSample walks all elements and takes each with the chance that is left for it (Knuth's
// algorithm S), which beats searching for positions when more than a few are wanted.
func visitSample(f keydir.Collection, count int, random func() uint64, visit func(elem []byte, loc keydir.Loc) bool) {
	left := f.Len()
	f.Each(func(elem []byte, loc keydir.Loc) bool {
		take := below(random(), left) < count
		left--
		if !take {
			return true
		}
		count--
		return visit(elem, loc) && count > 0
	})
}

// visitFew draws different positions with one random number each (Floyd's
// sampling algorithm).
func visitFew(f keydir.Collection, count int, random func() uint64, visit func(elem []byte, loc keydir.Loc) bool) {
	drawn := make(map[int]struct{}, count)
	for last := f.Len() - count; last < f.Len(); last++ {
		i := below(random(), last+1)
		if _, ok := drawn[i]; ok {
			i = last
		}
		drawn[i] = struct{}{}
		if !visit(f.At(i)) {
			return
		}
	}
}

// SetOp is a way to combine sets.
type SetOp uint8

// The ways to combine sets. Diff is what the first has and no other has.
const (
	Union SetOp = iota
	Inter
	Diff
)

// Combine calls visit for each member of a combination of the sets at keys,
// each once, until it returns false. No result is built: a member is looked up
// in the other sets instead. The slice is valid during the call only, and visit
// may not change the sets. O(sum of sizes * keys * log n) for Union, O(smallest
// size * keys * log n) for Inter, O(first size * keys * log n) for Diff. Members come in the order of the set that they
// are taken from: the smallest for Inter, the first for Diff; a small union has the order of a set to which the sets were
// added one after the other.
func Combine(t Base, op SetOp, keys []string, visit func(member []byte) bool) error {
	sets, err := openSets(t, keys)
	if err != nil || len(sets) == 0 {
		return err
	}
	step := steps(t, sets)
	switch op {
	case Union:
		sets = slices.DeleteFunc(sets, func(f keydir.Collection) bool { return !f.Valid() })
		total := 0
		for _, f := range sets {
			total += f.Len()
		}
		if total <= orderedUnion {
			visitOrderedUnion(sets, step, visit)
			break
		}
		// The largest set goes first, for the first is looked up nowhere.
		slices.SortStableFunc(sets, func(a, b keydir.Collection) int { return cmp.Compare(b.Len(), a.Len()) })
		visitUnion(sets, step, visit)
	case Inter:
		if slices.ContainsFunc(sets, func(f keydir.Collection) bool { return !f.Valid() }) {
			return nil
		}
		slices.SortStableFunc(sets, func(a, b keydir.Collection) int { return cmp.Compare(a.Len(), b.Len()) })
		sets[0].Each(func(member []byte, _ keydir.Loc) bool {
			return (!inAll(sets[1:], member) || visit(member)) && step()
		})
	case Diff:
		if !sets[0].Valid() {
			return nil
		}
		sets[0].Each(func(member []byte, _ keydir.Loc) bool {
			return (inAny(sets[1:], member) || visit(member)) && step()
		})
	}
	return t.Step(0)
}

// openSets finds the sets at keys; those that do not exist are not valid. Every
// type is checked, also where the result is settled already.
func openSets(t Base, keys []string) ([]keydir.Collection, error) {
	sets := make([]keydir.Collection, len(keys))
	var err error
	for i, key := range keys {
		if sets[i], err = open(t, key, keydir.Set); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// steps returns what is called between two steps of a walk through collections, and says whether to go on: Step, and
// Yield if others cannot move their memory. A step is looked up in each of them. The walk is followed by Step(0), for
// its error.
func steps(t Steps, all []keydir.Collection) func() bool {
	for _, f := range all {
		if f.Valid() && !f.Private() {
			return func() bool { return t.Step(len(all)) == nil }
		}
	}
	return func() bool {
		t.Yield()
		return t.Step(len(all)) == nil
	}
}

// walk is steps for a walk that must not be moved from.
func walk(t Steps) func() bool { return func() bool { return t.Step(1) == nil } }

func visitUnion(sets []keydir.Collection, step func() bool, visit func(member []byte) bool) {
	more := true
	for i := 0; i < len(sets) && more; i++ {
		sets[i].Each(func(member []byte, _ keydir.Loc) bool {
			more = (inAny(sets[:i], member) || visit(member)) && step()
			return more
		})
	}
}

// orderedUnion is the number of members, counted once for each set, up to which a union has an order if it has at most
// the 512 of a set that has one.
const orderedUnion = 4096

// visitOrderedUnion is visitUnion in the order of a set to which the members were added: integers are by value until
// there is something else.
func visitOrderedUnion(sets []keydir.Collection, step func() bool, visit func(member []byte) bool) {
	var members [][]byte
	visitUnion(sets, step, func(member []byte) bool {
		members = append(members, member)
		return true
	})
	value := func(member []byte) int64 {
		n, _ := number.ParseInt(member)
		return n
	}
	integers := slices.IndexFunc(members, func(member []byte) bool {
		_, ok := number.ParseInt(member)
		return !ok
	})
	if integers < 0 {
		integers = len(members)
	}
	slices.SortFunc(members[:integers], func(a, b []byte) int { return cmp.Compare(value(a), value(b)) })
	for _, member := range members {
		if !visit(member) {
			return
		}
	}
}

func inAny(sets []keydir.Collection, member []byte) bool {
	return slices.ContainsFunc(sets, func(f keydir.Collection) bool { return has(f, member) })
}

func inAll(sets []keydir.Collection, member []byte) bool {
	return !slices.ContainsFunc(sets, func(f keydir.Collection) bool { return !has(f, member) })
}

func has(f keydir.Collection, member []byte) bool {
	if !f.Valid() {
		return false
	}
	_, ok := f.Get(text(member))
	return ok
}
