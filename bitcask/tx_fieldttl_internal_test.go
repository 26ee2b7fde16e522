package bitcask

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestCheckFindsDeadlineWithoutField takes a field out of the keydir that has a deadline.
func TestCheckFindsDeadlineWithoutField(t *testing.T) {
	s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	f, err := tx.Collection(0, "h", keydir.Hash)
	err = errors.Join(err, tx.PutElem(0, "h", f, "lost", nil), tx.PutElem(0, "h", f, "stays", nil), tx.SetFieldDeadline(0, "h", "lost", 5))
	if _, cerr := tx.Commit(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	f.Delete("lost")
	tx.End()
	var details []string
	if _, err := s.Check(context.Background(), func(f Finding) { details = append(details, f.String()) }); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(details, "\n"); !strings.Contains(all, `deadline of field "lost", which is not there`) {
		t.Errorf("check finds %q", all)
	}
}
