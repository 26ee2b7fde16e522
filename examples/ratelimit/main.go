// Ratelimit lets each client make so many calls in any stretch of time, and no more.
//
// The moments of a client's calls are the scores of a sorted set. Moments before the window are removed, the rest is
// counted, and the call added, in one commit of one key: two calls at once cannot both be the last that is allowed. The
// set expires when the client has been quiet for a window.
package main

import (
	"errors"
	"fmt"
	"log"
	"strconv"
	"time"

	"github.com/stavedb/stave/db"
)

// A limiter allows Calls in each Window to every client.
type limiter struct {
	store  *db.Store
	calls  int
	window time.Duration
}

// allow reports whether a client may make a call now, and counts it if so.
func (l limiter) allow(client string) (ok bool, err error) {
	key := "calls:" + client
	err = l.store.UpdateKeys([]string{key}, func(tx *db.Tx) error {
		now := time.Now().UnixMicro()
		calls := tx.SortedSet(key)
		if _, err := calls.RemoveRange(db.Scores(0, float64(now-l.window.Microseconds()))); err != nil {
			return err
		}
		n, err := calls.Len()
		if ok = n < l.calls; err != nil || !ok {
			return err
		}
		// The number of the call makes two of the same microsecond differ.
		member := strconv.FormatInt(now, 36) + "-" + strconv.Itoa(n)
		if _, err := calls.Add(db.Scored{Member: member, Score: float64(now)}); err != nil {
			return err
		}
		_, err = tx.Key(key).Expire(l.window)
		return err
	})
	return ok && err == nil, err
}

func run(store *db.Store) error {
	l := limiter{store, 3, time.Hour}
	for i := range 4 {
		ok, err := l.allow("ann")
		if err != nil {
			return err
		}
		fmt.Println("call", i+1, "allowed:", ok)
	}
	return nil
}

func main() {
	store, err := db.OpenMemory(nil) // Calls of a past life hardly matter.
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(store), store.Close()); err != nil {
		log.Fatal(err)
	}
}
