package replication

import (
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// following is the stream of a store that is a replica, at a position.
func following(t *testing.T, o Origin) (*db.Store, *Feeders) {
	t.Helper()
	store, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := serverside.DB.SetReplicaAt(store, []byte{serverside.IsReplica}, func([]byte) (Origin, bool) { return o, true }); err != nil {
		t.Fatal(err)
	}
	m := NewFeeders(store)
	m.Resume()
	return store, m
}

// TestLeadCapturesFirst: when a promoted replica may be written to, all that is written is captured, and follows what was
// received. What is written after the stream has ended is not.
func TestLeadCapturesFirst(t *testing.T) {
	store, m := following(t, at("a", 1000, 0))
	if o, ok := m.Stream.Origin(); !ok || o != at("a", 1000, 0) {
		t.Fatalf("the stream is at %+v, %v", o, ok)
	}
	if err := m.Lead(func() error {
		if m.stop == nil {
			t.Error("the store may be written to before that is captured")
		}
		return serverside.DB.SetReplicaOf(store, nil, false)
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.String("k").Put([]byte("v")); err != nil {
		t.Fatal(err)
	}
	f := m.Stream.Figures(time.Now())
	if f.Offset <= 1000 || f.Former != id["a"] || f.FormerEnd != 1000 || f.First != 1001 {
		t.Errorf("after a write: %+v", f)
	}
	if m.idle == nil {
		t.Error("the stream of a master without replicas does not end")
	}
	var stood Origin
	if err := m.Follow(func(at func([]byte) (Origin, bool)) error {
		stood, _ = at(nil)
		return serverside.DB.SetReplicaAt(store, []byte{serverside.IsReplica}, at)
	}); err != nil {
		t.Fatal(err)
	}
	if o, ok := serverside.DB.Origin(store); !ok || o != stood || o.Offset != f.Offset || string(o.ReplID[:]) != f.ID {
		t.Errorf("the demoted one stands at %+v, %v, want %+v", o, ok, f)
	}
	if m.stop != nil || m.idle != nil {
		t.Error("a replica captures, or its stream ends")
	}
}

// TestLeadWithoutStream: a replica that has got nothing begins a stream when a replica comes.
func TestLeadWithoutStream(t *testing.T) {
	store, m := following(t, at("a", 1000, 0))
	m.Stream.End()
	if err := m.Lead(func() error { return serverside.DB.SetReplicaOf(store, nil, false) }); err != nil {
		t.Fatal(err)
	}
	if m.stop != nil || m.Stream.Figures(time.Now()).Begun {
		t.Error("it captures for nobody")
	}
}

// TestStopKeepsPosition: a replica that ends notes all that it has received, also what was nothing to be written.
func TestStopKeepsPosition(t *testing.T) {
	store, m := following(t, at("a", 1000, 0))
	ping := commandOf("PING")
	after := at("a", 1000+int64(len(ping)), 0)
	if err := m.Stream.Pass(ping, after, func() (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	if o, ok := serverside.DB.Origin(store); !ok || o != after {
		t.Errorf("it stands at %+v, %v, want %+v", o, ok, after)
	}
}

// TestFollowWhereItWasKept: a store whose stream was kept, and is not taken up yet, becomes a replica there, in one commit. If it
// cannot, the stream is kept still.
func TestFollowWhereItWasKept(t *testing.T) {
	store, before := following(t, at("a", 1000, 0))
	if err := before.Lead(func() error { return serverside.DB.SetReplicaOf(store, nil, false) }); err != nil {
		t.Fatal(err)
	}
	if err := store.String("k").Put([]byte("v")); err != nil {
		t.Fatal(err)
	}
	kept := before.Stream.Position()
	if err := before.Stop(); err != nil {
		t.Fatal(err)
	}
	m, refused := NewFeeders(store), errors.New("refused")
	if err := m.Follow(func(func([]byte) (Origin, bool)) error { return refused }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if _, begun := m.Stream.Origin(); begun {
		t.Error("a stream has begun that nothing is captured for")
	}
	err := m.Follow(func(at func([]byte) (Origin, bool)) error {
		return serverside.DB.SetReplicaAt(store, []byte{serverside.IsReplica}, at)
	})
	if o, ok := serverside.DB.Origin(store); err != nil || !ok || o.Offset != kept.Offset || string(o.ReplID[:]) != kept.ID || m.Stream.Position() != kept {
		t.Errorf("it stands at %+v, %v, its stream at %+v, want %+v; %v", o, ok, m.Stream.Position(), kept, err)
	}
	if f := m.Stream.Figures(time.Now()); f.Former != id["a"] || f.FormerEnd != 1000 {
		t.Errorf("of the id before it knows %+v", f)
	}
	// It was kept for one: a store that is written to, or a replica, stands elsewhere.
	begins := func() error { t.Error("something is kept still"); return nil }
	if value, err := serverside.DB.TakeReplication(store, begins); value != nil || err != nil {
		t.Errorf("%q, %v", value, err)
	}
}
