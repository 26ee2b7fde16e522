package db_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
)

// TestHalfARestore copies the directory of a store, has both copies make the same steps on other keys, and puts the
// hints, the INDEX and the TTL file of the one into the other, singly and all of a kind. Their segments have the same
// ids, lengths, counts and sequence numbers. Each opens with its own content.
func TestHalfARestore(t *testing.T) {
	seed := chance.Draw(*copiesSeed)
	lives := 60
	if *copiesCount > 0 {
		lives = *copiesCount / 10
	}
	if testing.Short() {
		lives = 10
	}
	exchanged := map[string]int{}
	for life := range lives {
		h := partHistories(t, rand.New(rand.NewPCG(seed, uint64(life))))
		for _, into := range []int{0, 1} {
			mine, theirs := h.files[into], h.files[1-into]
			for _, kind := range []string{"*.hint", bitcask.IndexFile, bitcask.TTLName} {
				for _, names := range mixedNames(mine, kind) {
					mixed := maps.Clone(mine)
					for _, name := range names {
						if b, there := theirs[name]; there && string(b) != string(mine[name]) {
							mixed[name] = b
							exchanged[kind]++
						}
					}
					delete(mixed, bitcask.IndexFile) // else no hint is read
					if kind == bitcask.IndexFile {
						mixed[kind] = theirs[kind]
					}
					what := fmt.Sprintf("life %d, %s: %q of the other one", life, h.steps, names)
					if !verifyMixed(t, what, mixed, h.want[into]) {
						t.Errorf("%s: not opened", what)
					}
				}
			}
		}
		if t.Failed() {
			t.Fatalf("-copies.seed %d", seed)
		}
	}
	t.Logf("%v files exchanged", exchanged)
	if len(exchanged) < 3 {
		t.Error("the histories are no test")
	}
}

// histories are two copies of a store that have parted.
type histories struct {
	steps string
	files [2]crash.State
	want  [2]string
}

func partHistories(t *testing.T, rng *rand.Rand) (h histories) {
	t.Helper()
	base := vfs.NewMem()
	s, err := db.Open("d", stepOptions(base, db.SyncNone))
	must(t, err)
	partStep(t, s, "seal", 0, 0)
	for key := range 4 {
		partStep(t, s, "put", key, 0)
		partStep(t, s, "score", key, 0)
	}
	if rng.IntN(2) == 0 {
		partStep(t, s, "seal", 0, 0)
	}
	must(t, s.Close())
	type step struct {
		what string
		key  int
	}
	var steps []step
	for range 2 + rng.IntN(10) {
		what := []string{"put", "delete", "score", "expire", "seal", "seal", "merge", "same"}[rng.IntN(8)]
		steps = append(steps, step{what, rng.IntN(4)})
	}
	steps = append(steps, step{"seal", 0})
	h.steps = fmt.Sprint(steps)
	for who := range h.files {
		mem := base.Clone()
		s, err := db.Open("d", stepOptions(mem, db.SyncNone))
		must(t, err)
		for _, st := range steps {
			partStep(t, s, st.what, (st.key+who)%4, who)
		}
		waitForHints(t, mem, s)
		m, err := readModel(s)
		must(t, err)
		h.want[who] = m.String()
		must(t, s.Close())
		h.files[who], err = crash.ReadState(mem, "d")
		must(t, err)
		delete(h.files[who], "LOCK")
	}
	return h
}

// partStep does something that takes as many bytes and sequence numbers whatever the key is.
func partStep(t *testing.T, s *db.Store, what string, key, who int) {
	t.Helper()
	name := "k" + strconv.Itoa(key)
	switch what {
	case "put":
		must(t, s.String(name).Put(fmt.Appendf(nil, "by %d", who)))
	case "delete":
		must(t, first(s.Keyspace().Delete(name)))
	case "score":
		must(t, first(s.SortedSet("zset").Add(db.Scored{Member: name, Score: float64(2 + who)})))
	case "expire":
		must(t, first(s.Key(name).ExpireAt(time.UnixMilli(4e12+int64(who)))))
	case "same":
		must(t, s.String("same").Put([]byte(strings.Repeat("the same ", 20))))
	case "seal":
		must(t, s.String("sealed").Put([]byte("by both")))
		must(t, s.Log().Rotate())
	case "merge":
		must(t, mergeEverything(s))
	}
}
