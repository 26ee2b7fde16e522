package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// TestInvalidOptions: Open refuses them, names the field and makes nothing.
func TestInvalidOptions(t *testing.T) {
	for field, o := range map[string]*db.Options{
		"Sync": {Sync: 3}, "SyncEvery": {SyncEvery: -1}, "SegmentSize": {SegmentSize: 2<<30 + 1}, "Namespaces": {Namespaces: bitcask.MaxNamespaces + 1},
	} {
		_, err := db.OpenMemory(o)
		if !errors.Is(err, db.ErrOption) || !strings.Contains(err.Error(), "Options."+field+" ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	equal(t, "not found", db.ErrNotFound, bitcask.ErrNotFound)
}
