package dispatch

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
)

// newSituation is that of a client of a goroutine, which may do everything.
func newSituation(t *testing.T) *Situation {
	store := dbtest.New(t)
	never := func(*command.Command, [][]byte) bool { return false }
	others := command.InGroup(command.GroupConnection, []*command.Command{
		{Name: "ping", Arity: -1, Flags: command.Describes | command.Fast | command.WhileSubscribed},
		{Name: "exec", Arity: 1, Flags: command.OfSession | command.RunsInsideMulti},
		{Name: "hello", Arity: -1, Flags: command.OfSession | command.Fast | command.NoAuth},
		{Name: "publish", Arity: 3, Flags: command.PubSub | command.Fast, Listens: command.ToOneChannel},
		{Name: "eval", Arity: -3, Flags: command.RunsScript, Keys: []command.Keys{{Use: "RW", First: 2, Counted: true}}},
	})
	state := shared.New(store, command.NewTable(command.Data(), others), shared.Options{Logger: slog.New(slog.DiscardHandler)})
	return &Situation{State: state, Store: store, NoWrites: never, Known: never, Driven: true}
}

func request(t *testing.T, s *Situation, words string) *Request {
	var args [][]byte
	for _, word := range strings.Fields(words) {
		args = append(args, []byte(word))
	}
	cmd, err := s.State.Table.Resolve(args)
	if err != nil {
		t.Fatal(err)
	}
	r := New(cmd, args)
	return &r
}

// TestDecide: each verdict, and the first reason of several.
func TestDecide(t *testing.T) {
	refuses := func(*command.Command, [][]byte) error { return command.Error("NOPERM") }
	for _, tt := range []struct {
		name, request string
		change        func(*Situation)
		want          Verdict
		err           string
	}{
		{"constant", "SET k v", nil, Batch, ""},
		{"constant, in a loop", "SET k v", func(s *Situation) { s.InLoop = true }, Batch, ""},
		{"constant, large", "SET k " + strings.Repeat("x", MaxBatchBytes), nil, Here, ""},
		{"constant, large, in a loop", "SET k " + strings.Repeat("x", MaxBatchBytes), func(s *Situation) { s.InLoop = true }, Aside, ""},
		{"without keys", "PING", nil, Here, ""},
		{"by size", "DEL a b", nil, Here, ""},
		{"by size, in a loop", "DEL a b", func(s *Situation) { s.InLoop = true }, Here, ""},
		{"by reply", "LRANGE k 0 -1", nil, Here, ""},
		{"by reply, in a loop", "LRANGE k 0 -1", func(s *Situation) { s.InLoop = true }, Batch, ""},
		{"unbounded", "SORT k", nil, Here, ""},
		{"unbounded, in a loop", "SORT k", func(s *Situation) { s.InLoop = true }, Aside, ""},
		{"may wait", "BLPOP k 0", func(s *Situation) { s.InLoop = true }, Here, ""},
		{"replies apart", "SET k v", func(s *Situation) { s.Singly = true }, Here, ""},
		{"a password", "HELLO 3 AUTH u p", func(s *Situation) { s.InLoop = true }, Aside, ""},
		{"a script, unknown", "EVAL x 1 k", nil, Here, ""},
		{"a script, known", "EVAL x 1 k", func(s *Situation) { s.Known = func(*command.Command, [][]byte) bool { return true } }, Batch, ""},
		{"queued", "SORT k", func(s *Situation) { s.InLoop, s.Multi = true, &Multi{} }, Here, ""},
		{"a short EXEC", "EXEC", func(s *Situation) { s.InLoop, s.Multi = true, &Multi{Len: 2} }, Here, ""},
		{"a long EXEC", "EXEC", func(s *Situation) { s.InLoop, s.Multi = true, &Multi{Len: MaxBatch + 1} }, Aside, ""},
		{"nobody waits", "GET k", func(s *Situation) { s.Gone = true }, Drop, ""},
		{"nobody waits for a write", "SET k v", func(s *Situation) { s.Gone = true }, Batch, ""},
		{"a pause of all", "GET k", func(s *Situation) { s.State.Pause.Begin(time.Now().Add(time.Minute), true) }, Later, ""},
		{"a pause of writes", "SET k v", func(s *Situation) { s.State.Pause.Begin(time.Now().Add(time.Minute), false) }, Later, ""},
		{"a pause of writes, a read", "GET k", func(s *Situation) { s.State.Pause.Begin(time.Now().Add(time.Minute), false) }, Batch, ""},
		{"a pause that is over", "SET k v", func(s *Situation) { s.State.Pause.Begin(time.Now(), true) }, Batch, ""},
		{"a pause, embedded", "SET k v", func(s *Situation) { s.Driven = false; s.State.Pause.Begin(time.Now().Add(time.Minute), true) }, Batch, ""},
		{"not permitted", "SET k v", func(s *Situation) { s.Permit, s.Subscribed = refuses, true }, Refuse, "NOPERM"},
		{"subscribed", "SET k v", func(s *Situation) { s.Subscribed = true }, Refuse, "ERR Can't execute 'set'"},
		{"subscribed, allowed", "PING", func(s *Situation) { s.Subscribed = true }, Here, ""},
		{"several slots", "MGET a b", func(s *Situation) { s.State.Options.Cluster = true }, Refuse, "CROSSSLOT"},
		{"several slots of EXEC", "EXEC", func(s *Situation) {
			s.State.Options.Cluster, s.Multi = true, &Multi{Keys: []string{"a", "b"}}
		}, Refuse, "CROSSSLOT"},
	} {
		s := newSituation(t)
		if tt.change != nil {
			tt.change(s)
		}
		got, err := Decide(request(t, s, tt.request), s)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%s: %.20s: verdict %d, %v, want %d, %s", tt.name, tt.request, got, err, tt.want, tt.err)
		}
	}
}

// TestMultiAdds: what is known of a queue follows from what was added.
func TestMultiAdds(t *testing.T) {
	s := newSituation(t)
	m := new(Multi)
	if keys := m.Add(request(t, s, "GET a"), s, 10); len(keys) != 1 || m.Writes || m.IsLong || m.WholeStore || m.Replicates {
		t.Errorf("a read: keys %q, %+v", keys, m)
	}
	if m.Add(request(t, s, "SET b v"), s, 10); !m.Writes || !m.Grows || !m.Replicates || m.IsLong || m.WholeStore || m.Len != 2 || m.Bytes != 20 {
		t.Errorf("a write: %+v", m)
	}
	if m.Add(request(t, s, "KEYS *"), s, 10); !m.IsLong || !m.WholeStore {
		t.Errorf("all keys: %+v", m)
	}
}
