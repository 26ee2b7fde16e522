package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/bitcask"
)

func TestOpenMemory(t *testing.T) {
	s, err := bitcask.OpenMemory(&bitcask.Options{SegmentSize: 4096})
	must(t, err)
	for i := range 500 {
		must(t, s.Put(fmt.Sprint(i%50), fmt.Appendf(nil, "value %d", i)))
	}
	must(t, s.Rotate())
	var ids []uint32
	for _, info := range s.Segments() {
		if info.Sealed {
			ids = append(ids, info.ID)
		}
	}
	_, err = s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
	must(t, err)
	dir := filepath.Join(t.TempDir(), "saved")
	_, err = s.Backup(context.Background(), dir)
	must(t, err)
	must(t, s.Close())
	must(t, s.Close())

	saved, err := bitcask.Open(dir, nil)
	must(t, err)
	defer saved.Close()
	for i := range 50 {
		v, err := saved.Get(fmt.Sprint(i))
		must(t, err)
		if want := fmt.Sprintf("value %d", 450+i); string(v) != want {
			t.Errorf("key %d = %q, want %q", i, v, want)
		}
	}
	if _, err := bitcask.OpenMemory(&bitcask.Options{ReadOnly: true}); !errors.Is(err, bitcask.ErrMemory) {
		t.Errorf("for reading only: %v", err)
	}
}
