package main

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/stavedb/stave/bitcask"
)

// pebbleKV is a log-structured merge tree. Its own defaults are for tests (4 MB
// of memtable, 8 MB of cache); these are sizes that a user would take for the
// data of the benchmark.
type pebbleKV struct {
	db    *pebble.DB
	write *pebble.WriteOptions
}

func openPebble(dir string, o openOptions) (kv, error) {
	cache := pebble.NewCache(256 << 20)
	defer cache.Unref() // the store holds it, too
	options := &pebble.Options{
		Cache: cache, MemTableSize: 64 << 20, FormatMajorVersion: pebble.FormatNewest,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		Logger:                     quietLogger{},
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		options.Levels[i].Compression = func() *block.CompressionProfile { return block.NoCompression }
	}
	if o.verify { // by default it ends the process, through the logger
		options.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
	}
	s := pebbleKV{write: pebble.NoSync}
	if o.sync == bitcask.SyncAlways {
		s.write = pebble.Sync
	}
	var err error
	s.db, err = pebble.Open(dir, options)
	return s, err
}

func (p pebbleKV) put(key string, value []byte) error {
	return p.db.Set(octetsOf(key), value, p.write)
}

func (p pebbleKV) get(dst []byte, key string) ([]byte, bool, error) {
	value, closer, err := p.db.Get(octetsOf(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, err
	}
	return append(dst, value...), true, closer.Close()
}

func (p pebbleKV) batch(keys []string, value func(i int) []byte) error {
	batch := p.db.NewBatch()
	for i, key := range keys {
		if err := batch.Set(octetsOf(key), value(i), nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	return errors.Join(batch.Commit(p.write), batch.Close())
}

func (p pebbleKV) remove(key string) error { return p.db.Delete(octetsOf(key), p.write) }

func (p pebbleKV) merge() error {
	if err := p.db.Compact(context.Background(), []byte{0}, []byte{0xFF}, true); err != nil {
		return err
	}
	p.db.TestOnlyWaitForCleaning() // the files that are gone count in its time, as they do with the others
	return nil
}

func (p pebbleKV) close() error { return p.db.Close() }

// quietLogger keeps engines from writing about their work.
type quietLogger struct{}

func (quietLogger) Infof(string, ...any)      {}
func (quietLogger) Errorf(string, ...any)     {}
func (quietLogger) Fatalf(f string, _ ...any) { panic("pebble: " + f) }
