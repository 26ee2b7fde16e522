package keydir_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// TestRollbackAgainstCopies: when changes of a hash or set are rolled back, last first, its elements are in the order
// that they had before each of them.
func TestRollbackAgainstCopies(t *testing.T) {
	for _, typ := range []keydir.Type{keydir.Hash, keydir.Set} {
		for _, size := range []int{5, 100, 300, 530, 1200} {
			t.Run(fmt.Sprint(typ, size), func(t *testing.T) {
				r := chance.Rand(t)
				d := keydir.NewDirectory(keydir.Seed{r.Uint64(), 2})
				f := d.NewCollection(7, typ, "key")
				name := func() string {
					switch k := r.IntN(size); {
					case r.IntN(300) == 0:
						return strings.Repeat("long", 3000+r.IntN(9000)) + strconv.Itoa(k)
					case r.IntN(size) == 0:
						return fmt.Sprint("name", k%3)
					default:
						return strconv.Itoa(k * 7919 % 1_000_003)
					}
				}
				type change struct {
					before []string
					undo   func()
				}
				for range rounds(20) {
					var done []change
					grow := r.IntN(5) // how often of 5 times an element is added
					for range r.IntN(size) {
						c := change{before: orderOf(f), undo: func() {}}
						if name := name(); r.IntN(5) < grow {
							old, existed, place := f.PutNoted(name, keydir.Loc(r.Uint64()|1))
							if c.undo = func() { f.RollbackPut(name, place) }; existed {
								c.undo = func() { f.Put(name, old) }
							}
						} else if len(c.before) > 0 {
							name := c.before[r.IntN(len(c.before))]
							old, _, place := f.DeleteNoted(name)
							c.undo = func() { f.RollbackDelete(name, old, place) }
						}
						done = append(done, c)
					}
					check(t, d)
					keep := 0
					if r.IntN(2) == 0 {
						keep = r.IntN(len(done) + 1)
					}
					for _, c := range slices.Backward(done[keep:]) {
						c.undo()
						if have := orderOf(f); !slices.Equal(have, c.before) {
							t.Fatalf("order of %d: %.2000q, want %d: %.2000q", len(have), have, len(c.before), c.before)
						}
					}
					check(t, d)
				}
			})
		}
	}
}
