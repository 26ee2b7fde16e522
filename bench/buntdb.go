package main

import (
	"os"
	"path/filepath"

	"github.com/stavedb/stave/bitcask"
	"github.com/tidwall/buntdb"
)

// buntdbKV is a B-tree in memory, keys and values, with a log of commands.
type buntdbKV struct{ db *buntdb.DB }

func openBuntdb(dir string, o openOptions) (kv, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	db, err := buntdb.Open(filepath.Join(dir, "buntdb.data"))
	if err != nil {
		return nil, err
	}
	config := buntdb.Config{SyncPolicy: buntdb.Never, AutoShrinkDisabled: true}
	if o.sync == bitcask.SyncAlways {
		config.SyncPolicy = buntdb.Always
	}
	return buntdbKV{db}, db.SetConfig(config)
}

func (b buntdbKV) put(key string, value []byte) error {
	return b.db.Update(func(tx *buntdb.Tx) error {
		_, _, err := tx.Set(key, string(value), nil)
		return err
	})
}

func (b buntdbKV) get(dst []byte, key string) ([]byte, bool, error) {
	err := b.db.View(func(tx *buntdb.Tx) error {
		value, err := tx.Get(key)
		dst = append(dst, value...)
		return err
	})
	if err == buntdb.ErrNotFound {
		return dst, false, nil
	}
	return dst, err == nil, err
}

func (b buntdbKV) batch(keys []string, value func(i int) []byte) error {
	return b.db.Update(func(tx *buntdb.Tx) error {
		for i, key := range keys {
			if _, _, err := tx.Set(key, string(value(i)), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b buntdbKV) remove(key string) error {
	return b.db.Update(func(tx *buntdb.Tx) error { return errOf(tx.Delete(key)) })
}

func (b buntdbKV) merge() error { return b.db.Shrink() }

func (b buntdbKV) close() error { return b.db.Close() }
