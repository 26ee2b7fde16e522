package keydir_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/keydir"
)

func TestMisusePanics(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{})
	set, zset, list := d.NewCollection(1, keydir.Set, "s"), d.NewCollection(1, keydir.ZSet, "z"), d.NewCollection(1, keydir.List, "l")
	long := strings.Repeat("x", keydir.MaxName+1)
	for name, f := range map[string]func(){
		"slot without a type":         func() { d.Insert(1, keydir.Slot{}) },
		"collection that is a string": func() { d.NewCollection(1, keydir.String, "k") },
		"key that is too long":        func() { d.NewCollection(1, keydir.Set, long) },
		"name that is too long":       func() { set.Put(long, 1) },
		"put on a sorted set":         func() { zset.Put("a", 1) },
		"delete on a list":            func() { list.Delete("a") },
		"get on a list":               func() { list.Get("a") },
		"score on a set":              func() { set.PutScored("a", 1, 1) },
		"rank on a set":               func() { set.Rank(1, "") },
		"index on a set":              func() { set.LocAt(1) },
		"no location":                 func() { list.PutAt(1, 0) },
		"segment beyond 24 bits":      func() { keydir.MakeLoc(1<<24, 0, 0) },
		"drop by another hash":        func() { d.DropCollection(1<<20, set) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: keydir: ") {
					t.Errorf("panics with %q", text)
				}
			}()
			f()
		})
	}
}

func TestZeroCollectionIsNotValid(t *testing.T) {
	var f keydir.Collection
	var x keydir.Dropped
	if f.Valid() || x.Len() != 0 || keydir.Type(99).String() != "type(99)" {
		t.Error("zero values are something")
	}
	x.Each(func(keydir.Loc) bool { t.Error("a location of nothing"); return true })
}

// Slots of a hash are distinguished by type, and collections by their key.
func TestOneHashManyKeys(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{})
	d.Insert(8, keydir.Slot{Type: keydir.String, Loc: 1})
	d.Insert(8, keydir.Slot{Type: keydir.Deadline, Loc: 1})
	collections := map[string]keydir.Collection{}
	for _, key := range []string{"", "a", "b", strings.Repeat("long", 400)} {
		collections[key] = d.NewCollection(8, keydir.Hash, key)
		collections[key].SetMeta(keydir.Loc(len(key) + 1))
	}
	for key, want := range collections {
		f, ok := d.FindCollection(8, key)
		if !ok || f != want || f.Key() != key || f.Meta() != keydir.Loc(len(key)+1) {
			t.Errorf("collection %.9q is not found", key)
		}
	}
	if _, ok := d.FindCollection(8, "c"); ok {
		t.Error("found a collection that is not there")
	}
	for key, f := range collections {
		if x := d.DropCollection(8, f); x.Type() != keydir.Hash || x.Len() != 0 {
			t.Errorf("dropped %v of %d", x.Type(), x.Len())
		} else {
			x.Each(func(loc keydir.Loc) bool {
				if loc != keydir.Loc(len(key)+1) {
					t.Errorf("dropped location %d", loc)
				}
				return true
			})
		}
	}
	if d.Len() != 1 || d.LenDeadlines() != 1 {
		t.Errorf("%d keys, %d deadlines left", d.Len(), d.LenDeadlines())
	}
	check(t, d)
}

// Walks end where their function says so.
func TestWalksStop(t *testing.T) {
	for _, n := range []int64{20, 2000} {
		d := keydir.NewDirectory(keydir.Seed{1, 2})
		zset, list := d.NewCollection(1, keydir.ZSet, "z"), d.NewCollection(1, keydir.List, "l")
		for i := range n {
			zset.PutScored(string(rune('a'+i)), uint64(i), 1)
			list.PutAt(i, 1)
		}
		left := 0
		stop := func() bool { left--; return left > 0 }
		for name, walk := range map[string]func(){
			"each":         func() { zset.Each(func([]byte, keydir.Loc) bool { return stop() }) },
			"each of list": func() { list.Each(func([]byte, keydir.Loc) bool { return stop() }) },
			"scan":         func() { zset.Scan(0, func(uint64, []byte, keydir.Loc) bool { return stop() }) },
			"ascend":       func() { zset.AscendRank(0, func([]byte, uint64) bool { return stop() }) },
			"descend":      func() { zset.DescendRank(int(n), func([]byte, uint64) bool { return stop() }) },
			"slots":        func() { d.Scan(0, 0, func(uint64, keydir.Slot) bool { left = 0; return false }) },
		} {
			left = 5
			if walk(); left != 0 {
				t.Errorf("%s of %d did not stop", name, n)
			}
		}
		x := d.DropCollection(1, zset)
		left = 1
		if x.Each(func(keydir.Loc) bool { return stop() }); left != 0 {
			t.Error("dropped: did not stop")
		}
	}
}
