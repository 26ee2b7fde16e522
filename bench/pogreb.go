package main

import (
	"io"
	"log"

	"github.com/akrylysov/pogreb"
	"github.com/stavedb/stave/bitcask"
)

// pogrebKV is a hash table in mapped files, with the records in a log of their own. It has no
// batches: puts of a batch go one by one.
type pogrebKV struct{ db *pogreb.DB }

func openPogreb(dir string, o openOptions) (kv, error) {
	pogreb.SetLogger(log.New(io.Discard, "", 0))
	options := &pogreb.Options{}
	if o.sync == bitcask.SyncAlways {
		options.BackgroundSyncInterval = -1 // after every put
	}
	db, err := pogreb.Open(dir, options)
	return pogrebKV{db}, err
}

func (p pogrebKV) put(key string, value []byte) error { return p.db.Put(octetsOf(key), value) }

func (p pogrebKV) get(_ []byte, key string) ([]byte, bool, error) {
	value, err := p.db.Get(octetsOf(key)) // a copy
	return value, value != nil, err
}

func (p pogrebKV) batch(keys []string, value func(i int) []byte) error {
	for i, key := range keys {
		if err := p.put(key, value(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p pogrebKV) remove(key string) error { return p.db.Delete(octetsOf(key)) }

// merge takes the segments of at least 32 MB half of which is garbage.
func (p pogrebKV) merge() error { return errOf(p.db.Compact()) }

func (p pogrebKV) close() error { return p.db.Close() }
