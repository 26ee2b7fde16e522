package keydir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/keydir"
)

const benchKeys = 1_000_000

func hashes(n int) []uint64 {
	r := rand.New(rand.NewPCG(1, 2))
	h := make([]uint64, n)
	for i := range h {
		h[i] = r.Uint64()
	}
	return h
}

func elems(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%010d", i)
	}
	return names
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{4, 10, 16, 32, 100} {
		name := string(count(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			seed := keydir.Seed{1, 2}
			for b.Loop() {
				seed.Hash(name)
			}
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	all := hashes(benchKeys)
	d := keydir.NewDirectory(keydir.Seed{})
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if i == len(all) {
			i, d = 0, keydir.NewDirectory(keydir.Seed{})
		}
		d.Insert(all[i], keydir.Slot{Type: keydir.String, Loc: 1})
		i++
	}
}

func filled(all []uint64) *keydir.Directory {
	d := keydir.NewDirectory(keydir.Seed{})
	for _, h := range all {
		d.Insert(h, keydir.Slot{Type: keydir.String, Loc: 1})
	}
	return d
}

// BenchmarkLoad loads a million entries of each kind. Besides the time of one, making its name
// included, it reports the slowest: the same load is done five times, and what counts is the
// least that each of its steps took, for the machine's other work hits another step
// each time.
func BenchmarkLoad(b *testing.B) {
	const rounds = 5
	for _, load := range loads {
		b.Run(load.name, func(b *testing.B) {
			took := make([]time.Duration, benchKeys)
			var d *keydir.Directory
			for round := range rounds {
				d = keydir.NewDirectory(keydir.Seed{1, 2})
				start := time.Now()
				var last time.Time
				load.fill(d, keydir.Seed{1, 2}, benchKeys, func(i int) {
					now := time.Now()
					if step := now.Sub(last); i > 0 && (round == 0 || step < took[i]) {
						took[i] = step
					}
					last = now
				})
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/benchKeys, "ns/entry")
			}
			b.ReportMetric(float64(slices.Max(took).Microseconds()), "worst-us")
			b.ReportMetric(float64(d.Bytes())/benchKeys, "B/entry")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkFind(b *testing.B) {
	all := hashes(2 * benchKeys)
	d := filled(all[:benchKeys])
	for _, test := range []struct {
		name string
		ask  []uint64
	}{{"hit", all[:benchKeys]}, {"miss", all[benchKeys:]}} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d.Find(test.ask[i], 0)
				if i++; i == benchKeys {
					i = 0
				}
			}
		})
	}
}

func BenchmarkReplace(b *testing.B) {
	all := hashes(benchKeys)
	d := filled(all)
	s := keydir.Slot{Type: keydir.String, Loc: 1}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		d.Replace(all[i], s, s)
		if i++; i == benchKeys {
			i = 0
		}
	}
}

func BenchmarkDeleteInsert(b *testing.B) {
	all := hashes(2 * benchKeys)
	d := filled(all[:benchKeys])
	s := keydir.Slot{Type: keydir.String, Loc: 1}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		d.Delete(all[i], s)
		d.Insert(all[(i+benchKeys)%len(all)], s)
		if i++; i == len(all) {
			i = 0
		}
	}
}

// BenchmarkCollection works on collections of ten to a million elements.
func BenchmarkCollection(b *testing.B) {
	for _, n := range []int{10, 60, 1000, benchKeys} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchCollection(b, n) })
	}
}

func benchCollection(b *testing.B, n int) {
	names := elems(n)
	r := rand.New(rand.NewPCG(3, 4))
	r.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	set := d.NewCollection(1, keydir.Set, "set")
	zset := d.NewCollection(2, keydir.ZSet, "zset")
	list := d.NewCollection(3, keydir.List, "list")
	for i, name := range names {
		set.Put(name, keydir.Loc(i+1))
		zset.PutScored(name, r.Uint64(), keydir.Loc(i+1))
		list.PutAt(int64(i), 1)
	}
	i := 0
	next := func() string {
		if i++; i >= n {
			i = 0
		}
		return names[i]
	}
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	run("get", func() { set.Get(next()) })
	run("replace", func() { set.Put(next(), 7) })
	run("delete+put", func() { name := next(); set.Delete(name); set.Put(name, 7) })
	run("at", func() { next(); set.At(i) })
	run("scan 10", func() {
		left := 10
		set.Scan(set.HashOf(next()), func(uint64, []byte, keydir.Loc) bool { left--; return left > 0 })
	})
	run("score", func() { zset.Score(next()) })
	run("rescore", func() { zset.PutScored(next(), r.Uint64(), 7) })
	run("rank", func() { name := next(); score, _, _ := zset.Score(name); zset.Rank(score, name) })
	run("ascend 10", func() {
		next()
		left := 10
		zset.AscendRank(i, func([]byte, uint64) bool { left--; return left > 0 })
	})
	run("descend 10", func() {
		next()
		left := 10
		zset.DescendRank(i, func([]byte, uint64) bool { left--; return left > 0 })
	})
	run("list at", func() { next(); list.LocAt(int64(i)) })
	run("list rotate", func() {
		head, tail := list.Bounds()
		list.DeleteAt(head)
		list.PutAt(tail+1, 9)
	})
}

func BenchmarkSmallCollections(b *testing.B) {
	seed := keydir.Seed{1, 2}
	keys := elems(100_000)
	d := keydir.NewDirectory(seed)
	for _, key := range keys {
		f := d.NewCollection(seed.Hash(key), keydir.Hash, key)
		for _, name := range keys[:10] {
			f.Put(name, 1)
		}
	}
	i := 0
	next := func() string {
		if i++; i == len(keys) {
			i = 0
		}
		return keys[i]
	}
	b.Run("find and get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			key := next()
			f, _ := d.FindCollection(seed.Hash(key), key)
			f.Get(keys[5])
		}
	})
	b.Run("drop and restore", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			key := next()
			h := seed.Hash(key)
			f, _ := d.FindCollection(h, key)
			d.Restore(h, d.DropCollection(h, f))
		}
	})
	b.Run("make, fill with 10, drop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f := d.NewCollection(1, keydir.Hash, "another key")
			for _, name := range keys[:10] {
				f.Put(name, 1)
			}
			d.DropCollection(1, f)
		}
	})
	for _, typ := range []keydir.Type{keydir.Hash, keydir.Set} {
		for _, n := range []int{10, 100, 400} {
			f := d.NewCollection(2, typ, "another key")
			for _, name := range keys[:n] {
				f.Put(name, 1)
			}
			b.Run(fmt.Sprintf("%v of %d/get", typ, n), func(b *testing.B) {
				for b.Loop() {
					f.Get(keys[(i+1)%n])
					i++
				}
			})
			b.Run(fmt.Sprintf("%v of %d/add and delete", typ, n), func(b *testing.B) {
				for b.Loop() {
					f.Put("123456", 1)
					f.Delete("123456")
				}
			})
			b.Run(fmt.Sprintf("%v of %d/each", typ, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f.Each(func([]byte, keydir.Loc) bool { return true })
				}
			})
			d.DropCollection(2, f)
		}
	}
}
