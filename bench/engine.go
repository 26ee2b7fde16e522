package main

import (
	"context"
	"errors"
	"unsafe"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// kv is a key-value store under measurement.
type kv interface {
	put(key string, value []byte) error
	// get returns the value, which is the caller's; false if there is none. Where
	// the engine can, it appends to dst.
	get(dst []byte, key string) ([]byte, bool, error)
	// batch puts all the keys in one commit.
	batch(keys []string, value func(i int) []byte) error
	remove(key string) error
	// merge frees the space of overwritten records.
	merge() error
	close() error
}

// engine is a way to open one, with the settings chosen for a fair comparison.
type engine struct {
	name string
	open func(dir string, o openOptions) (kv, error)
	fair fairness
	slow int // lone puts are timed on an n-th part of the entries; 0: on all
}

// portion is how many of n lone puts are timed.
func (e *engine) portion(n int) int { return max(n/max(e.slow, 1), min(n, 1000)) }

// fairness is an engine's row in the table of settings.
type fairness struct {
	version string
	put     string // where a put has arrived when it returns, without syncs
	sync    string // how synced puts of many writers share a sync
	memory  string // its content in memory
	merge   string // what merge calls
}

type openOptions struct {
	sync        bitcask.SyncMode
	segmentSize int64 // 0: the default; Stave and nutsdb only
	verify      bool  // damage is checked for and an error, where the engine has such an option: badger and pebble
}

// engines are Stave's two layers and the peers, in the order of the tables.
var engines = []*engine{
	{"bitcask", openBitcask, fairness{"", "kernel, write(2)", "group commit", "index; values in the page cache", "merge, all segments"}, 0},
	{"db", openDB, fairness{"", "kernel, write(2)", "group commit", "index; values in the page cache", "merge, all segments"}, 0},
	{"pogreb", openPogreb, fairness{"v0.10.2", "kernel, write(2)", "one sync each", "nothing: index in mapped files", "Compact"}, 0},
	{"pebble", openPebble, fairness{"v2.1.7", "user space: a background flush writes the log", "group commit", "memtables of 64 MB, block cache of 256 MB", "Compact of everything"}, 0},
	{"bbolt", openBbolt, fairness{"v1.5.0", "kernel, whole pages; lone puts are a tenth of n", "DB.Batch, 64 at most or 1 ms", "page cache", "bbolt.Compact into a new file"}, 10},
	{"badger", openBadger, fairness{"v4.9.6", "kernel, mapped log", "one sync each", "memtables of 64 MB, block cache of 256 MB", "Flatten, 2 workers"}, 0},
	{"buntdb", openBuntdb, fairness{"v1.3.0", "kernel, write(2)", "one sync each", "keys and values", "Shrink"}, 0},
	{"rosedb", openRosedb, fairness{"v2.4.0", "kernel, write(2)", "one sync each", "keys and places", "Merge, with reopening"}, 0},
	{"nutsdb", openNutsdb, fairness{"v1.0.4", "kernel, write(2)", "one sync each", "keys and places", "Merge"}, 0},
}

// isPeer tells the engines that Stave is compared with from its own.
func (e *engine) isPeer() bool { return e.fair.version != "" }

func engineNamed(name string) *engine {
	for _, e := range engines {
		if e.name == name {
			return e
		}
	}
	return nil
}

func withEngine(e *engine, run func(c *child) error) func(c *child) error {
	return func(c *child) error {
		c.engine = e
		return run(c)
	}
}

// with opens the engine in the workload's directory, runs fn and closes it.
func (c *child) with(o openOptions, fn func(s kv) error) error {
	s, err := c.engine.open(c.path("store"), o)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.close())
}

// octetsOf is the key as bytes, without the copy that no engine should be
// charged with. Nothing may write to it.
func octetsOf(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

type bitcaskKV struct{ s *bitcask.Store }

func openBitcask(dir string, o openOptions) (kv, error) {
	s, err := bitcask.Open(dir, &bitcask.Options{Sync: o.sync, SegmentSize: o.segmentSize})
	return bitcaskKV{s}, err
}

func (b bitcaskKV) put(key string, value []byte) error { return b.s.Put(key, value) }

func (b bitcaskKV) get(dst []byte, key string) ([]byte, bool, error) {
	dst, err := b.s.GetInto(dst, key)
	if err == bitcask.ErrNotFound {
		return dst, false, nil
	}
	return dst, err == nil, err
}

func (b bitcaskKV) batch(keys []string, value func(i int) []byte) error {
	batch := b.s.NewBatch()
	for i, key := range keys {
		batch.Put(key, value(i))
	}
	return batch.Commit()
}

func (b bitcaskKV) remove(key string) error { return errOf(b.s.Delete(key)) }

func (b bitcaskKV) merge() error { return b.mergeWith(merge.RunOptions{All: true, Unlimited: true}) }

// mergePaced merges at the rate of the background.
func mergePaced(s kv) error { return s.(bitcaskKV).mergeWith(merge.RunOptions{All: true}) }

func (b bitcaskKV) mergeWith(o merge.RunOptions) error {
	m, err := merge.New(b.s, merge.Policy{}, nil)
	if err != nil {
		return err
	}
	_, err = m.Run(context.Background(), o)
	return err
}

func (b bitcaskKV) close() error { return b.s.Close() }

type dbKV struct{ s *db.Store }

// openDB opens without the background merge: it would begin in the middle of
// some measurement.
func openDB(dir string, o openOptions) (kv, error) {
	s, err := db.Open(dir, &db.Options{Sync: o.sync, SegmentSize: o.segmentSize, NoMerge: true})
	return dbKV{s}, err
}

func (d dbKV) put(key string, value []byte) error { return d.s.String(key).Put(value) }

func (d dbKV) get(dst []byte, key string) ([]byte, bool, error) {
	dst, err := d.s.String(key).AppendTo(dst)
	if err == db.ErrNotFound {
		return dst, false, nil
	}
	return dst, err == nil, err
}

func (d dbKV) batch(keys []string, value func(i int) []byte) error {
	pairs := make([]db.Pair, len(keys))
	for i, key := range keys {
		pairs[i] = db.Pair{Key: key, Value: value(i)}
	}
	return d.s.Keyspace().Put(pairs...)
}

func (d dbKV) remove(key string) error { return errOf(d.s.Key(key).Delete()) }

func (d dbKV) merge() error {
	return errOf(d.s.Merge(context.Background(), merge.RunOptions{All: true, Unlimited: true}))
}

func (d dbKV) close() error { return d.s.Close() }
