package shared_test

import (
	"math"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server/internal/gate"
	"github.com/stavedb/stave/server/internal/shared"
)

// TestTermOfReply lets no reply leave in another term than it was made in, even if what it owes was noted later.
func TestTermOfReply(t *testing.T) {
	store, err := db.Open("d", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem()}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	v := &shared.State{Store: store, Gate: gate.New(func() time.Duration { return 0 })}
	v.Gate.Begin(10, 100)
	u := shared.Unsynced{Term: v.Gate.Term()} // it reads
	v.Gate.Follow(20)
	u.Hold(db.Ticket(v.Gate.Newest()), 0)
	if u.IsDurable(v) || u.Outcome(v, nil) == nil {
		t.Error("a reply of a primary leaves when it follows another one")
	}
	if now := (shared.Unsynced{Term: v.Gate.Term(), Ticket: u.Ticket}); !now.IsDurable(v) || now.Outcome(v, nil) != nil {
		t.Error("a reply of who follows does not leave")
	}
	if nothing := (shared.Unsynced{}); !nothing.IsDurable(v) {
		t.Error("a reply that owes nothing does not leave")
	}
	v.Gate.Begin(30, 100)
	v.Gate.Extend(math.MaxInt64, true)
	v.Gate.Confirm(100)
	first := shared.Unsynced{Term: 1, Ticket: 30}
	if first.IsDurable(v) || first.IsPending(v) {
		t.Error("a reply of an earlier term leaves in a later one, or is to wait for it")
	}
	v.Gate.Wrote(31, 110, nil, true)
	if u := (shared.Unsynced{Term: v.Gate.Term(), Ticket: 31}); !u.IsPending(v) {
		t.Error("a reply is not to wait for its confirmation")
	}
}
