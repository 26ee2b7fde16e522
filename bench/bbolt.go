package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/stavedb/stave/bitcask"
	bolt "go.etcd.io/bbolt"
)

// bboltKV is a B+tree in one mapped file.
type bboltKV struct {
	db   *bolt.DB
	sync bool
}

var bboltBucket = []byte("bench")

func bboltOptions() *bolt.Options {
	return &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoStatistics: true, Timeout: time.Second}
}

func openBbolt(dir string, o openOptions) (kv, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	options := bboltOptions()
	options.NoSync = o.sync != bitcask.SyncAlways
	options.NoGrowSync = options.NoSync
	db, err := bolt.Open(filepath.Join(dir, "bbolt.data"), 0o600, options)
	if err != nil {
		return nil, err
	}
	// As many as there are writers that wait; or else each batch would be a timeout long.
	db.MaxBatchSize, db.MaxBatchDelay = 64, time.Millisecond
	err = db.Update(func(tx *bolt.Tx) error { return errOf(tx.CreateBucketIfNotExists(bboltBucket)) })
	return &bboltKV{db, !options.NoSync}, err
}

func (b *bboltKV) put(key string, value []byte) error {
	put := func(tx *bolt.Tx) error { return tx.Bucket(bboltBucket).Put(octetsOf(key), value) }
	if b.sync {
		return b.db.Batch(put)
	}
	return b.db.Update(put)
}

func (b *bboltKV) get(dst []byte, key string) ([]byte, bool, error) {
	found := false
	err := b.db.View(func(tx *bolt.Tx) error {
		value := tx.Bucket(bboltBucket).Get(octetsOf(key))
		found = value != nil
		dst = append(dst, value...)
		return nil
	})
	return dst, found, err
}

func (b *bboltKV) batch(keys []string, value func(i int) []byte) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(bboltBucket)
		for i, key := range keys {
			if err := bucket.Put(octetsOf(key), value(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bboltKV) remove(key string) error {
	return b.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bboltBucket).Delete(octetsOf(key)) })
}

// merge copies the live data into a new file, which then takes the place of the old one, as "bbolt
// compact" does.
func (b *bboltKV) merge() error {
	name := b.db.Path()
	options := bboltOptions()
	options.NoSync = true
	to, err := bolt.Open(name+".new", 0o600, options)
	if err != nil {
		return err
	}
	if err := bolt.Compact(to, b.db, 64<<10); err != nil {
		return errors.Join(err, to.Close())
	}
	if err := errors.Join(to.Sync(), to.Close(), b.db.Close(), os.Rename(name+".new", name)); err != nil {
		return err
	}
	b.db, err = bolt.Open(name, 0o600, options)
	return err
}

func (b *bboltKV) close() error { return b.db.Close() }
