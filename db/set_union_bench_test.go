package db_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// BenchmarkFirstUnion stores the union of two sets of a million members, once in a process: with -benchtime 1x. Its
// metrics are the longest time in which a reader of another key waits, and what the process has grown by two seconds later.
func BenchmarkFirstUnion(b *testing.B) {
	const n = 1_000_000
	s, err := db.Open(b.TempDir(), &db.Options{Sync: db.SyncNone, NoMerge: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	fillTwo(b, s, n)
	before := anonymous(b)
	done, longest := make(chan struct{}), make(chan time.Duration)
	go func() { longest <- longestRead(s, done) }()
	for b.Loop() {
		if _, err := s.Set("union").PutCombined(structures.Union, "0", "1"); err != nil {
			b.Fatal(err)
		}
	}
	close(done)
	b.ReportMetric(float64((<-longest).Microseconds())/1000, "ms/wait")
	time.Sleep(2 * time.Second)
	b.ReportMetric(float64(anonymous(b)-before)/1024, "MB/grown")
}

func fillTwo(b *testing.B, s *db.Store, n int) {
	b.Helper()
	members := make([]string, 1000)
	for set := range 2 {
		for at := set * n; at < (set+1)*n; at += len(members) {
			for i := range members {
				members[i] = fmt.Sprint("member:", at+i)
			}
			if _, err := s.Set(fmt.Sprint(set)).Add(members...); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func longestRead(s *db.Store, done chan struct{}) (longest time.Duration) {
	for {
		begin := time.Now() // what delays the goroutine counts
		select {
		case <-done:
			return longest
		case <-time.After(time.Millisecond):
		}
		s.String("other").Get() // whether it is there is all the same
		longest = max(longest, time.Since(begin)-time.Millisecond)
	}
}

// anonymous is the memory of the process that is not of files, in KiB.
func anonymous(b *testing.B) (kib int) {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Skip(err)
	}
	return kib
}
