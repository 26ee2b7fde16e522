package backup

import (
	"testing"

	"github.com/stavedb/stave/bitcask/internal/manifest"
)

// TestRelated: segments may be shared with an earlier backup of the store, with what the store was restored from, and
// with another copy of that; with nothing else, whatever the ids of segments are.
func TestRelated(t *testing.T) {
	of := func(store byte, origins ...byte) *manifest.Manifest {
		m := &manifest.Manifest{Store: [16]byte{store}}
		for _, id := range origins {
			m.Origins = append(m.Origins, manifest.Origin{Store: [16]byte{id}})
		}
		return m
	}
	for name, c := range map[string]struct {
		backup, store *manifest.Manifest
		want          bool
	}{
		"the store itself":             {of(1), of(1), true},
		"a backup of the store":        {of(2, 1), of(1), true},
		"what the store was made from": {of(1), of(2, 1), true},
		"another copy of the same":     {of(2, 1), of(3, 1), true},
		"a copy of a copy":             {of(3, 1, 2), of(2, 1), true},
		"another store":                {of(2), of(1), false},
		"a copy of another one":        {of(3, 2), of(4, 1), false},
	} {
		if got := related(c.backup, c.store); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
