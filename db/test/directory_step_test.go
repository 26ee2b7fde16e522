package db_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

var placeEvery = flag.Int("place.every", 7, "before every how many operations on files another store takes the place of a directory; trebled by -short")

// Two stores, of which the second takes the place of the first.
const (
	placeDir, placeOther, placeOld = "store", "other", "store.old"
	placeKeys                      = 30
)

func placeOptions(fsys vfs.FS) *db.Options {
	return seam.With(&db.Options{SegmentSize: 8 << 10, Sync: db.SyncNone, NoMerge: true}, seam.Options{FS: fsys})
}

// placeStores has both, with segments, hints, INDEX and TTL file, and something to merge.
func placeStores(t *testing.T) *vfs.Mem {
	mem := vfs.NewMem()
	var open []*db.Store
	for _, dir := range []string{placeDir, placeOther} {
		s, err := db.Open(dir, placeOptions(mem))
		must(t, err)
		for range 2 {
			putNumbered(t, s, dir, 0, placeKeys)
		}
		must(t, s.Close())
		s, err = db.Open(dir, placeOptions(mem))
		must(t, err)
		putNumbered(t, s, dir, 0, 3) // after the INDEX and the TTL file
		must(t, s.Sync())
		open = append(open, s)
	}
	killed := mem.Clone()
	for _, s := range open {
		must(t, s.Close())
	}
	return killed
}

// placeFiles reads the files of a directory, but for LOCK, which Open makes.
func placeFiles(t *testing.T, mem *vfs.Mem, dir string) map[string]string {
	t.Helper()
	names, err := mem.List(dir)
	must(t, err)
	files := map[string]string{}
	for _, name := range names {
		f, err := mem.Open(dir+"/"+name, vfs.ReadOnly)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		b := make([]byte, size)
		if size > 0 {
			_, err = f.ReadAt(b, 0)
			must(t, err)
		}
		must(t, f.Close())
		if name != "LOCK" {
			files[name] = string(b)
		}
	}
	return files
}

// Operations while the directories change places. who owns the keys that were seen.
var directorySteps = []struct {
	name string
	do   func(t *testing.T, fsys vfs.FS) (who string, err error)
}{
	{"open", func(t *testing.T, fsys vfs.FS) (string, error) {
		s, err := db.Open(placeDir, placeOptions(fsys))
		if err != nil {
			return "", err
		}
		who, err := whose(s)
		for i := range placeKeys { // rotations, a merge and its unlinking, INDEX, TTL file
			err = errors.Join(err, s.String(fmt.Sprint(who, i)).Put(fmt.Appendf(nil, "%s %d %s", who, i, strings.Repeat("y", 900))))
		}
		_, merr := s.Merge(context.Background(), merge.RunOptions{All: true})
		return who, errors.Join(err, merr, s.Close())
	}},
	{"read-only", func(t *testing.T, fsys vfs.FS) (string, error) {
		o := placeOptions(fsys)
		o.ReadOnly = true
		s, err := db.Open(placeDir, o)
		if err != nil {
			return "", err
		}
		who, err := whose(s)
		return who, errors.Join(err, s.Close())
	}},
	{"repair", func(t *testing.T, fsys vfs.FS) (string, error) {
		if r, err := repair.Salvage(context.Background(), placeDir, "out", seam.With(&bitcask.Options{}, seam.Options{FS: fsys})); err != nil || len(r.Lost) > 0 {
			return "", errors.Join(err, fmt.Errorf("lost: %v", r.Lost))
		}
		return whoseIn(fsys, "out")
	}},
	{"backup", func(t *testing.T, fsys vfs.FS) (string, error) {
		s, err := db.Open(placeDir, placeOptions(fsys))
		if err != nil {
			return "", err
		}
		who, err := whose(s)
		_, berr := s.Backup(context.Background(), "out")
		if err := errors.Join(err, berr, s.Close()); err != nil {
			return "", err
		}
		if copied, err := whoseIn(fsys, "out"); err != nil || copied != who {
			return "", fmt.Errorf("the backup of %s has the keys of %s, %v", who, copied, err)
		}
		return who, nil
	}},
}

func whoseIn(fsys vfs.FS, dir string) (string, error) {
	s, err := db.Open(dir, seam.With(&db.Options{ReadOnly: true}, seam.Options{FS: fsys}))
	if err != nil {
		return "", err
	}
	who, err := whose(s)
	return who, errors.Join(err, s.Close())
}

// whose says whose keys a store has, all of them and no others.
func whose(s *db.Store) (string, error) {
	for _, who := range []string{placeDir, placeOther} {
		if ok, err := s.Key(who + "0").Exists(); err != nil || !ok {
			continue
		}
		for i := range placeKeys {
			got, err := s.String(fmt.Sprint(who, i)).Get()
			if err != nil || !bytes.HasPrefix(got, fmt.Appendf(nil, "%s %d ", who, i)) {
				return "", fmt.Errorf("%s%d is %.20q, %w", who, i, got, err)
			}
		}
		if s.Len() != placeKeys {
			return "", fmt.Errorf("there are %d keys", s.Len())
		}
		return who, nil
	}
	return "", errors.New("nobody's keys are there")
}

// Whenever another store takes the place of a directory, the running operation works on one of the two, and the other
// is not touched.
func TestDirectoryIsReplacedAtEveryStep(t *testing.T) {
	stores := placeStores(t)
	before := placeFiles(t, stores, placeOther)
	for _, c := range directorySteps {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			count := vfstest.NewFault(stores.Clone())
			_, err := c.do(t, count)
			must(t, err)
			every, firsts := *placeEvery, 0
			if testing.Short() {
				every *= 3
			}
			from := chance.Rand(t).IntN(every)
			for n := from; n < count.Ops(); n += every {
				mem := stores.Clone()
				swapped := false
				swap := sync.OnceFunc(func() {
					swapped = true
					must(t, mem.RenameDir(placeDir, placeOld))
					must(t, mem.RenameDir(placeOther, placeDir))
				})
				who, err := c.do(t, vfstest.NewFault(mem, vfstest.Rule{Skip: n, Do: func(vfstest.Event) { swap() }}))
				if err != nil {
					t.Fatalf("replaced before operation %d: %v", n, err)
				}
				first, second := placeDir, placeOther
				if swapped {
					first, second = placeOld, placeDir
				}
				if who == placeDir {
					firsts++
					if now := placeFiles(t, mem, second); !equalFiles(now, before) {
						t.Fatalf("replaced before operation %d: the other store was touched: %q, was %q", n, names(now), names(before))
					}
				}
				wantNumberedIn(t, mem, first, placeDir, placeKeys)
				wantNumberedIn(t, mem, second, placeOther, placeKeys)
				if t.Failed() {
					t.Fatalf("replaced before operation %d", n)
				}
				if leaks := mem.Leaks(); len(leaks) > 0 {
					t.Fatalf("replaced before operation %d: left open: %q", n, leaks)
				}
			}
			if firsts < count.Ops()/every/2 {
				t.Errorf("only %d of %d were about the first store", firsts, count.Ops()/every)
			}
		})
	}
}

func equalFiles(a, b map[string]string) bool {
	return slices.Equal(names(a), names(b)) && !slices.ContainsFunc(names(a), func(name string) bool { return a[name] != b[name] })
}

func names(files map[string]string) (list []string) {
	for name := range files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
