package session

import (
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/shared"
)

// newApplier is one that notes what it skips, if it may.
func newApplier(t *testing.T, mayskip bool) (a *Applier, store *db.Store, skipped *[]string) {
	v, newSession := newServer(t)
	skipped = new([]string)
	a = NewApplier(newSession(), func() bool { return mayskip }, func(e *shared.DivergedError) { *skipped = append(*skipped, e.Error()) })
	t.Cleanup(a.Close)
	if err := serverside.DB.SetReplicaOf(v.Store, []byte{serverside.IsReplica}, true); err != nil {
		t.Fatal(err)
	}
	return a, v.Store, skipped
}

// sent are commands of a master: the words of each, after the number of its database.
func sent(list ...string) (commands []replication.Command) {
	for _, text := range list {
		words := strings.Fields(text)
		c := replication.Command{Database: int(words[0][0] - '0')}
		for _, word := range words[1:] {
			c.Args = append(c.Args, []byte(word))
		}
		commands = append(commands, c)
	}
	return commands
}

// TestPositionAndDataAreOneCommit: what the store notes of the position is in the commit of what it stands for.
func TestPositionAndDataAreOneCommit(t *testing.T) {
	a, store, _ := newApplier(t, false)
	var tickets []db.Ticket
	stop := store.OnChanges(func(_ []db.Change, ticket db.Ticket) { tickets = append(tickets, ticket) })
	defer stop()
	for i, commands := range [][]string{{"0 SET a 1"}, {"0 INCR a", "3 RPUSH l x y", "0 PUBLISH c m"}, {"3 FLUSHDB"}, {"0 SWAPDB 0 1"}, {"0 FLUSHALL"}} {
		after := replication.Origin{Offset: int64(100 + i), Database: 3}
		before := len(tickets)
		if err := a.Apply(sent(commands...), after); err != nil {
			t.Fatal(err)
		}
		if len(tickets) != before+1 {
			t.Fatalf("%q: %d commits with changes", commands, len(tickets)-before)
		}
		// A ticket is the number after the last record of its commit.
		if last := store.Log().Sequence(); uint64(tickets[before]) != last+1 {
			t.Errorf("%q: the commit ends before %d, and the log at %d", commands, tickets[before], last)
		}
		if at, ok := serverside.DB.Origin(store); !ok || at != after {
			t.Errorf("%q: the store stands at %+v", commands, at)
		}
	}
	if err := a.Apply(sent("0 PUBLISH c m"), replication.Origin{Offset: 200}); err != nil {
		t.Fatal(err)
	}
	if at, _ := serverside.DB.Origin(store); at.Offset != 200 {
		t.Errorf("after a message the store stands at %+v", at)
	}
}

// TestFailedCommandUndoesItsCommit: nothing of what came with a command that fails stays, nor the position; one that may be
// skipped leaves the others.
func TestFailedCommandUndoesItsCommit(t *testing.T) {
	for _, mayskip := range []bool{false, true} {
		a, store, skipped := newApplier(t, mayskip)
		if err := a.Apply(sent("0 SET a 1"), replication.Origin{Offset: 1}); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"0 LPUSH a x", "0 NOSUCH command", "0 SET a", "9 SWAPDB 0 99"} {
			err := a.Apply(sent("0 SET b 1", wrong), replication.Origin{Offset: 2})
			var diverged *shared.DivergedError
			if name := strings.Fields(wrong)[1]; !mayskip && (!errors.As(err, &diverged) || !strings.Contains(err.Error(), `"`+name+`"`)) {
				t.Errorf("%q: %v", wrong, err)
			}
			if mayskip && err != nil {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		at, _ := serverside.DB.Origin(store)
		there, err := store.Key("b").Exists()
		if err != nil || there != mayskip || (at.Offset == 2) != mayskip || len(*skipped) != map[bool]int{true: 4}[mayskip] {
			t.Errorf("skipping %t: at %d, b is there: %t, %v, skipped %q", mayskip, at.Offset, there, err, *skipped)
		}
	}
}

// TestMasterMayOnlyWrite: what a master sends changes data, or is a message. Anything else is refused, whoever sends it: an
// address that is not the master's any more, say, or somebody in between.
func TestMasterMayOnlyWrite(t *testing.T) {
	for _, text := range []string{
		"CONFIG SET maxmemory 1", "REPLICAOF NO ONE", "ACL SETUSER x on nopass", "DEBUG SLEEP 0", "CLIENT KILL TYPE normal", "GET a", "SAVE", "SHUTDOWN NOSAVE",
	} {
		a, store, _ := newApplier(t, false)
		differs := new(shared.DivergedError)
		if err := a.Apply(sent("0 SET a 1", "0 "+text), replication.Origin{Offset: 9}); !errors.As(err, &differs) {
			t.Errorf("%s: %v", text, err)
		}
		if n, err := store.Key("a").Exists(); err != nil || n {
			t.Errorf("%s: what came with it is there: %v, %v", text, n, err)
		}
	}
}
