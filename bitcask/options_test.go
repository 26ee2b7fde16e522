package bitcask_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestInvalidOptions: Open and Salvage refuse them, name the field and make nothing.
func TestInvalidOptions(t *testing.T) {
	mem := vfs.NewMem()
	for _, tt := range []struct {
		field string
		o     bitcask.Options
	}{
		{"Sync", bitcask.Options{Sync: -1}},
		{"Sync", bitcask.Options{Sync: 3}},
		{"SyncEvery", bitcask.Options{SyncEvery: -1}},
		{"SegmentSize", bitcask.Options{SegmentSize: -1}},
		{"SegmentSize", bitcask.Options{SegmentSize: 2<<30 + 1}},
	} {
		seam.Of(&tt.o).FS = mem
		_, opening := bitcask.Open("d", &tt.o)
		_, inMemory := bitcask.OpenMemory(&tt.o)
		_, salvaging := repair.Salvage(t.Context(), "d", "out", &tt.o)
		for _, err := range []error{opening, inMemory, salvaging} {
			if !errors.Is(err, bitcask.ErrOption) || !strings.Contains(err.Error(), "Options."+tt.field+" is ") {
				t.Errorf("%+v: %v, want an error that names %s", tt.o, err, tt.field)
			}
		}
	}
	if names, err := mem.List("."); err == nil && len(names) > 0 {
		t.Error("there are files:", names)
	}
}

// TestValidOptions: what stands at the ends of a range, or has a meaning of its own, is taken.
func TestValidOptions(t *testing.T) {
	for _, o := range []*bitcask.Options{
		nil, {}, {Sync: bitcask.SyncNone}, {SyncEvery: 1}, {SegmentSize: 1}, {SegmentSize: 2 << 30}, {Reserve: -1}, {Reserve: 1},
	} {
		s, err := bitcask.OpenMemory(o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		closeStore(t, s)
	}
}
