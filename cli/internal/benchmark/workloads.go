package benchmark

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/db"
)

// The workloads. Keys are scattered, not counted up: a store that gets them in
// order would be flattered. Names are made by hand, without fmt, because what
// takes longer than the store would be measured in its place.

// A Workload is one kind of operation, measured alone.
type Workload struct {
	Name  string
	about string
	// load makes the entries from to to-1 before anything is measured; nil: an
	// empty store.
	load func(r *Runner, from, to int) error
	// operation makes the function that one thread calls with the numbers of
	// its operations.
	operation func(r *Runner) func(i int) error
}

// workloads are in the order in which they run.
var workloads = []Workload{
	{"put", "SET of a new key", nil, opPut},
	{"overwrite", "SET of a key that is there", loadStrings, opOverwrite},
	{"get", "GET of a key that is there", loadStrings, opGet},
	{"miss", "GET of a key that is not", loadStrings, opMiss},
	{"mixed", "SET and GET in turn, of keys that are there", loadStrings, opMixed},
	{"batch", "MSET of 100 new keys, N / 100 times", nil, opBatch},
	{"hash", "HSET of a new field, hashes of 10", nil, opHash},
	{"set", "SADD of a new member to one set", nil, opSet},
	{"zset", "ZADD of a new member to one sorted set", nil, opSortedSet},
	{"rank", "ZRANK in a sorted set of N members", loadSortedSet, opRank},
	{"list", "RPUSH and LPOP in turn", nil, opList},
}

// operations is how often a workload's operation runs.
func (r *Runner) operations(w Workload) int {
	if w.Name == "batch" {
		return max(r.o.Entries/batchSize, 1)
	}
	return r.o.Entries
}

// Named returns the workloads of a list of names with commas between, or all if it is empty. An error names the first
// that is none.
func Named(list string) (chosen []Workload, err error) {
	if list == "" {
		return workloads, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(workloads, func(w Workload) bool { return w.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("no workload %q", name)
		}
		chosen = append(chosen, workloads[i])
	}
	return chosen, nil
}

// Describe lists the workloads, a line each.
func Describe() string {
	var b strings.Builder
	for _, w := range workloads {
		fmt.Fprintf(&b, "    %-10s %s\n", w.Name, w.about)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// scatter is a one-to-one map of 64-bit numbers that leaves no order
// (SplitMix64's).
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// key is the key of a number: 16 bytes.
func key(i int) string { return hexName("", scatter(uint64(i))) }

// missingKey is 16 bytes long too, and never one of key's.
func missingKey(i int) string { return hexName("-", scatter(uint64(i))>>4) }

// name is the name of a field or a member: 10 bytes. Below 2^32 they all
// differ.
func name(i int) string { return hexName("m:", uint64(uint32(i)*0x9E3779B1)) }

// hexName writes a number after a prefix, 16 bytes in all or 10 if the prefix
// is "m:". It is written out because what takes longer than the store would be
// measured instead of it.
func hexName(prefix string, x uint64) string {
	const digits = "0123456789abcdef"
	var buf [16]byte
	n := len(buf)
	if prefix == "m:" {
		n = 10
	}
	for at := n - 1; at >= len(prefix); at-- {
		buf[at] = digits[x&15]
		x >>= 4
	}
	copy(buf[:], prefix)
	return string(buf[:n])
}

// loadStrings puts the keys that get, overwrite and mixed work on.
func loadStrings(r *Runner, from, to int) error {
	pairs := make([]db.Pair, 0, to-from)
	for i := from; i < to; i++ {
		pairs = append(pairs, db.Pair{Key: key(i), Value: r.value})
	}
	return r.store.Keyspace().Put(pairs...)
}

// loadSortedSet fills the one sorted set in which rank looks.
func loadSortedSet(r *Runner, from, to int) error {
	members := make([]db.Scored, 0, to-from)
	for i := from; i < to; i++ {
		members = append(members, scored(i))
	}
	_, err := r.store.SortedSet("zset").Add(members...)
	return err
}

// scored is the member of a number, with a score in no order of the
// numbers: members that come sorted would all be added at the end.
func scored(i int) db.Scored {
	return db.Scored{Member: name(i), Score: float64(scatter(uint64(i)) >> 12)}
}

// random is the number of some entry that is there.
func (r *Runner) random(i int) int { return int(scatter(uint64(i)+1<<40) % uint64(r.o.Entries)) }

// opPut puts new keys: the index grows with each.
func opPut(r *Runner) func(i int) error {
	return func(i int) error { return r.store.String(key(i)).Put(r.value) }
}

// opOverwrite makes the record before it garbage with each put. Merges are off, so their cost is
// not in it.
func opOverwrite(r *Runner) func(i int) error {
	return func(i int) error { return r.store.String(key(r.random(i))).Put(r.value) }
}

// opGet checks the length of what it gets: a benchmark of reads that find
// nothing is soon written.
func opGet(r *Runner) func(i int) error {
	var dst []byte
	return func(i int) (err error) {
		dst, err = r.store.String(key(r.random(i))).AppendTo(dst[:0])
		if err == nil && len(dst) != len(r.value) {
			err = fmt.Errorf("a value of %d bytes came back with %d", len(r.value), len(dst))
		}
		return err
	}
}

// opMiss gets keys that are not there, which needs no disk.
func opMiss(r *Runner) func(i int) error {
	return func(i int) error {
		_, err := r.store.String(missingKey(i)).AppendTo(nil)
		if err == db.ErrNotFound {
			return nil
		}
		return fmt.Errorf("a key that was never put: %w", err)
	}
}

// opMixed writes with half of its operations, so it shows what reads cost while the log grows.
func opMixed(r *Runner) func(i int) error {
	put, get := opOverwrite(r), opGet(r)
	return func(i int) error {
		if i%2 == 0 {
			return put(i)
		}
		return get(i)
	}
}

// batchSize is how many keys opBatch puts at once.
const batchSize = 100

// opBatch puts many keys in one commit, and so in one write.
func opBatch(r *Runner) func(i int) error {
	pairs := make([]db.Pair, batchSize)
	return func(i int) error {
		for j := range pairs {
			pairs[j] = db.Pair{Key: key(i*batchSize + j), Value: r.value}
		}
		return r.store.Keyspace().Put(pairs...)
	}
}

// opHash puts ten fields in a row into one hash, so a tenth of the operations makes a key.
func opHash(r *Runner) func(i int) error {
	return func(i int) error { return errOf(r.store.Hash(key(i/10)).Put(name(i%10), r.value)) }
}

// opSet adds all members to one set: its size grows to N, and the cost of adding must not.
func opSet(r *Runner) func(i int) error {
	return func(i int) error { return errOf(r.store.Set("set").Add(name(i))) }
}

// opSortedSet is opSet with a second order to keep.
func opSortedSet(r *Runner) func(i int) error {
	return func(i int) error { return errOf(r.store.SortedSet("zset").Add(scored(i))) }
}

// opRank finds the position of a member among all, which a textbook sorted set
// counts out.
func opRank(r *Runner) func(i int) error {
	return func(i int) error { return errOf(r.store.SortedSet("zset").Rank(name(r.random(i)))) }
}

// opList pushes numbers, so that an element is 8 bytes long, whatever --size.
func opList(r *Runner) func(i int) error {
	list := r.store.List("list")
	return func(i int) error {
		if i%2 == 0 {
			_, err := list.PushBack(binary.LittleEndian.AppendUint64(nil, uint64(i)))
			return err
		}
		_, err := list.PopFront()
		if err == db.ErrNotFound { // another thread was faster
			return nil
		}
		return err
	}
}

// errOf is the error of a call whose result is of no interest here.
func errOf[T any](_ T, err error) error { return err }
