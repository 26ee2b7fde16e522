package db_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

func inMemory(t *testing.T, o *db.Options) *db.Store {
	t.Helper()
	s := ok[*db.Store](t)(db.OpenMemory(o))
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func TestMemoryStoresShareNothing(t *testing.T) {
	a, b := inMemory(t, nil), inMemory(t, nil)
	must(t, a.String("k").Put([]byte("a")))
	equal(t, "keys of the other", b.Len(), 0)
	if id := a.Stats().StoreID; id == b.Stats().StoreID {
		t.Errorf("both are store %s", id)
	}
}

func TestMemoryMergesAndReturnsMemory(t *testing.T) {
	s := inMemory(t, &db.Options{SegmentSize: 64 << 10, NoMerge: true})
	value := make([]byte, 1000)
	for round := range 20 {
		for i := range 100 {
			must(t, s.String(fmt.Sprint(i)).Put(append(value, byte(round))))
		}
	}
	before := s.Stats().Bytes
	must(t, s.Log().Rotate())
	ok[merge.Result](t)(s.Merge(context.Background(), merge.RunOptions{All: true}))
	if after := s.Stats().Bytes; after > before/10 {
		t.Errorf("a merge left %d of %d bytes", after, before)
	}
	for i := range 100 {
		v := ok[[]byte](t)(s.String(fmt.Sprint(i)).Get())
		equal(t, "last byte", v[len(v)-1], 19)
	}
	result := ok[bitcask.CheckResult](t)(s.Check(context.Background(), func(f bitcask.Finding) { t.Error(f) }))
	equal(t, "keys checked", result.Keys, 100)
}

func TestMemoryExpires(t *testing.T) {
	s := inMemory(t, &db.Options{ExpireEvery: 5 * time.Millisecond})
	must(t, s.String("k").Put(nil, db.TTL(20*time.Millisecond)))
	for deadline := time.Now().Add(time.Minute); s.Len() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the cycle has not reaped the key")
		}
	}
}

// A backup of a store in memory is files, in which the store goes on.
func TestMemoryBackupIsOnDisk(t *testing.T) {
	s := inMemory(t, nil)
	must(t, s.String("k").Put([]byte("v"), db.TTL(time.Hour)))
	ok[bool](t)(s.Hash("h").Put("f", []byte("1")))
	dir := filepath.Join(t.TempDir(), "saved")
	result := ok[bitcask.BackupResult](t)(s.Backup(context.Background(), dir))
	equal(t, "linked", result.Linked, 0)
	must(t, s.Close())
	again := ok[*db.Store](t)(db.Open(dir, nil))
	defer again.Close()
	equal(t, "k", string(ok[[]byte](t)(again.String("k").Get())), "v")
	equal(t, "f", string(ok[[]byte](t)(again.Hash("h").Get("f"))), "1")
	if left := ok[time.Duration](t)(again.Key("k").TTL()); left <= 0 {
		t.Errorf("deadline lost: %v", left)
	}
}

func TestMemoryRefusesToReadWhatIsNotThere(t *testing.T) {
	for _, o := range []db.Options{{ReadOnly: true}, {ReadDamaged: true}} {
		s, err := db.OpenMemory(&o)
		if !errors.Is(err, db.ErrMemory) || s != nil {
			t.Errorf("%+v: %v, %v", o, s, err)
		} else if !strings.Contains(err.Error(), "memory") {
			t.Errorf("the error does not say what was opened: %v", err)
		}
	}
}

func TestMemoryFromManyGoroutines(t *testing.T) {
	s := inMemory(t, &db.Options{SegmentSize: 32 << 10, NoMerge: true})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				key := fmt.Sprint(g, i%10)
				must(t, s.String(key).Put(fmt.Appendf(nil, "%d", i)))
				if v := ok[[]byte](t)(s.String(key).Get()); string(v) != fmt.Sprint(i) {
					t.Errorf("%s = %s, want %d", key, v, i)
				}
				ok[int64](t)(s.String("sum").Incr(1))
			}
		})
	}
	for range 3 {
		must(t, s.Log().Rotate())
		ok[merge.Result](t)(s.Merge(context.Background(), merge.RunOptions{All: true}))
	}
	wg.Wait()
	equal(t, "sum", string(ok[[]byte](t)(s.String("sum").Get())), "2400")
}

func BenchmarkMemoryStore(b *testing.B) {
	s, err := db.OpenMemory(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	value := make([]byte, 100)
	b.Run("put", func(b *testing.B) {
		b.ReportAllocs()
		k := s.String("key")
		for b.Loop() {
			if err := k.Put(value); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		k := s.String("key")
		for b.Loop() {
			if _, err := k.Get(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, err := db.OpenMemory(nil)
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
