package dbtest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/leak"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m) }

func TestNewIsEmptyAndClosedAtTheEnd(t *testing.T) {
	var stores []*db.Store
	for _, options := range [][]dbtest.Option{nil, {dbtest.InDirectory()}, {dbtest.WithOptions(db.Options{Namespaces: 3})}} {
		t.Run("store", func(t *testing.T) {
			s := dbtest.New(t, options...)
			if n := s.Len(); n != 0 {
				t.Errorf("a new store has %d keys", n)
			}
			if err := s.String("a").Put([]byte("1")); err != nil {
				t.Fatal(err)
			}
			stores = append(stores, s)
		})
	}
	for i, s := range stores {
		if err := s.String("a").Put(nil); !errors.Is(err, db.ErrClosed) {
			t.Errorf("store %d after its test: %v", i, err)
		}
	}
	if n := stores[2].Namespaces(); n != 3 {
		t.Errorf("WithOptions: %d namespaces", n)
	}
}

func TestInDirectoryCanBeOpenedAgain(t *testing.T) {
	s := dbtest.New(t, dbtest.InDirectory())
	if err := s.String("a").Put([]byte("1")); err != nil {
		t.Fatal(err)
	}
	dir := s.Stats().Dir
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if v, err := again.String("a").Get(); err != nil || string(v) != "1" {
		t.Errorf("a = %q, %v", v, err)
	}
}

// recorder is a test that notes its failures, and runs its cleanups on request.
type recorder struct {
	testing.TB
	failed   []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

func TestDamageFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	s := dbtest.New(r, dbtest.InDirectory(), dbtest.WithOptions(*seam.With(&db.Options{}, seam.Options{NoMapping: true})))
	if err := s.String("a").Put([]byte("precious")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.Stats().Dir, "000000001.data")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "precious")
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("P"), int64(at)); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.cleanups {
		f()
	}
	if len(r.failed) == 0 || !strings.Contains(r.failed[0], "000000001.data") {
		t.Errorf("damage under the store: the test failed with %q", r.failed)
	}
}
