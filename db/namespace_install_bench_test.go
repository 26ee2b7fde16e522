package db_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// BenchmarkInstall: how long it takes to exchange a keyspace for another one with as many keys that has been loaded, and how long
// the slowest GET takes meanwhile and in the two seconds after it.
func BenchmarkInstall(b *testing.B) {
	for _, keys := range []int{100_000, 10_000_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			if testing.Short() && keys > 100_000 {
				b.Skip("it takes 2 GB of memory")
			}
			b.StopTimer()
			var longest time.Duration
			for range b.N {
				longest = max(longest, benchmarkInstall(b, keys))
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-get-ms")
		})
	}
}

// benchmarkInstall is one installation.
func benchmarkInstall(b *testing.B, keys int) (longest time.Duration) {
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	store, err := db.Open(b.TempDir(), &db.Options{Sync: db.SyncNone, NoMerge: true})
	check(err)
	value := []byte(strings.Repeat("v", 32))
	fill := func(shadow bool) {
		for i := 0; i < keys; i += 1000 {
			check(store.Update(func(tx *db.Tx) (err error) {
				if shadow {
					serverside.DB.Apply(tx)
					if tx, err = serverside.DB.Shadow(tx, 0); err != nil {
						return err
					}
				}
				for j := i; j < min(i+1000, keys) && err == nil; j++ {
					err = tx.String(fmt.Sprintf("key:%09d", j)).Put(value)
				}
				return err
			}))
		}
	}
	fill(false)
	check(serverside.DB.SetReplicaOf(store, asReplica, true))
	check(serverside.DB.BeginLoading(store))
	fill(true)
	done, reading := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(reading)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			began := time.Now()
			if _, err := store.String(fmt.Sprintf("key:%09d", i*7919%keys)).Get(); err != nil {
				b.Error(err)
				return
			}
			longest = max(longest, time.Since(began))
			time.Sleep(100 * time.Microsecond)
		}
	}()
	time.Sleep(100 * time.Millisecond)
	b.StartTimer()
	err = serverside.DB.Install(store, nil, originAt(1000))
	b.StopTimer()
	check(err)
	time.Sleep(2 * time.Second)
	close(done)
	<-reading
	check(store.Close())
	return longest
}
