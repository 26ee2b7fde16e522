package db_test

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/merge"
)

var (
	archiveLoad    = flag.Duration("archive.load", 3*time.Second, "how long a store is written to whose moments are restored")
	archiveMoments = flag.Int("archive.moments", 20, "how many of them")
)

const (
	loadWriters = 6
	loadKeys    = 60 // of a writer
)

// loadWriter makes commits of two records: its number, and a key that says it, too. So a state is known by the numbers of
// all writers, and the sequence number by their sum.
type loadWriter struct{ begun, acknowledged atomic.Int64 }

func loadKey(w, n int) string { return fmt.Sprintf("w%d:%d", w, n%loadKeys) }

func loadValue(w, n int) string { return fmt.Sprint(n, strings.Repeat("-", (n*7919+w*104729)%2000)) }

func (lw *loadWriter) run(s *db.Store, w int, stop <-chan struct{}) error {
	for n := 1; ; n++ {
		select {
		case <-stop:
			return nil
		case <-time.After(2 * time.Millisecond):
		}
		lw.begun.Store(int64(n))
		err := s.Update(func(tx *db.Tx) error {
			_, err := tx.String(fmt.Sprint("n", w)).Incr(1)
			return errors.Join(err, tx.String(loadKey(w, n)).Put([]byte(loadValue(w, n))))
		})
		if err != nil {
			return err
		}
		lw.acknowledged.Store(int64(n))
	}
}

// loadSample is how far the writers were at a time.
type loadSample struct {
	at                  time.Time
	acknowledged, begun [loadWriters]int64
}

// wants compares the state of a restored moment with the sample: what was acknowledged a second before is in it, and nothing
// that began a second after.
func (sample *loadSample) wants(t *testing.T, moment time.Time, numbers [loadWriters]int64) {
	t.Helper()
	before, after := sample.at.Before(moment.Add(-time.Second)), sample.at.After(moment.Add(time.Second))
	for w, n := range numbers {
		if before && sample.acknowledged[w] > n || after && sample.begun[w] < n {
			t.Fatalf("the moment of %v has %d commits of writer %d; at %v %d were acknowledged and %d begun", moment, n, w, sample.at, sample.acknowledged[w], sample.begun[w])
		}
	}
}

// stateOfLoad compares a restored store with what the writers had done: after exactly so many records each writer's keys are those
// of its number.
func stateOfLoad(t *testing.T, s *db.Store, sequence uint64) (numbers [loadWriters]int64) {
	t.Helper()
	sum, keys := uint64(0), 0
	for w := range loadWriters {
		text, err := s.String(fmt.Sprint("n", w)).Get()
		if errors.Is(err, db.ErrNotFound) {
			continue
		}
		must(t, err)
		var n int
		_, err = fmt.Sscan(string(text), &n)
		must(t, err)
		for i := max(1, n-loadKeys+1); i <= n; i++ {
			if got, err := s.String(loadKey(w, i)).Get(); err != nil || string(got) != loadValue(w, i) {
				t.Fatalf("sequence %d: writer %d is at %d, and %s is %.20q, %v", sequence, w, n, loadKey(w, i), got, err)
			}
		}
		sum, keys, numbers[w] = sum+2*uint64(n), keys+1+min(n, loadKeys), int64(n)
	}
	if sum != sequence || s.Stats().Keys != keys {
		t.Fatalf("sequence %d: the writers had made %d records, and of %d keys there are %d", sequence, sum, keys, s.Stats().Keys)
	}
	return numbers
}

// TestRestoreWithinALoad: while several writers write, and merges and bases come and go, and afterwards, a store is restored to random
// moments. Each has exactly the commits up to it: by number, by time, and what was acknowledged a second before, and nothing
// that began a second after. For how long is a flag.
func TestRestoreWithinALoad(t *testing.T) {
	r, parent := chance.Rand(t), t.TempDir()
	to := ok[*archive.Directory](t)(archive.OpenDirectory(filepath.Join(parent, "archive")))
	every := min(time.Second, *archiveLoad/100)
	s := ok[*db.Store](t)(db.Open(filepath.Join(parent, "store"), &db.Options{
		SegmentSize: 1 << 20, SyncEvery: every, Merge: merge.Policy{BytesPerSecond: -1},
		Archive: &archive.Options{To: to, Every: every, Keep: max(time.Minute, 2**archiveLoad)},
	}))
	var writers [loadWriters]loadWriter
	var samples []loadSample
	stop := make(chan struct{})
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			if err := writers[w].run(s, w, stop); err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	work.Go(func() {
		for {
			sample := loadSample{}
			for w := range writers {
				sample.acknowledged[w] = writers[w].acknowledged.Load()
			}
			sample.at = time.Now()
			for w := range writers {
				sample.begun[w] = writers[w].begun.Load()
			}
			samples = append(samples, sample)
			select {
			case <-stop:
				return
			case <-time.After(every / 2):
			}
		}
	})
	for deadline := time.Now().Add(time.Minute); s.Stats().Archive.Bases == 0; time.Sleep(every) { // it never has all while there are writers
		if time.Now().After(deadline) {
			t.Fatalf("no base: %+v", s.Stats().Archive)
		}
	}
	restored := 0
	moment := func(t *testing.T) (archive.Restored, [loadWriters]int64) {
		t.Helper()
		spans := ok[[]*archive.Span](t)(archive.Spans(t.Context(), to))
		for tries := 0; (len(spans) != 1 || spans[0].Last.Sequence == 0) && tries < 100; tries++ { // a base may be there before the log that reaches it, or any commit
			time.Sleep(50 * time.Millisecond)
			spans = ok[[]*archive.Span](t)(archive.Spans(t.Context(), to))
		}
		equal(t, "spans", len(spans), 1)
		first, last := spans[0].First, spans[0].Last
		target := archive.Target{Sequence: max(1, first.Sequence) + r.Uint64N(last.Sequence-max(1, first.Sequence)+1)}
		if r.IntN(2) == 0 {
			target = archive.Target{Time: first.Time.Add(time.Duration(r.Int64N(int64(last.Time.Sub(first.Time)) + 1)))}
		}
		got, made := restoredTo(t, to, target)
		if target.Sequence > 0 && (made.Sequence > target.Sequence || made.Sequence+2 <= target.Sequence) || target.Sequence == 0 && made.Time.After(target.Time) {
			t.Errorf("%v: restored sequence %d, of %v", target, made.Sequence, made.Time)
		}
		restored++
		return made, stateOfLoad(t, got, made.Sequence)
	}
	for begun := time.Now(); time.Since(begun) < *archiveLoad; time.Sleep(*archiveLoad / 40) {
		t.Run("meanwhile", func(t *testing.T) { moment(t) })
	}
	close(stop)
	work.Wait()
	waitArchived(t, s)
	st := s.Stats()
	for range *archiveMoments {
		t.Run("afterwards", func(t *testing.T) {
			made, numbers := moment(t)
			for _, sample := range samples {
				sample.wants(t, made.Time, numbers)
			}
		})
	}
	must(t, s.Close())
	if st.Archive.Gaps > 0 {
		t.Errorf("%d gaps", st.Archive.Gaps)
	}
	t.Logf("%d records, %d merges, %d gaps; %d moments restored", st.Sequence, st.Merge.Merges, st.Archive.Gaps, restored)
}
