package replication

import (
	"math"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/gate"
)

// TestTermOfOldStream begins a term on a server whose stream began before it had a gate: commits are of their keys alone, the stream does
// not end without replicas, and where it ends nothing is shown any more.
func TestTermOfOldStream(t *testing.T) {
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
	f, err := m.Join(Ask{ReplID: "?"}, func() {}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) {
		t.Helper()
		if err := store.String(key).Put([]byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	m.Leave(f)
	m.Gate = gate.New(func() time.Duration { return 0 })
	if _, err := m.BeginTerm(); err != nil {
		t.Fatal(err)
	}
	m.Gate.Extend(math.MaxInt64, true)
	m.Gate.Confirm(m.Stream.Position().Offset)
	put("k")
	shown := func(key string) bool { return m.Gate.Shows(m.Gate.Owed([]string{key})) }
	if shown("k") || !shown("before") {
		t.Errorf("the key that was written is shown: %t; another one: %t", shown("k"), shown("before"))
	}
	if m.idle != nil {
		t.Error("the stream of a primary ends without replicas")
	}
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	if shown("before") || m.Gate.Serves() {
		t.Error("a primary without a stream shows what it has")
	}
}
