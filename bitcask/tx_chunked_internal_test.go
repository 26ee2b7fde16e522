package bitcask

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// tinyChunks is a store whose transactions keep two records a chunk.
func tinyChunks(t *testing.T) *Store {
	t.Helper()
	s, err := Open("store", seam.With(&Options{}, seam.Options{FS: vfs.NewMem(), NoMapping: true, ChunkShift: 1}))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestSavepointsAcrossChunks: random changes with savepoints, some rolled back, against a model, with chunks of two
// records, in a collection that the transaction makes and in one that was there.
func TestSavepointsAcrossChunks(t *testing.T) {
	for seed := range uint64(60) {
		s := tinyChunks(t)
		there, made := map[string]string{}, map[string]string{}
		commit(t, s, func(tx *Tx) {
			for i := range 5 {
				elem := fmt.Sprint(i)
				putHash(t, tx, "there", elem, "0")
				there[elem] = "0"
			}
		})
		changeAtRandom(t, s, rand.New(rand.NewPCG(seed, 1)), there, made)
		for key, want := range map[string]map[string]string{"there": there, "made": made} {
			if got := hashOf(t, s, key); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %s holds %v, not %v", seed, key, got, want)
			}
		}
	}
}

func changeAtRandom(t *testing.T, s *Store, r *rand.Rand, there, made map[string]string) {
	t.Helper()
	type saved struct {
		at          Savepoint
		there, made map[string]string
	}
	var saves []saved
	commit(t, s, func(tx *Tx) {
		for i := range 60 {
			key, model := "there", there
			if r.IntN(2) == 0 {
				key, model = "made", made
			}
			elem := fmt.Sprint(r.IntN(8))
			switch n := r.IntN(12); {
			case n == 0:
				saves = append(saves, saved{tx.Savepoint(), cloned(there), cloned(made)})
			case n == 1 && len(saves) > 0:
				at := r.IntN(len(saves))
				must(t, tx.RollbackTo(saves[at].at))
				replace(there, saves[at].there)
				replace(made, saves[at].made)
				saves = saves[:at+1]
			case n == 2:
				must(t, second(tx.Drop(0, key)))
				clear(model)
			case n < 6:
				if _, coll, err := tx.Find(0, key); err == nil && coll.Valid() {
					must(t, second(tx.DeleteElem(0, key, coll, elem)))
					delete(model, elem)
				}
			default:
				value := fmt.Sprint(i)
				putHash(t, tx, key, elem, value)
				model[elem] = value
			}
		}
	})
}

func replace(m, by map[string]string) {
	clear(m)
	for k, v := range by {
		m[k] = v
	}
}

func cloned(m map[string]string) map[string]string {
	c := map[string]string{}
	replace(c, m)
	return c
}

func putHash(t *testing.T, tx *Tx, key, elem, value string) {
	t.Helper()
	coll, err := tx.Collection(0, key, keydir.Hash)
	must(t, err)
	must(t, tx.PutElem(0, key, coll, elem, []byte(value)))
}

func commit(t *testing.T, s *Store, fn func(tx *Tx)) {
	t.Helper()
	tx, err := s.BeginAll(true)
	must(t, err)
	defer tx.Recycle()
	fn(tx)
	must(t, second(tx.Commit()))
}

func hashOf(t *testing.T, s *Store, key string) map[string]string {
	t.Helper()
	tx, err := s.BeginAll(false)
	must(t, err)
	defer tx.Recycle()
	found := map[string]string{}
	_, coll, err := tx.Find(0, key)
	must(t, err)
	for i := range 8 {
		elem := fmt.Sprint(i)
		if !coll.Valid() {
			break
		}
		if loc, ok := coll.Get(elem); ok {
			value, err := tx.Value(nil, 0, key, elem, keydir.Hash, loc)
			must(t, err)
			found[elem] = string(value)
		}
	}
	return found
}

// TestRecycleBoundsAll: no list of a transaction, a new one included, keeps the memory of a long transaction.
func TestRecycleBoundsAll(t *testing.T) {
	const n = 40_000
	s := tinyChunks(t)
	tx, err := s.BeginAll(true)
	must(t, err)
	for i := range n {
		name := fmt.Sprint(i)
		putHash(t, tx, name, "field", "value")
		tx.locks.hashes = append(tx.locks.hashes, uint64(i))
	}
	must(t, second(tx.Commit()))
	tx.touched = make([]touchedCollection, 0, n)
	tx.spaces, tx.values = append(tx.spaces, make([]*namespace.Space, n)...), make([][]byte, n)
	tx.order = make([]byte, 1<<20)
	tx.Recycle()
	boundedLists(t, "Tx", reflect.ValueOf(tx).Elem())
	if tx.known != nil {
		t.Error("Tx keeps the map of many touched collections")
	}
}

// boundedLists fails for each list of more than keepHashes elements, or bytes beyond keepBuffer.
func boundedLists(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			boundedLists(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice:
		limit := keepHashes
		if v.Type().Elem().Kind() == reflect.Uint8 {
			limit = keepBuffer
		}
		if v.Cap() > limit {
			t.Errorf("%s keeps %d elements", name, v.Cap())
		}
	case reflect.Map:
		if v.Len() > keepHashes {
			t.Errorf("%s keeps %d elements", name, v.Len())
		}
	}
}
