package replication

import (
	"math"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
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
	if shown("before") || m.Gate.Answers() {
		t.Error("a primary without a stream shows what it has")
	}
}

// TestUndescribedInTerm: a commit that the stream cannot tell of is not confirmed by what members have already.
func TestUndescribedInTerm(t *testing.T) {
	s := NewStream(1 << 20)
	s.Begin()
	s.commits.gate = gate.New(func() time.Duration { return 0 })
	s.commits.gate.Begin(5, 0)
	s.commits.gate.Extend(math.MaxInt64, true)
	before := s.Position().Offset
	s.Written(serverside.Commit{Next: 9, Whole: true})
	s.commits.gate.Confirm(before)
	if s.commits.gate.Shows(9) {
		t.Error("it is shown though no member has it")
	}
	s.commits.gate.Confirm(s.Position().Offset)
	if !s.commits.gate.Shows(9) {
		t.Error("it is not shown when members have all that comes after it")
	}
}
