package db_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
)

// oneWayLog calls told before it notes that an opening is one-way.
type oneWayLog struct {
	slog.Handler
	told func()
}

func (l oneWayLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "versions before it cannot open it any more") {
		l.told()
	}
	return nil
}

func (oneWayLog) Enabled(context.Context, slog.Level) bool { return true }

// TestOpeningIsOneWay: before an opening changes a store so that the versions that have written it refuse it, the log says so, once;
// reading it changes nothing.
func TestOpeningIsOneWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "old")
	must(t, os.CopyFS(dir, os.DirFS("testdata/golden-v1/store")))
	manifest := func() []byte { return ok[[]byte](t)(os.ReadFile(filepath.Join(dir, "MANIFEST"))) }
	before := manifest()
	for _, c := range []struct{ readOnly, told bool }{{true, false}, {false, true}, {false, false}} {
		told := 0
		log := oneWayLog{slog.DiscardHandler, func() {
			if told++; !bytes.Equal(manifest(), before) {
				t.Error("the manifest is another one by then")
			}
		}}
		s := ok[*db.Store](t)(db.Open(dir, &db.Options{Namespaces: modelNamespaces, ReadOnly: c.readOnly, Logger: slog.New(log)}))
		must(t, s.Close())
		if (told == 1) != c.told || told > 1 || bytes.Equal(manifest(), before) != c.readOnly {
			t.Errorf("%+v: told %d times, the manifest is as before: %v", c, told, bytes.Equal(manifest(), before))
		}
	}
}
