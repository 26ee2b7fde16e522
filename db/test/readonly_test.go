package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/merge"
)

// TestReadersBesideAWriter opens a store for reading again and again while it is written, rotated
// and merged as fast as it goes. Each reader sees a state that was, no older than the one when it
// began to open.
func TestReadersBesideAWriter(t *testing.T) {
	const manySegments = 300
	dir := t.TempDir()
	o := &db.Options{SegmentSize: 4 << 10, Sync: db.SyncNone, NoMerge: true, Merge: merge.Policy{TriggerRatio: 0.2, IncludeRatio: 0.1, SmallCount: 2}}
	s, err := db.Open(dir, o)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	var count atomic.Int64
	step := func() error { // the counter and the number of fields agree, in each state
		return s.Update(func(tx *db.Tx) error {
			n, err := tx.String("counter").Incr(1)
			if err != nil {
				return err
			}
			field := strconv.FormatInt(n%50, 10)
			if _, err := tx.Hash("last").Put(field, []byte(strconv.FormatInt(n, 10))); err != nil {
				return err
			}
			if _, err := tx.List("list").PushBack([]byte(strings.Repeat("x", int(n%100)))); err != nil {
				return err
			}
			if n > 20 {
				_, err = tx.List("list").PopFront()
			}
			return err
		})
	}
	must(t, step())
	stop, done := make(chan struct{}), make(chan error, 2)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if s.Stats().Segments > manySegments {
				time.Sleep(time.Millisecond) // the merge lags on a busy machine, and readers open every segment
				continue
			}
			if err := step(); err != nil {
				done <- err
				return
			}
			count.Add(1)
		}
	}()
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := s.Merge(context.Background(), merge.RunOptions{All: n%4 == 0}); err != nil {
				done <- err
				return
			}
		}
	}()
	opens := 300
	if testing.Short() {
		opens = 50
	}
	for i := range opens {
		if err := readBeside(dir, count.Load(), i%4 == 0); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	must(t, errors.Join(<-done, <-done))
	t.Logf("%d commits", count.Load())
}

func readBeside(dir string, before int64, readDamaged bool) error {
	r, err := db.Open(dir, &db.Options{ReadOnly: true, ReadDamaged: readDamaged})
	if err != nil {
		return err
	}
	if damage := r.Log().Recovery().Damage; len(damage) > 0 {
		return errors.Join(fmt.Errorf("taken for damage: %v", damage), r.Close())
	}
	var findings []error
	_, err = r.Check(context.Background(), func(f bitcask.Finding) { findings = append(findings, errors.New(f.String())) })
	err = errors.Join(append(findings, err)...)
	if err == nil {
		err = r.View(func(tx *db.Tx) error { return consistent(tx, before) })
	}
	return errors.Join(err, r.Close())
}

func consistent(tx *db.Tx, before int64) error {
	text, err := tx.String("counter").Get()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return err
	}
	if n < before {
		return errors.New("the reader sees commit " + string(text) + ", there were " + strconv.FormatInt(before, 10))
	}
	last, err := tx.Hash("last").Get(strconv.FormatInt(n%50, 10))
	if err != nil || string(last) != string(text) {
		return errors.Join(err, errors.New("the counter is "+string(text)+", the last field "+string(last)))
	}
	elems, err := tx.List("list").Len()
	if want := min(n, 20); err != nil || int64(elems) != want {
		return errors.Join(err, errors.New("list of "+strconv.Itoa(elems)+" after commit "+string(text)))
	}
	return nil
}

// TestReaderChangesNothing opens a store for reading that a writer has left,
// uncleanly, and finds every byte as it was.
func TestReaderChangesNothing(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s, err := db.Open(from, seam.With(&db.Options{SegmentSize: 1 << 10}, seam.Options{NoHints: true}))
	must(t, err)
	for i := range 100 {
		must(t, s.String("k"+strconv.Itoa(i%20)).Put([]byte(strings.Repeat("v", i))))
	}
	copyAsKilled(t, dir, from)
	must(t, s.Close())
	for name, b := range map[string]string{"HINT.new": "x", "MANIFEST.new": "x", "000009999.data": "", "notes.txt": "mine"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600))
	}
	before := dirBytes(t, dir)
	r, err := db.Open(dir, &db.Options{ReadOnly: true})
	must(t, err)
	equal(t, "keys", r.Len(), 20)
	if err := r.String("k").Put(nil); !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("put: %v", err)
	}
	must(t, r.Close())
	equal(t, "the directory", dirBytes(t, dir), before)
}

// dirBytes is the names and bytes of all files.
func dirBytes(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var b strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		b.WriteString(e.Name() + "\n" + string(data) + "\n")
	}
	return b.String()
}
