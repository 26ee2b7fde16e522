package main

import (
	"context"
	"errors"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// kv is a key-value store under measurement.
type kv interface {
	put(key string, value []byte) error
	// get appends the value to dst; false if there is none.
	get(dst []byte, key string) ([]byte, bool, error)
	// batch puts all the keys in one commit.
	batch(keys []string, value func(i int) []byte) error
	merge() error
	close() error
}

// engine is a way to open one.
type engine struct {
	name string
	open func(dir string, o openOptions) (kv, error)
}

type openOptions struct {
	sync        bitcask.SyncMode
	segmentSize int64 // 0: the default
}

var (
	bitcaskEngine = &engine{"bitcask", openBitcask}
	dbEngine      = &engine{"db", openDB}
)

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

func (b bitcaskKV) merge() error {
	_, err := merge.New(b.s, merge.Policy{}, nil).Run(context.Background(), merge.RunOptions{All: true, Unlimited: true})
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

func (d dbKV) merge() error {
	_, err := d.s.Merge(context.Background(), merge.RunOptions{All: true, Unlimited: true})
	return err
}

func (d dbKV) close() error { return d.s.Close() }
