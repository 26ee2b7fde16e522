package bitcask_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/vfs"
)

// TestOneOutputOrNone: a rewrite of several segments that is to have one output, and would need two, changes nothing: on a full
// disk the first would take space for nothing while its inputs stay.
func TestOneOutputOrNone(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "d", backupOptions(mem))
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for round := range 3 { // what is live stands in all segments, in no order
		for i := range 100 {
			if i%3 >= round {
				put(t, s, fmt.Sprint("key", i*37%100), fmt.Sprintf("value %d %d", i, round))
			}
		}
	}
	sealed := func() (ids []uint32) {
		for _, sg := range s.Segments() {
			if sg.Sealed {
				ids = append(ids, sg.ID)
			}
		}
		return ids
	}
	before := sealed()
	if len(before) < 4 {
		t.Fatal(before)
	}
	if r, err := s.Rewrite(t.Context(), before, bitcask.RewriteOptions{OneOutput: true}); !errors.Is(err, bitcask.ErrNoSpace) || len(r.Out) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if now := sealed(); slices.ContainsFunc(before, func(id uint32) bool { return !slices.Contains(now, id) }) {
		t.Errorf("segments are %d, were %d", now, before)
	}
	for _, id := range before { // one alone is as long as it takes
		if r, err := s.Rewrite(t.Context(), []uint32{id}, bitcask.RewriteOptions{OneOutput: true}); err != nil || len(r.Out) > 1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	for i := range 100 {
		want(t, s, fmt.Sprint("key", i*37%100), fmt.Sprintf("value %d %d", i, i%3))
	}
	if _, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) }); err != nil {
		t.Error(err)
	}
}
