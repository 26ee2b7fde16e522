package bitcask

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	systemSeed  = flag.Uint64("system.seed", 0, "seed of TestSystemRecords; 0: another one each time")
	systemSteps = flag.Int("system.steps", 400, "steps of TestSystemRecords")
)

// systemModel is a store and what its system records should be.
type systemModel struct {
	t    *testing.T
	rng  *rand.Rand
	fs   *vfs.Mem
	opts Options
	s    *Store
	want map[string]string
}

func (m *systemModel) open(dir string) *Store {
	m.t.Helper()
	o := m.opts
	o.seam.NoHints, o.seam.NoIndex = m.rng.IntN(2) == 0, m.rng.IntN(2) == 0
	s, err := Open(dir, &o)
	must(m.t, err)
	return s
}

func (m *systemModel) compare(s *Store, what string) {
	m.t.Helper()
	got := map[string]string{}
	for name, r := range s.system.Dump().There() {
		got[name] = string(r.Value)
	}
	if !maps.Equal(got, m.want) {
		m.t.Fatalf("%s: %q, want %q", what, got, m.want)
	}
	_, err := s.Check(context.Background(), func(f Finding) { m.t.Errorf("%s: %v", what, f) })
	must(m.t, err)
}

// step does one thing that may have an effect on system records, or should not.
func (m *systemModel) step(i int) {
	t, s, ctx := m.t, m.s, context.Background()
	switch m.rng.IntN(12) {
	default: // puts and deletes, some of them rolled back
		tx, err := s.Begin(true, "key")
		must(t, err)
		next := maps.Clone(m.want)
		for range 1 + m.rng.IntN(3) {
			name, value := fmt.Sprint("name", m.rng.IntN(6)), strings.Repeat(fmt.Sprint(i), m.rng.IntN(20))
			point := tx.Savepoint()
			must(t, tx.PutSystem(name, []byte(value)))
			switch {
			case m.rng.IntN(4) == 0:
				tx.RollbackTo(point)
			case value == "":
				delete(next, name)
			default:
				next[name] = value
			}
		}
		must(t, tx.PutString(0, "key", bytes.Repeat([]byte("v"), m.rng.IntN(300))))
		if m.rng.IntN(5) > 0 {
			_, err = tx.Commit()
			must(t, err)
			m.want = next
		}
		tx.End()
	case 0:
		tx, err := s.BeginAll(true)
		must(t, err)
		_, _, err = tx.Flush(0)
		tx.End()
		must(t, err)
	case 1, 2:
		must(t, s.Rotate())
		var ids []uint32
		for _, info := range s.Segments() {
			if info.Sealed && m.rng.IntN(3) > 0 {
				ids = append(ids, info.ID)
			}
		}
		stop, cancel := context.WithCancel(ctx)
		if m.rng.IntN(4) == 0 {
			cancel()
		}
		if _, err := s.Rewrite(stop, ids, RewriteOptions{}); err != nil && stop.Err() == nil {
			t.Fatal(err)
		}
		cancel()
	case 3, 4:
		must(t, s.Close())
		m.s = m.open("d")
	case 5: // a copy, and what repair makes of one
		dir := fmt.Sprint("copy", i)
		_, err := s.Backup(ctx, dir)
		must(t, err)
		c := m.open(dir)
		m.compare(c, "backup")
		must(t, c.Close())
		_, err = salvage(ctx, dir, dir+"s", &Options{seam: seam.Options{FS: m.fs}})
		must(t, err)
		c = m.open(dir + "s")
		m.compare(c, "salvaged")
		must(t, c.Close())
	case 6:
		must(t, s.SaveIndex())
		c := *m.fs.Clone()
		r, err := Open("d", &Options{ReadOnly: true, seam: seam.Options{FS: &c}}) // as after a killed process
		must(t, err)
		m.compare(r, "reader")
		must(t, r.Close())
	}
}

func TestSystemRecords(t *testing.T) {
	seed := chance.Draw(*systemSeed)
	steps := *systemSteps
	if testing.Short() {
		steps /= 4
	}
	m := &systemModel{t: t, rng: rand.New(rand.NewPCG(seed, 1)), fs: vfs.NewMem(), want: map[string]string{}}
	m.opts = Options{SegmentSize: 2 << 10, Sync: SyncNone, seam: seam.Options{FS: m.fs}}
	defer func() {
		if t.Failed() {
			t.Logf("-system.seed=%d", seed)
		}
	}()
	m.s = m.open("d")
	for i := range steps {
		m.step(i)
		m.compare(m.s, "store")
	}
	must(t, m.s.Close())
}

// The feature bit is on disk before the first system record is.
func TestSystemFeature(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s, err := Open("d", &Options{seam: seam.Options{FS: fault}})
	must(t, err)
	must(t, s.Put("key", nil))
	if s.man.Features&manifest.FeatureSystem != 0 {
		t.Errorf("a new store has feature bits %#x", s.man.Features)
	}
	checked := false
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Do: func(vfstest.Event) {
		m, err := manifest.Read(mem, "d", vfs.ReadOnly, nil)
		must(t, err)
		checked = m.Features&manifest.FeatureSystem != 0
		must(t, m.Close())
	}})
	commitNewer(t, s, func(tx *Tx) { must(t, tx.PutSystem("name", []byte("value"))) })
	if !checked {
		t.Error("the record is written before the bit")
	}
	must(t, s.Close())
}

func TestSystemLimits(t *testing.T) {
	s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem()}})
	must(t, err)
	tx, err := s.BeginAll(true)
	must(t, err)
	for _, bad := range []struct {
		name  string
		value int
	}{{"", 1}, {strings.Repeat("n", MaxSystemName+1), 1}, {"name", MaxSystemValue + 1}} {
		if err := tx.PutSystem(bad.name, make([]byte, bad.value)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes for a name of %d: %v", bad.value, len(bad.name), err)
		}
	}
	must(t, tx.PutSystem(strings.Repeat("n", MaxSystemName), make([]byte, MaxSystemValue)))
	must(t, tx.PutSystem("of nothing", nil))
	for i := range MaxSystemRecords - 1 {
		must(t, tx.PutSystem(fmt.Sprint(i), []byte("1")))
	}
	if err := tx.PutSystem("one more", []byte("1")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one more: %v", err)
	}
	_, err = tx.Commit()
	must(t, err)
	must(t, tx.PutSystem("7", []byte("anew")))
	if err := tx.PutSystem("one more", []byte("1")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one more, after the commit: %v", err)
	}
	tx.End()
	must(t, s.Close())
	s, err = Open("d", &Options{ReadOnly: true, seam: seam.Options{FS: s.opts.seam.FS}})
	must(t, err)
	if n := len(s.system.Dump()); n != MaxSystemRecords || len(s.System(strings.Repeat("n", MaxSystemName))) != MaxSystemValue {
		t.Errorf("%d records", n)
	}
	must(t, s.Close())
}

// A damaged system record is named, and an older one in its place is said to be
// stale.
func TestSystemLost(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("d", &Options{seam: seam.Options{FS: fs}})
	must(t, err)
	for _, value := range []string{"older", "newer"} {
		commitNewer(t, s, func(tx *Tx) { must(t, tx.PutSystem("name", []byte(value))) })
	}
	commitNewer(t, s, func(tx *Tx) { // neither is of the key of that name
		must(t, tx.PutString(0, "name", nil))
		_, err := tx.Drop(0, "name")
		must(t, err)
	})
	must(t, s.Rotate())
	must(t, s.Close())
	f, err := fs.Open(filepath.Join("d", format.DataName(1)), vfs.ReadWrite)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("N"), int64(bytes.Index(b, []byte("newer"))))
	must(t, errors.Join(err, f.Close()))
	result, err := salvage(context.Background(), "d", "out", &Options{seam: seam.Options{FS: fs}})
	must(t, err)
	if len(result.Lost) != 1 || result.Lost[0].Kind != "system" || result.Lost[0].Key != "name" || !result.Lost[0].Stale {
		t.Errorf("%+v", result)
	}
}

// A record that says that there is none stays as long as something older may be
// outside of the merge (I6), also if a merge that could have dropped it failed.
func TestSystemDeletionOutlivesMerge(t *testing.T) {
	for _, failing := range []bool{false, true} {
		fs := vfstest.NewFault(vfs.NewMem())
		s, err := Open("d", &Options{seam: seam.Options{FS: fs, NoIndex: true}})
		must(t, err)
		for _, value := range []string{"older", ""} {
			commitNewer(t, s, func(tx *Tx) { must(t, tx.PutSystem("name", []byte(value))) })
			must(t, s.Put("key", []byte("value")))
			must(t, s.Rotate())
		}
		if failing { // after the deletion has been judged
			fs.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpCreate}, Path: "*.data", Err: syscall.ENOSPC})
			if _, err := s.Rewrite(context.Background(), []uint32{1, 2}, RewriteOptions{}); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("a merge that was to fail: %v", err)
			}
		}
		_, err = s.Rewrite(context.Background(), []uint32{2}, RewriteOptions{})
		must(t, err)
		must(t, s.Close())
		s, err = Open("d", &Options{seam: seam.Options{FS: fs, NoIndex: true}})
		must(t, err)
		if v := s.System("name"); v != nil {
			t.Errorf("failing %v: %q is back", failing, v)
		}
		must(t, s.Close())
	}
}
