package db_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestExpiryKeepsUp: keys that are due at one instant are gone soon. A cycle of a thousand keys each tenth of a second
// would take ten seconds for them. In a bubble of synctest work takes no time, so what is measured are the rests
// between runs.
func TestExpiryKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 100_000
		s := openMemory(t)
		due := time.Now().Add(time.Minute)
		must(t, s.Update(func(tx *db.Tx) error {
			for i := range keys {
				must(t, tx.String(strconv.Itoa(i)).Put(nil, db.ExpireAt(due)))
			}
			return nil
		}))
		time.Sleep(59 * time.Second)
		equal(t, "keys before the deadline", s.Len(), keys)
		time.Sleep(2 * time.Second)
		equal(t, "keys a second after the deadline", s.Len(), 0)
	})
}

// TestIdleCycleRests: a cycle that is to run once an hour does not run each second, only because nothing is due.
func TestIdleCycleRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := db.Open("store", seam.With(&db.Options{NoMerge: true, ExpireEvery: time.Hour}, seam.Options{FS: vfs.NewMem()}))
		must(t, err)
		time.Sleep(90 * time.Minute)
		must(t, s.String("k").Put(nil, db.TTL(time.Minute)))
		time.Sleep(20 * time.Minute)
		equal(t, "keys before the next run", s.Stats().Expired, 0)
		time.Sleep(20 * time.Minute)
		equal(t, "keys after it", s.Stats().Expired, 1)
		must(t, s.Close())
	})
}

// TestIdleCycleWakes: the cycle sleeps while nothing is due, and what is set then is deleted in time all the same: keys, fields, a
// deadline that moves to an earlier moment, one that is moved while the cycle sleeps, and memory of what is deleted.
func TestIdleCycleWakes(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, s *db.Store, ttl time.Duration){
		"key": func(t *testing.T, s *db.Store, ttl time.Duration) { must(t, s.String("k").Put(nil, db.TTL(ttl))) },
		"moved": func(t *testing.T, s *db.Store, ttl time.Duration) {
			must(t, s.String("k").Put(nil, db.TTL(time.Hour)))
			time.Sleep(3 * time.Second)
			_, err := s.Key("k").Expire(ttl)
			must(t, err)
		},
		"field": func(t *testing.T, s *db.Store, ttl time.Duration) {
			_, err := s.Hash("k").Put("f", nil)
			must(t, err)
			_, err = s.Hash("k").ExpireFields(ttl, []string{"f"})
			must(t, err)
		},
		"other namespace": func(t *testing.T, s *db.Store, ttl time.Duration) {
			other, err := s.Use(3)
			must(t, err)
			must(t, other.String("k").Put(nil, db.TTL(ttl)))
		},
	} {
		for after := 2900 * time.Millisecond; after < 4100*time.Millisecond; after += 50 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := openMemory(t)
				time.Sleep(after)
				set(t, s, 20*time.Millisecond)
				time.Sleep(130 * time.Millisecond)
				synctest.Wait()
				if st := s.Stats(); st.Expired+st.ExpiredFields == 0 {
					t.Errorf("%s, set %v after Open for 20 ms: not deleted after 130", name, after)
				}
			})
		}
	}
}
