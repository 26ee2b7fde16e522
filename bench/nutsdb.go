package main

import (
	"errors"

	"github.com/nutsdb/nutsdb"
	"github.com/stavedb/stave/bitcask"
)

// nutsdbKV is a Bitcask with buckets and an ordered index of whole keys.
type nutsdbKV struct{ db *nutsdb.DB }

const nutsdbBucket = "bench"

func openNutsdb(dir string, o openOptions) (kv, error) {
	options := nutsdb.DefaultOptions
	options.Dir, options.SyncEnable = dir, o.sync == bitcask.SyncAlways
	options.EntryIdxMode = nutsdb.HintKeyAndRAMIdxMode // values stay on disk
	if o.segmentSize > 0 {
		options.SegmentSize = o.segmentSize
	}
	db, err := nutsdb.Open(options)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *nutsdb.Tx) error {
		if tx.ExistBucket(nutsdb.DataStructureBTree, nutsdbBucket) {
			return nil
		}
		return tx.NewBucket(nutsdb.DataStructureBTree, nutsdbBucket)
	})
	return nutsdbKV{db}, err
}

func (n nutsdbKV) put(key string, value []byte) error {
	return n.db.Update(func(tx *nutsdb.Tx) error { return tx.Put(nutsdbBucket, octetsOf(key), value, nutsdb.Persistent) })
}

func (n nutsdbKV) get(_ []byte, key string) (value []byte, found bool, err error) {
	err = n.db.View(func(tx *nutsdb.Tx) error {
		value, err = tx.Get(nutsdbBucket, octetsOf(key)) // a copy
		return err
	})
	if errors.Is(err, nutsdb.ErrKeyNotFound) {
		return nil, false, nil
	}
	return value, err == nil, err
}

func (n nutsdbKV) batch(keys []string, value func(i int) []byte) error {
	return n.db.Update(func(tx *nutsdb.Tx) error {
		for i, key := range keys {
			if err := tx.Put(nutsdbBucket, octetsOf(key), value(i), nutsdb.Persistent); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n nutsdbKV) remove(key string) error {
	return n.db.Update(func(tx *nutsdb.Tx) error { return tx.Delete(nutsdbBucket, octetsOf(key)) })
}

func (n nutsdbKV) merge() error {
	err := n.db.Merge()
	if err == nutsdb.ErrDontNeedMerge { // a single segment cannot be merged
		return nil
	}
	return err
}

func (n nutsdbKV) close() error { return n.db.Close() }
