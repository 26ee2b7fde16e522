package db_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// TestInvalidOptions: Open refuses them, names the field and makes nothing.
func TestInvalidOptions(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		field string
		o     db.Options
	}{
		{"Options.Sync", db.Options{Sync: 3}},
		{"Options.SyncEvery", db.Options{SyncEvery: -1}},
		{"Options.SegmentSize", db.Options{SegmentSize: 2<<30 + 1}},
		{"Options.SegmentSize", db.Options{SegmentSize: -1}},
		{"Options.Namespaces", db.Options{Namespaces: bitcask.MaxNamespaces + 1}},
		{"Options.Namespaces", db.Options{Namespaces: -1}},
		{"Policy.TriggerRatio", db.Options{Merge: merge.Policy{TriggerRatio: 60}}},
		{"Policy.IncludeRatio", db.Options{Merge: merge.Policy{IncludeRatio: -1}}},
		{"Policy.TriggerBytes", db.Options{Merge: merge.Policy{TriggerBytes: -1}}},
		{"Policy.IncludeBytes", db.Options{Merge: merge.Policy{IncludeBytes: -1}}},
		{"Policy.SmallBytes", db.Options{Merge: merge.Policy{SmallBytes: -1}}},
		{"Policy.SmallCount", db.Options{Merge: merge.Policy{SmallCount: -1}, NoMerge: true}},
	} {
		_, err := db.OpenMemory(&tt.o)
		_, onDisk := db.Open(filepath.Join(dir, "store"), &tt.o)
		for _, err := range []error{err, onDisk} {
			if !errors.Is(err, db.ErrOption) || !strings.Contains(err.Error(), tt.field+" is ") {
				t.Errorf("%s: %v", tt.field, err)
			}
		}
	}
	made, err := os.ReadDir(dir)
	if err != nil || len(made) > 0 {
		t.Error("made:", made, err)
	}
	equal(t, "not found", db.ErrNotFound, bitcask.ErrNotFound)
	equal(t, "invalid option", db.ErrOption, bitcask.ErrOption)
}

// TestValidOptions: values with a meaning of their own are accepted.
func TestValidOptions(t *testing.T) {
	for _, o := range []*db.Options{
		nil, {}, {ExpireEvery: -1}, {Reserve: -1}, {SegmentSize: 1}, {Namespaces: bitcask.MaxNamespaces}, {Merge: merge.Policy{TriggerRatio: 1, BytesPerSecond: -1}},
	} {
		s, err := db.OpenMemory(o)
		must(t, err)
		must(t, s.Close())
	}
}

// TestErrorsNameTheirPackage first, or Stave where it is that of two packages, and a directory once.
func TestErrorsNameTheirPackage(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	_, missing := db.Open(none, &db.Options{ReadOnly: true})
	_, option := db.Open(none, &db.Options{Namespaces: -1})
	_, memory := db.OpenMemory(&db.Options{ReadOnly: true})
	s := open(t)
	readOnly := s.View(func(tx *db.Tx) error { return tx.String("k").Put(nil) })
	notLocked := s.UpdateKeys([]string{"k"}, func(tx *db.Tx) error { return tx.String("other").Put(nil) })
	long := s.String(string(make([]byte, 1<<16))).Put(nil)
	_, absent := s.String("k").Get()
	must(t, s.Close())
	for what, err := range map[string]error{
		"missing": missing, "option": option, "memory": memory, "read-only": readOnly, "not locked": notLocked, "long": long, "absent": absent, "closed": s.String("k").Put(nil),
	} {
		if text, _, _ := strings.Cut(fmt.Sprint(err), ": "); text != "db" && text != "stave" && text != "bitcask" {
			t.Errorf("%s: %s", what, text)
		}
	}
	if n := strings.Count(missing.Error(), none); n != 1 || !errors.Is(missing, fs.ErrNotExist) {
		t.Errorf("the directory is named %d times: %v", n, missing)
	}
}
