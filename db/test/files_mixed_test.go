package db_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
)

// mixedKinds are the kinds of files in a store, by the pattern of their names.
var mixedKinds = []string{"*.data", "*.hint", bitcask.TTLName, bitcask.IndexFile, "MANIFEST"}

// TestMixedFiles opens stores of which single files, or all of a kind, are those of an earlier
// generation or of another store, empty, or gone: either the store is as it was, or an error names
// the problem. It is never a mix.
func TestMixedFiles(t *testing.T) {
	generations, want := mixedGenerations(t, 6)
	newest := generations[len(generations)-1]
	others, _ := mixedGenerations(t, 4)
	sources := map[string]crash.State{"another store": others[3], "another store, earlier": others[1], "nothing": {}}
	for i, g := range generations[:len(generations)-1] {
		sources["generation "+strconv.Itoa(i)] = g
	}
	empty := crash.State{}
	for name := range newest {
		empty[name] = []byte{}
	}
	sources["empty files"] = empty
	opened, refused := 0, 0
	for source, from := range sources {
		for _, kind := range mixedKinds {
			for _, names := range mixedNames(newest, kind) {
				mixed := maps.Clone(newest)
				for _, name := range names {
					delete(mixed, name)
					if b, there := from[name]; there {
						mixed[name] = b
					}
				}
				if verifyMixed(t, fmt.Sprintf("%q of %s", names, source), mixed, want) {
					opened++
				} else {
					refused++
				}
			}
		}
	}
	t.Logf("%d mixes: %d opened, %d refused", opened+refused, opened, refused)
	if opened == 0 || refused == 0 {
		t.Error("the mixes are no test")
	}
}

// mixedNames lists the files that are replaced at once: each file of a kind, and all of them.
func mixedNames(files crash.State, kind string) (list [][]string) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if matches, _ := filepath.Match(kind, name); matches {
			list = append(list, []string{name})
			all = append(all, name)
		}
	}
	if len(all) > 1 {
		list = append(list, all)
	}
	return list
}

// mixedGenerations is one store as it was left by so many clean closes, and what
// it held at the last.
func mixedGenerations(t *testing.T, n int) (list []crash.State, want string) {
	t.Helper()
	mem := vfs.NewMem()
	for g := range n {
		s, err := db.Open("d", stepOptions(mem, db.SyncAlways))
		must(t, err)
		for i := range 5 {
			key := "k" + strconv.Itoa((i+g)%7)
			must(t, s.String(key).Put(fmt.Appendf(nil, "generation %d, %s", g, key), db.ExpireAt(time.UnixMilli(4e12+int64(g)))))
			must(t, first(s.Hash("hash").Put(key, fmt.Appendf(nil, "generation %d", g))))
			must(t, first(s.List("list").PushBack([]byte(key))))
			must(t, first(s.SortedSet("zset").Add(db.Scored{Member: key, Score: float64(g)})))
		}
		must(t, first(s.Keyspace().Delete("k"+strconv.Itoa(g), "list")))
		if g == n/2 {
			must(t, mergeEverything(s))
		}
		must(t, first(s.Key("k"+strconv.Itoa((g+3)%7)).Persist()))
		m, err := readModel(s)
		must(t, err)
		want = m.String()
		must(t, s.Close())
		state, err := crash.ReadState(mem, "d")
		must(t, err)
		list = append(list, state)
	}
	return list, want
}

// verifyMixed opens a mix and reports whether it could be opened.
func verifyMixed(t *testing.T, what string, mixed crash.State, want string) bool {
	t.Helper()
	mem, err := mixed.Mem("d")
	must(t, err)
	s, err := db.Open("d", stepOptions(mem, db.SyncAlways))
	if err != nil {
		if !typedDamage(err) {
			t.Errorf("%s: open: %v", what, err)
		}
		if leaks := mem.Leaks(); len(leaks) > 0 {
			t.Errorf("%s: left open: %q", what, leaks)
		}
		return false
	}
	for _, when := range []string{"opened", "merged"} {
		m, err := readModel(s)
		if err != nil && !typedDamage(err) {
			t.Errorf("%s: %s, read: %v", what, when, err)
		}
		if err == nil && m.String() != want {
			t.Errorf("%s: %s, it holds something else:\n%s", what, when, differences(m.String(), want))
		}
		if err := mergeEverything(s); err != nil && !typedDamage(err) {
			t.Errorf("%s: merge: %v", what, err)
		}
	}
	must(t, s.Close())
	return true
}

// typedDamage reports whether an error says that files are damaged.
func typedDamage(err error) bool {
	var corrupt *bitcask.CorruptError
	for _, target := range []error{bitcask.ErrVersion, bitcask.ErrForeign, bitcask.ErrMissing, bitcask.ErrManifest} {
		if errors.Is(err, target) {
			return true
		}
	}
	return errors.As(err, &corrupt)
}
