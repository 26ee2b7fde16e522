package member

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestIdentify starts a member again and again: it is another one after the power may have been lost with what was acknowledged.
func TestIdentify(t *testing.T) {
	mem := vfs.NewMem()
	start := func(sync db.SyncMode, boot string) uint64 {
		t.Helper()
		s, err := db.Open("d", seam.With(&db.Options{Sync: sync, NoMerge: true}, seam.Options{FS: mem}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		i, err := identify(s, "g", boot)
		if err != nil {
			t.Fatal(err)
		}
		return i.incarnation
	}
	first := start(db.SyncInterval, "1")
	if first == 0 || first >= 1<<53 {
		t.Error(first)
	}
	before := first
	for _, step := range []struct {
		what string
		sync db.SyncMode
		boot string
		same bool
	}{
		{"the process was killed", db.SyncInterval, "1", true},
		{"the power was lost", db.SyncInterval, "2", false},
		{"each commit is synced from now on", db.SyncAlways, "2", true},
		{"the power was lost, and each commit was synced", db.SyncAlways, "3", true},
		{"again, and it will not be", db.SyncNone, "4", true},
		{"the power was lost of one that syncs nothing", db.SyncNone, "5", false},
		{"the power was lost of one that will sync each commit, and has not", db.SyncAlways, "6", false},
		{"nobody knows when the machine has booted, and each commit was synced", db.SyncAlways, "", true},
		{"the same, later", db.SyncInterval, "", true},
		{"the same, and it was not", db.SyncInterval, "", false},
	} {
		now := start(step.sync, step.boot)
		if (now == before) != step.same {
			t.Errorf("%s: %d after %d", step.what, now, before)
		}
		before = now
	}
}

func TestWire(t *testing.T) {
	g := greeting{group: "g"}
	g.ID, g.Incarnation, g.Term, g.Address = "a", 7, 3, "h:1"
	if got, err := parseGreeting(g.String()); err != nil || got != g {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "*", "g a 7 3", "g a 7 3 h:1 more", "g a x 3 h:1", "g a 7 3 nowhere", "g a 7 3 h:port", "g a/b 7 3 h:1", "g a -7 3 h:1", "g a 7 99999999999999999999 h:1", "g " + strings.Repeat("a", 65) + " 7 3 h:1", "g a 7 3 " + strings.Repeat("h", 300) + ":1"} {
		if got, err := parseGreeting(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	p := ping{group: "g", from: "a", clock: 5, Ping: group.Ping{Term: 3, Sent: 4, Known: []group.Position{{Member: group.Member{ID: "b", Incarnation: 1}, Offset: 2}, {Member: group.Member{ID: "c"}}}}}
	if got, err := parsePing(p.String()); err != nil || got.String() != p.String() || len(got.Known) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "*", "g a 3 4", "g a 3 4 5 b", "g a 3 4 5 b 1", "g a 3 4 5 b 1 x"} {
		if got, err := parsePing(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	a := group.Ack{Term: 1, Sent: 2, Offset: 3}
	if got, err := parseAck(encodeAck(&a)); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseAck("1 2"); err == nil {
		t.Errorf("%+v", got)
	}
}
