package replication

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/serverside"
)

// sharing has replicas of a store that ask for everything.
type sharing struct {
	*testing.T
	*Feeders
}

func newSharing(t *testing.T) sharing {
	m := NewFeeders(dbtest.New(t))
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	return sharing{t, m}
}

func (s sharing) join() *Feeder {
	s.Helper()
	f, err := s.Join(Ask{ReplID: "?", Next: -1}, func() {}, time.Now())
	if err != nil {
		s.Fatal(err)
	}
	return f
}

// await waits until a condition of what is shared holds.
func (s sharing) await(what string, holds func() bool) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.sharing.Lock()
		is := holds()
		s.sharing.Unlock()
		if is {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("in vain for a minute: %s", what)
		}
	}
}

// occupy takes all places for snapshots, until free is called.
func (s sharing) occupy() (free func()) {
	for range mostSnapshots {
		s.snapshots <- struct{}{}
	}
	return func() {
		for range mostSnapshots {
			<-s.snapshots
		}
	}
}

// TestSnapshotIsShared: those that ask before the file of one of them begins have the same, of one moment; one that leaves
// does not end it for the others, and the last one closes it.
func TestSnapshotIsShared(t *testing.T) {
	s := newSharing(t)
	type opened struct {
		store *db.Store
		done  func() error
		err   error
	}
	free := s.occupy()
	leaving, leave := context.WithCancel(t.Context())
	var feeders []*Feeder
	results := make(chan opened, 4)
	for i := range 4 {
		ctx := t.Context()
		if i == 0 {
			ctx = leaving // the one that began it
		}
		f := s.join()
		feeders = append(feeders, f)
		go func() {
			store, done, err := s.Snapshot(ctx, f)
			results <- opened{store, done, err}
		}()
		s.await("it has so many users", func() bool { return s.shared != nil && s.shared.users == i+1 })
	}
	leave()
	if r := <-results; !errors.Is(r.err, context.Canceled) {
		t.Fatalf("the one that has left: %v", r.err)
	}
	free()
	var all []opened
	for range 3 {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		all = append(all, r)
	}
	if all[0].store != all[1].store || all[0].store != all[2].store || len(s.snapshots) != 1 {
		t.Fatalf("%d snapshots for three", len(s.snapshots))
	}
	for _, f := range feeders[1:] {
		if f.acked != feeders[1].acked || f.at == nil {
			t.Errorf("moments %d and %d", f.acked, feeders[1].acked)
		}
	}
	late := s.join()
	store, done, err := s.Snapshot(t.Context(), late)
	if err != nil || store == all[0].store {
		t.Errorf("one that asks when the file has begun: the same snapshot, %v", err)
	}
	for i, d := range []func() error{all[0].done, done, all[1].done} {
		if err := d(); err != nil {
			t.Error(i, err)
		}
	}
	if err := all[2].store.View(func(*db.Tx) error { return nil }); err != nil {
		t.Errorf("it is closed while one has it: %v", err)
	}
	if err := all[2].done(); err != nil {
		t.Error(err)
	}
	if len(s.snapshots) != 0 || s.shared != nil {
		t.Errorf("%d snapshots are open in the end", len(s.snapshots))
	}
}

// TestLateSharerHasTheSameMoment: one that comes after the moment of a snapshot, and before its file, gets what was written in
// between in the stream.
func TestLateSharerHasTheSameMoment(t *testing.T) {
	s := newSharing(t)
	first := s.join()
	g := s.share(first)
	<-g.opened
	offset := first.acked
	s.Stream.Written(serverside.Commit{RESP: commandOf("SET", "between", "1"), First: 3, Last: 3})
	second := s.join()
	if s.share(second) != g {
		t.Fatal("it has a snapshot of its own")
	}
	if second.acked != offset {
		t.Errorf("its file is of %d, that of the first one of %d", second.acked, offset)
	}
	second.BeginFile()
	second.EndFile(time.Now())
	if _, err := second.In(commandOf("REPLCONF", "ACK", "0"), time.Now()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for {
		b, err := second.Out(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			break
		}
		out.Write(b)
	}
	if want := string(commandOf("SELECT", "3")) + string(commandOf("SET", "between", "1")); !strings.HasSuffix(out.String(), second.mark+want) {
		t.Errorf("the stream after its file is not what was written since: %.300q", out.String())
	}
	// When the stream has begun anew its moment is none any more.
	s.Stream.Written(serverside.Commit{})
	third := s.join()
	other := s.share(third)
	if other == g {
		t.Error("a snapshot of another stream is shared")
	}
	for f, of := range map[*Feeder]*sharedSnapshot{first: g, second: g, third: other} {
		if err := s.release(of, f); err != nil {
			t.Error(err)
		}
	}
}

// TestSnapshotThatFails: it is nobody's afterwards.
func TestSnapshotThatFails(t *testing.T) {
	s := newSharing(t)
	free := s.occupy()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := s.Snapshot(short, s.join()); err != context.DeadlineExceeded {
		t.Fatalf("without a place: %v", err)
	}
	if s.shared != nil {
		t.Error("it can be shared still")
	}
	free()
	_, done, err := s.Snapshot(t.Context(), s.join())
	if err != nil {
		t.Fatal(err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

// TestNoSharingBeyondAnInstallation: a snapshot of what was before everything was replaced is not shared afterwards, although the
// stream has the same id: what follows its moment is not there.
func TestNoSharingBeyondAnInstallation(t *testing.T) {
	s := newSharing(t)
	s.Stream.Receive(at("a", 1000, 0))
	first := s.join()
	g := s.share(first)
	<-g.opened
	s.Stream.Receive(at("a", 5000, 0))
	second := s.join()
	other := s.share(second)
	if other == g {
		t.Error("a snapshot is shared of which nothing leads to the stream")
	}
	<-other.opened
	if other != g && second.acked != 5000 {
		t.Errorf("its file is of %d", second.acked)
	}
	for f, of := range map[*Feeder]*sharedSnapshot{first: g, second: other} {
		if err := s.release(of, f); err != nil {
			t.Error(err)
		}
	}
}
