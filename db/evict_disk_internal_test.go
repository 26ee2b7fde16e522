package db

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestEvictDiskGivesHope: a write that finds the directory full after evictions waits for the merges that they make possible,
// though those before have found nothing.
func TestEvictDiskGivesHope(t *testing.T) {
	const bound = 16 << 20
	s, err := Open(t.TempDir(), &Options{Sync: SyncNone}) // no bound yet: nothing runs in the background for it
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing depends on it
	for i := range 1200 {
		if err := s.String(fmt.Sprint(i)).Put(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	s.base.SetBound(bound, false)
	s.measureBound()
	s.disk.vain.Store(mostVain)
	if s.isHopeful() {
		t.Fatal("there is hope before anything is evicted")
	}
	rule := evictRules[EvictAllKeysLRU]
	rule.disk = bound
	s.evictor.rule.Store(&rule)
	for range 1000 {
		s.disk.evicts.Store(s.evictForDisk())
		if s.base.LiveExcess() <= 0 {
			break
		}
	}
	s.disk.evicts.Store(s.evictForDisk())
	if s.disk.evicts.Load() || s.Stats().Evicted == 0 {
		t.Fatalf("%d keys are evicted, %d bytes are still too many", s.Stats().Evicted, s.base.LiveExcess())
	}
	if !s.isHopeful() {
		t.Error("there is no hope after evictions")
	}
}

// TestEvictDiskGivesHopeAtOnce: the same after another policy has been set, before anything is evicted.
func TestEvictDiskGivesHopeAtOnce(t *testing.T) {
	const bound = 16 << 20
	s, err := Open(t.TempDir(), &Options{Sync: SyncNone, Evict: Evict{Disk: bound}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing depends on it
	for i := 0; ; i++ {
		if err := s.String(fmt.Sprint(i)).Put(make([]byte, 10_000)); errors.Is(err, ErrBound) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for begin := time.Now(); s.isHopeful(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("there is hope, and no garbage")
		}
	}
	if err := s.SetEvict(Evict{Policy: EvictAllKeysLRU, Disk: bound}); err != nil {
		t.Fatal(err)
	}
	if !s.isHopeful() {
		t.Error("there is no hope")
	}
	if err := s.String("new").Put(make([]byte, 10_000)); err != nil {
		t.Error(err)
	}
}
