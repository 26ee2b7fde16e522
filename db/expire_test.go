package db_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
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
