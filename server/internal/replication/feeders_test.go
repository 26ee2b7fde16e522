package replication

import (
	"context"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
)

// TestIdleEnds: the stream ends repl-backlog-ttl after the last replica has left, also where one joined while the one before
// it was leaving.
func TestIdleEnds(t *testing.T) {
	store, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	m := NewFeeders(store)
	m.Settings.BacklogTTL.Store(1)
	join := func() *Feeder {
		f, err := m.Join(Ask{ReplID: "?"}, func() {}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	captures := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.stop != nil
	}
	first := join()
	m.waiting.Lock() // stops the one that leaves after it is not counted any more
	left := make(chan struct{})
	go func() {
		m.Leave(first)
		close(left)
	}()
	for m.Stream.count() > 0 {
		time.Sleep(time.Millisecond)
	}
	second := join()
	m.waiting.Unlock()
	<-left
	time.Sleep(1500 * time.Millisecond)
	if !captures() {
		t.Fatal("the stream has ended, and there is a replica")
	}
	m.Leave(second)
	for end := time.Now().Add(20 * time.Second); captures(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the stream goes on without replicas")
		}
	}
}

// TestSnapshotsAreBounded: beyond mostSnapshots a replica waits for the end of another one's file, or its own end.
func TestSnapshotsAreBounded(t *testing.T) {
	m := NewFeeders(dbtest.New(t))
	open := func(ctx context.Context) (*db.Store, func() error, error) {
		f, err := m.Join(Ask{ReplID: "?", Next: -1}, func() {}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return m.Snapshot(ctx, f)
	}
	var ends []func() error
	for range mostSnapshots {
		_, done, err := open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := open(short); err != context.DeadlineExceeded {
		t.Fatalf("one more: %v", err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = ends[0]()
	}()
	_, done, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range append(ends[1:], done) {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// TestResumedEnds: a stream that continues the one of before a planned restart ends as any other if no replica comes.
func TestResumedEnds(t *testing.T) {
	store := dbtest.New(t)
	m := NewFeeders(store)
	f, err := m.Join(Ask{ReplID: "?"}, func() {}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before := m.Stream.Position()
	m.Leave(f)
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	again := NewFeeders(store)
	again.Settings.BacklogTTL.Store(1)
	if err := again.Start(); err != nil || again.Stream.Position() != before {
		t.Fatalf("%v, it is at %+v, before %+v", err, again.Stream.Position(), before)
	}
	for end := time.Now().Add(20 * time.Second); again.Stream.Figures(time.Now()).Begun; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the stream goes on without replicas")
		}
	}
}
