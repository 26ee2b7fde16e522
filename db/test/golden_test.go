package db_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/merge"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden is a store as it was written once, and its content. It must open permanently: a new
// version of the format gets a new one.
type golden struct {
	dir       string
	chunkSize int // as in db.Options
	fill      func(t *testing.T, s *db.Store)
	// last is done after the store has been closed and opened once more, to the
	// active segment.
	last  func(t *testing.T, s *db.Store)
	files []string // that it must have
	// copied: it is a backup of the store that was filled, opened and written to.
	copied bool
	// indexed: its INDEX is of the version that is written now.
	indexed bool
	hinted  bool // so are its hints
}

// TestGolden opens the store that version 1 of the format began with.
func TestGolden(t *testing.T) {
	g := golden{dir: "testdata/golden-v1", fill: fillGolden, files: []string{"MANIFEST", bitcask.TTLName}}
	g.last = func(t *testing.T, s *db.Store) { must(t, s.String("active").Put([]byte("in the active segment"))) }
	g.test(t)
}

func (g golden) options() *db.Options {
	return seam.With(&db.Options{Namespaces: modelNamespaces, SegmentSize: 2 << 10, NoMerge: true, ExpireEvery: -1, Sync: db.SyncNone},
		seam.Options{ChunkSize: g.chunkSize})
}

// test opens a copy of the golden store under several options, also without the
// files that can be made anew.
func (g golden) test(t *testing.T) {
	if *update {
		g.update(t)
	}
	dump, err := os.ReadFile(filepath.Join(g.dir, "dump.txt"))
	must(t, err)
	for name, prepare := range map[string]func(dir string, o *db.Options) error{
		"as it is":    func(string, *db.Options) error { return nil },
		"read-only":   func(_ string, o *db.Options) error { o.ReadOnly = true; return nil },
		"no mapping":  func(_ string, o *db.Options) error { seam.Of(o).NoMapping = true; return nil },
		"no hints":    func(dir string, _ *db.Options) error { return removeAll(dir, "*.hint") },
		"no TTL file": func(dir string, _ *db.Options) error { return removeAll(dir, bitcask.TTLName) },
		"NoIndex":     func(_ string, o *db.Options) error { seam.Of(o).NoIndex = true; return nil },
		"only the log": func(dir string, o *db.Options) error {
			return errors.Join(removeAll(dir, bitcask.IndexFile), removeAll(dir, bitcask.TTLName), removeAll(dir, "*.hint"))
		},
		"other defaults": func(_ string, o *db.Options) error { *o = db.Options{Namespaces: modelNamespaces}; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for the disk
			o := g.options()
			dir := g.copy(t)
			must(t, prepare(dir, o))
			s, err := db.Open(dir, o)
			must(t, err)
			if r := s.Log().Recovery(); name == "as it is" && (r.Indexed != g.indexed || !g.indexed && r.Replayed == 0) {
				t.Errorf("%+v; want the INDEX used: %v", r, g.indexed)
			}
			if r := s.Log().Recovery(); name == "NoIndex" && (r.Scanned == 0) != g.hinted {
				t.Errorf("%+v; want the hints used: %v", r, g.hinted)
			}
			wantDump(t, s, string(dump))
			if o.ReadOnly {
				must(t, s.Close())
				return
			}
			// An old store can be merged and extended now.
			_, err = s.Merge(context.Background(), merge.RunOptions{All: true})
			must(t, err)
			wantDump(t, s, string(dump))
			must(t, s.String("new").Put([]byte("value")))
			must(t, s.Close())
			s, err = db.Open(dir, o)
			must(t, err)
			_, err = s.Key("new").Delete()
			must(t, err)
			wantDump(t, s, string(dump))
			must(t, s.Close())
		})
	}
}

// copy returns the directory of a copy.
func (g golden) copy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join(g.dir, "store"))))
	return dir
}

func removeAll(dir, pattern string) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	for _, name := range names {
		if err == nil {
			err = os.Remove(name)
		}
	}
	return err
}

func wantDump(t *testing.T, s *db.Store, want string) {
	t.Helper()
	_, err := s.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("check: %v", f) })
	must(t, err)
	m, err := readModel(s)
	must(t, err)
	if got := m.String(); got != want {
		t.Errorf("the store\n%s", differences(got, want))
	}
}

// counting is a source of bytes that is the same every time, for the store id
// and the hash seed.
type counting byte

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(*c)
		*c++
	}
	return len(p), nil
}

// update writes the golden store anew. All but the order of the entries in the
// TTL file is the same every time: store id, hash seed, clock and the order of
// events are.
func (g golden) update(t *testing.T) {
	dir := filepath.Join(g.dir, "store")
	if g.copied {
		dir = t.TempDir()
	}
	must(t, os.RemoveAll(g.dir))
	must(t, os.MkdirAll(g.dir, 0o755))
	must(t, os.MkdirAll(dir, 0o755))
	random := crand.Reader
	defer func() { crand.Reader = random }()
	crand.Reader = new(counting)
	synctest.Test(t, func(t *testing.T) {
		s, err := db.Open(dir, g.options())
		must(t, err)
		g.fill(t, s)
		// A store that was closed, opened and written to once more.
		must(t, s.Close())
		s, err = db.Open(dir, g.options())
		must(t, err)
		if g.copied {
			original := s
			dir = filepath.Join(g.dir, "store")
			_, err := original.Backup(context.Background(), dir)
			must(t, errors.Join(err, original.Close()))
			s, err = db.Open(dir, g.options())
			must(t, err)
		}
		g.last(t, s)
		synctest.Wait() // a full segment is sealed in the background
		wantGoldenShape(t, s)
		time.Sleep(24 * time.Hour) // keys with an hour to live expire, undeleted
		m, err := readModel(s)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(g.dir, "dump.txt"), []byte(m.String()), 0o644))
		must(t, s.Close())
	})
	must(t, os.Remove(filepath.Join(dir, "LOCK"))) // it names a process
	for _, name := range g.files {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// fillGolden does everything that leaves a trace in the files.
func fillGolden(t *testing.T, s *db.Store) {
	rng := rand.New(rand.NewPCG(1, 2))
	never := time.UnixMilli(200_000_000_000_000) // in the year 8307
	flushed, err := s.Use(1)
	must(t, err)
	_, err = flushed.Set("flushed").Add("a", "b", "c")
	must(t, err)
	must(t, flushed.Flush())
	must(t, flushed.String("after the flush").Put([]byte("1"), db.ExpireAt(never)))
	for i, name := range modelNames {
		must(t, s.String("string"+name).Put([]byte(name)))
		_, err := s.Hash("hash").Put(name, []byte(name))
		must(t, err)
		_, err = s.Hash(name).PutAll(db.Field{Name: name, Value: []byte{}}, db.Field{Name: "f", Value: []byte(strconv.Itoa(i))})
		must(t, err)
		_, err = s.Set("set").Add(name, "member"+strconv.Itoa(i))
		must(t, err)
		_, err = s.SortedSet("zset").Add(db.Scored{Member: name, Score: modelScores[i%len(modelScores)]})
		must(t, err)
		_, err = s.List("list").PushBack([]byte(name), nil)
		must(t, err)
		_, err = s.List("list").PushFront([]byte(strconv.Itoa(i)))
		must(t, err)
		if i%3 == 0 {
			_, err = s.Key(name).ExpireAt(never.Add(time.Duration(i) * time.Millisecond))
			must(t, err)
		}
	}
	// Tombstones of keys, elements and deadlines; a merge of some segments.
	_, err = s.Merge(context.Background(), merge.RunOptions{All: true})
	must(t, err)
	_, err = s.Keyspace().Delete("stringa", "hash:a:b")
	must(t, err)
	_, err = s.Hash("hash").Delete("a", "b")
	must(t, err)
	_, err = s.Set("set").Remove("", "member3")
	must(t, err)
	_, err = s.SortedSet("zset").RemoveRange(db.Scores(0, math.Inf(1)))
	must(t, err)
	must(t, s.List("list").Trim(2, -3))
	_, err = s.Key("").Persist()
	must(t, err)
	must(t, s.Key("stringb").Rename("renamed"))
	must(t, s.Swap(2, 3))
	must(t, s.Update(func(tx *db.Tx) error {
		tx, err := tx.Use(2)
		if err != nil {
			return err
		}
		for range 20 {
			var value [8]byte
			binary.LittleEndian.PutUint64(value[:], rng.Uint64())
			if _, err := tx.List("batch").PushBack(bytes.Repeat(value[:], 8)); err != nil {
				return err
			}
		}
		return tx.String("soon gone").Put([]byte("x"), db.TTL(time.Hour))
	}))
	must(t, s.String("large").Put([]byte(strings.Repeat("larger than a segment ", 120))))
	must(t, s.String("last").Put(nil))
	synctest.Wait() // for the hints
}

// wantGoldenShape makes sure that the golden store has one of each.
func wantGoldenShape(t *testing.T, s *db.Store) {
	var merged, sealed, active int
	for _, sg := range s.Log().Segments() {
		hint, err := filepath.Glob(filepath.Join(s.Log().Dir(), "*"+strconv.Itoa(int(sg.ID))+".hint"))
		must(t, err)
		switch {
		case !sg.Sealed:
			active++
		case len(hint) == 0:
			t.Errorf("segment %d has no hint", sg.ID)
		case sg.Merged:
			merged++
		default:
			sealed++
		}
	}
	if merged == 0 || sealed == 0 || active != 1 {
		t.Errorf("%d merged, %d sealed and %d active segments", merged, sealed, active)
	}
}
