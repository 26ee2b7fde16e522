package main

import (
	"github.com/rosedblabs/rosedb/v2"
	"github.com/stavedb/stave/bitcask"
)

// rosedbKV is a Bitcask with an ordered index of whole keys. Its own option of
// syncing every put does nothing in this version (the log's batch write, which
// every put goes through, never looks at it); a batch that asks for a sync gets
// one.
type rosedbKV struct {
	db   *rosedb.DB
	sync bool
}

func openRosedb(dir string, o openOptions) (kv, error) {
	options := rosedb.DefaultOptions
	options.DirPath = dir
	db, err := rosedb.Open(options)
	return rosedbKV{db, o.sync == bitcask.SyncAlways}, err
}

func (r rosedbKV) put(key string, value []byte) error {
	if r.sync {
		return r.batch([]string{key}, func(int) []byte { return value })
	}
	return r.db.Put(octetsOf(key), value)
}

func (r rosedbKV) get(_ []byte, key string) ([]byte, bool, error) {
	value, err := r.db.Get(octetsOf(key)) // a copy
	if err == rosedb.ErrKeyNotFound {
		return nil, false, nil
	}
	return value, err == nil, err
}

func (r rosedbKV) batch(keys []string, value func(i int) []byte) error {
	batch := r.db.NewBatch(rosedb.BatchOptions{Sync: r.sync})
	for i, key := range keys {
		if err := batch.Put(octetsOf(key), value(i)); err != nil {
			_ = batch.Rollback() // the first error says why
			return err
		}
	}
	return batch.Commit()
}

func (r rosedbKV) remove(key string) error {
	batch := r.db.NewBatch(rosedb.BatchOptions{Sync: r.sync})
	if err := batch.Delete(octetsOf(key)); err != nil {
		_ = batch.Rollback() // the first error says why
		return err
	}
	return batch.Commit()
}

func (r rosedbKV) merge() error { return r.db.Merge(true) }

func (r rosedbKV) close() error { return r.db.Close() }
