package db_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
)

const megabyte = 1 << 20

// diskUsed is what the regular files of a directory take. ok is false if files came or went meanwhile, of which some are counted
// that never were there together.
func diskUsed(t *testing.T, dir string) (total int64, ok bool) {
	t.Helper()
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, entry := range entries {
			list = append(list, entry.Name())
		}
		return list
	}
	before := names()
	for _, name := range before {
		info, err := os.Lstat(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return 0, false
		}
		must(t, err)
		if info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return total, slices.Equal(before, names())
}

// sampled calls fn, and returns the most that a directory took meanwhile.
func sampled(t *testing.T, dir string, fn func()) (most int64) {
	var sampling sync.WaitGroup
	samples := 0
	done := make(chan struct{})
	sampling.Go(func() {
		for {
			if used, ok := diskUsed(t, dir); ok {
				most = max(most, used)
				samples++
			}
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	fn()
	close(done)
	sampling.Wait()
	if samples < 10 {
		t.Errorf("%d samples", samples)
	}
	return most
}

// TestEvictDisk: the directory of a cache stays within its bound, whatever is put, ten times as much as the bound, by
// several at once, and nothing is refused; and it is used.
func TestEvictDisk(t *testing.T) {
	const bound = 32 * megabyte
	for _, policy := range evictPolicies {
		for _, kind := range []string{"strings", "hashes"} {
			t.Run(fmt.Sprint(policy, " ", kind), func(t *testing.T) {
				dir := t.TempDir()
				s := checkedAtEnd(t, ok[*db.Store](t)(db.Open(dir, &db.Options{Sync: db.SyncNone, Evict: db.Evict{Policy: policy, Disk: bound}})))
				const writers, size = 4, 1000
				most := sampled(t, dir, func() {
					var writing sync.WaitGroup
					for w := range writers {
						r := chance.Rand(t)
						writing.Go(func() {
							value := []byte(strings.Repeat("v", size))
							for i := range 10 * bound / size / writers {
								key := fmt.Sprint(kind, w, " ", i)
								if r.IntN(4) == 0 {
									key = fmt.Sprint(kind, w, " ", r.IntN(i+1))
								}
								var err error
								switch {
								case r.IntN(50) == 0:
									_, err = s.Keyspace().Delete(key)
								case kind == "hashes":
									key := fmt.Sprint(kind, w, " ", i/20)
									if _, err = s.Hash(key).Put(fmt.Sprint(i), value); err == nil {
										_, err = s.Key(key).Expire(time.Hour)
									}
								default:
									err = s.String(key).Put(value, db.TTL(time.Hour))
								}
								if err != nil && !errors.Is(err, db.ErrNotFound) {
									t.Error(err)
									return
								}
							}
						})
					}
					writing.Wait()
				})
				used, live, now := s.Log().DirectoryBytes()
				t.Logf("at most %.1f MB of %d; %.1f used, %.1f live, bound %.1f, %d keys, %d evicted, merges %+v", float64(most)/megabyte, bound/megabyte,
					float64(used)/megabyte, float64(live)/megabyte, float64(now)/megabyte, s.Len(), s.Stats().Evicted, s.Merger().Status().Merges)
				if most > bound {
					t.Errorf("the directory took %d bytes of %d", most, bound)
				}
				if live < bound/3 {
					t.Errorf("no more than %d bytes are live", live)
				}
			})
		}
	}
}
