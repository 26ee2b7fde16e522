package main

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/stavedb/stave/bitcask"
)

// badgerKV is a log-structured merge tree; values as short as the benchmark's
// lie in the tree itself.
type badgerKV struct{ db *badger.DB }

func openBadger(dir string, o openOptions) (kv, error) {
	verification := options.NoVerification // its default
	if o.verify {
		verification = options.OnTableAndBlockRead
	}
	db, err := badger.Open(badger.DefaultOptions(dir).
		WithChecksumVerificationMode(verification).
		WithVerifyValueChecksum(o.verify).
		WithSyncWrites(o.sync == bitcask.SyncAlways).
		WithCompression(options.None).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithLogger(nil))
	return badgerKV{db}, err
}

func (b badgerKV) put(key string, value []byte) error {
	return b.db.Update(func(tx *badger.Txn) error { return tx.Set(octetsOf(key), value) })
}

func (b badgerKV) get(dst []byte, key string) ([]byte, bool, error) {
	err := b.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get(octetsOf(key))
		if err != nil {
			return err
		}
		return item.Value(func(value []byte) error {
			dst = append(dst, value...)
			return nil
		})
	})
	if errors.Is(err, badger.ErrKeyNotFound) {
		return dst, false, nil
	}
	return dst, err == nil, err
}

func (b badgerKV) batch(keys []string, value func(i int) []byte) error {
	return b.db.Update(func(tx *badger.Txn) error {
		for i, key := range keys {
			if err := tx.Set(octetsOf(key), value(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b badgerKV) remove(key string) error {
	return b.db.Update(func(tx *badger.Txn) error { return tx.Delete(octetsOf(key)) })
}

func (b badgerKV) merge() error { return b.db.Flatten(2) }

func (b badgerKV) close() error { return b.db.Close() }
