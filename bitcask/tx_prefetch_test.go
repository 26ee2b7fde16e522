package bitcask_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
)

// What is loaded ahead changes nothing: strings, collections, keys that the transaction has written, and keys that are
// not there read as they would without it.
func TestPrefetchChangesNothing(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint("key", i))
		if i%2 == 0 {
			must(t, s.Put(keys[i], []byte(keys[i])))
		}
	}
	tx, err := s.Begin(true, keys...)
	must(t, err)
	defer tx.Recycle()
	tx.PrefetchAll(0)
	coll, err := tx.Collection(0, "key1", keydir.Hash)
	must(t, err)
	must(t, tx.PutElem(0, "key1", coll, "field", []byte("value")))
	must(t, tx.PutString(0, "key3", []byte("key3")))
	tx.PrefetchAll(0)
	tx.Prefetch(0, append(keys, "foreign"))
	tx.Prefetch(7, keys) // a namespace that does not exist
	for i, key := range keys {
		slot, _, err := tx.Find(0, key)
		must(t, err)
		want := map[bool]keydir.Type{true: keydir.String, false: keydir.None}[i%2 == 0 || i == 3]
		if i == 1 {
			want = keydir.Hash
		}
		if slot.Type != want {
			t.Errorf("%s holds %v, want %v", key, slot.Type, want)
		}
		if want != keydir.String {
			continue
		}
		if value, err := tx.Value(nil, 0, key, "", keydir.String, slot.Loc); err != nil || string(value) != key {
			t.Errorf("%s is %q, %v", key, value, err)
		}
	}
	_, err = tx.Commit()
	must(t, err)
	tx.End()
	tx.PrefetchAll(0) // has ended
}

// A file that was truncated under the mapping is an error of the read, not a fault of what loads ahead.
func TestPrefetchOfTruncatedFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, &bitcask.Options{Sync: bitcask.SyncNone})
	var keys []string
	for i := range 8 {
		keys = append(keys, fmt.Sprint("key", i))
		must(t, s.Put(keys[i], make([]byte, 8<<10)))
	}
	must(t, s.Rotate())
	for _, key := range keys { // so that it is known to be in memory
		_, err := s.Get(key)
		must(t, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.data"))
	must(t, err)
	must(t, os.Truncate(files[0], 4096))
	tx, err := s.Begin(false, keys...)
	must(t, err)
	defer tx.Recycle()
	tx.PrefetchAll(0)
	if _, _, err = tx.Find(0, "key7"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("reading after the end of the file: %v", err)
	}
	var failed error
	for stripe := range keydir.Stripes {
		one, err := s.BeginStripe(false, stripe)
		must(t, err)
		if err := one.EachKey(0, stripe, 0, func(uint64, []byte, keydir.Type) bool { return true }); err != nil {
			failed = err
		}
		one.Recycle()
	}
	if !errors.Is(failed, io.ErrUnexpectedEOF) {
		t.Errorf("scanning after the end of the file: %v", failed)
	}
}
