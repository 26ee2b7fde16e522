package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// loader puts n entries into a store, many in a commit.
type loader func(s *db.Store, n int) error

// memory measures the RAM of a whole process with n entries less that of the
// same process with none. Steps: load nothing, load everything, open nothing,
// open everything.
func memory(fill loader) func(c *child) error {
	return func(c *child) error {
		full := c.step%2 == 1
		dir, part := c.path("empty"), "base"
		if full {
			dir, part = c.path("full"), "full"
		}
		reopen := c.step >= 2
		if reopen {
			part += "-opened"
		}
		s, err := db.Open(dir, &db.Options{NoMerge: true})
		if err != nil {
			return err
		}
		if full && !reopen {
			err = c.profiled("load", func() error { return fill(s, c.n) })
		}
		if err == nil {
			err = c.recordMemory(part)
		}
		return errors.Join(err, s.Close())
	}
}

// memoryOfKeys does the same with keys and values of any engine. Steps: load
// nothing, load everything, open everything.
func memoryOfKeys(c *child) error {
	dir, part := c.path("store"), []string{"base", "full", "full-opened"}[c.step]
	if c.step == 0 {
		dir = c.path("empty")
	}
	s, err := c.engine.open(dir, openOptions{sync: bitcask.SyncNone})
	if err != nil {
		return err
	}
	if c.step == 1 {
		err = load(s, shuffledKeys(1, 0, c.n))
	}
	if err == nil {
		err = c.recordMemory(part)
	}
	return errors.Join(err, s.close())
}

// recordMemory records what the process holds after garbage has been collected
// and freed pages have gone back, and the CPU time of a collection.
func (c *child) recordMemory(part string) error {
	waitIdle()
	runtime.GC()
	var took []float64
	for range 21 {
		begin := cpuTime()
		runtime.GC()
		took = append(took, float64(cpuTime()-begin))
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss, err := anonymousRSS()
	c.record("entries", float64(c.n))
	c.record(part+"-rss", float64(rss))
	c.record(part+"-heap", float64(m.HeapAlloc))
	c.record(part+"-gc", median(took))
	return err
}

// waitIdle waits until the store has done its work in the background, hints and INDEX of the loaded data: its processor
// time would count as the collector's.
func waitIdle() {
	const look = 200 * time.Millisecond
	for range 50 {
		begin := cpuTime()
		time.Sleep(look)
		if cpuTime()-begin < look/50 {
			return
		}
	}
}

// anonymousRSS is the resident memory of the process that no file backs. The segments are mapped,
// shared and read-only: their pages are the kernel's page cache, which it reclaims when it needs
// them, so they do not count.
func anonymousRSS() (int64, error) { return memoryStatus("RssAnon:") }

// memoryStatus reads a line of the process's status, in bytes.
func memoryStatus(line string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(status, []byte(line))
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 2 || string(fields[1]) != "kB" {
		return 0, errors.New("/proc/self/status has no " + line)
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return n << 10, err
}

const commitSize = 1000 // entries in a commit while loading

// inCommits calls fn for consecutive ranges that cover 0 to n.
func inCommits(n int, fn func(from, to int) error) error {
	for from := 0; from < n; from += commitSize {
		if err := fn(from, min(from+commitSize, n)); err != nil {
			return err
		}
	}
	return nil
}

// scramble is a one-to-one map of 32-bit numbers that leaves no order.
func scramble(i int) uint32 {
	x := uint32(i)
	x = (x ^ x>>16) * 0x21F0AAAD
	x = (x ^ x>>15) * 0x735A2D97
	return x ^ x>>15
}

// element is the i-th element name: 10 bytes, in no order.
func element(i int) string { return fmt.Sprintf("m:%08x", scramble(i)) }

func loadStrings(s *db.Store, n int) error {
	vals := newValues()
	pairs := make([]db.Pair, 0, commitSize)
	return inCommits(n, func(from, to int) error {
		pairs = pairs[:0]
		for i := from; i < to; i++ {
			pairs = append(pairs, db.Pair{Key: keyAt(int(scramble(i))), Value: vals.at(i)})
		}
		return s.Keyspace().Put(pairs...)
	})
}

func loadSet(s *db.Store, n int) error {
	set, members := s.Set("set"), make([]string, 0, commitSize)
	return inCommits(n, func(from, to int) error {
		members = members[:0]
		for i := from; i < to; i++ {
			members = append(members, element(i))
		}
		_, err := set.Add(members...)
		return err
	})
}

// shortValue is the value of fields and list elements: values are on disk, so their length makes no
// difference to memory.
func shortValue(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }

func loadHash(s *db.Store, n int) error {
	hash, fields := s.Hash("hash"), make([]db.Field, 0, commitSize)
	return inCommits(n, func(from, to int) error {
		fields = fields[:0]
		for i := from; i < to; i++ {
			fields = append(fields, db.Field{Name: element(i), Value: shortValue(i)})
		}
		_, err := hash.PutAll(fields...)
		return err
	})
}

// loadSmallHashes makes n/10 hashes of ten fields each.
func loadSmallHashes(s *db.Store, n int) error {
	const each = 10
	fields := make([]db.Field, each)
	return inCommits(n/each, func(from, to int) error {
		return s.Update(func(tx *db.Tx) error {
			for i := from; i < to; i++ {
				for j := range fields {
					fields[j] = db.Field{Name: element(j), Value: shortValue(j)}
				}
				if _, err := tx.Hash(keyAt(int(scramble(i)))).PutAll(fields...); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func loadSortedSet(s *db.Store, n int) error {
	zset, members := s.SortedSet("zset"), make([]db.Scored, 0, commitSize)
	return inCommits(n, func(from, to int) error {
		members = members[:0]
		for i := from; i < to; i++ {
			members = append(members, db.Scored{Member: element(i), Score: float64(scramble(i ^ 0x5555))})
		}
		_, err := zset.Add(members...)
		return err
	})
}

func loadList(s *db.Store, n int) error {
	list, values := s.List("list"), make([][]byte, 0, commitSize)
	return inCommits(n, func(from, to int) error {
		values = values[:0]
		for i := from; i < to; i++ {
			values = append(values, shortValue(i))
		}
		_, err := list.PushBack(values...)
		return err
	})
}
