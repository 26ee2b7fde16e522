package tracking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/tracking"
)

// world is a store with a table, and clients that may track.
type world struct {
	t       *testing.T
	store   *db.Store
	table   tracking.Table
	clients map[int64]*tracking.Client
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: dbtest.New(t), clients: map[int64]*tracking.Client{}}
	w.table.Init(w.store, new(pubsub.Limits), func(id int64) *tracking.Client { return w.clients[id] })
	for id := range int64(3) {
		w.clients[id+1] = &tracking.Client{ID: id + 1, Mail: new(pubsub.Subscriber)}
	}
	return w
}

// write sets a key, on behalf of a client.
func (w *world) write(origin int64, keys ...string) {
	w.t.Helper()
	if err := w.store.Update(func(tx *db.Tx) error {
		serverside.DB.SetOrigin(tx, origin)
		for _, key := range keys {
			if err := tx.String(key).Put([]byte("v")); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// expect compares what waits for a client: the keys of each message, "all", or "orphan".
func (w *world) expect(id int64, want ...string) {
	w.t.Helper()
	var got []string
	for mail := w.clients[id].Mail; mail.HasMail(); {
		messages, _ := mail.Take()
		for _, m := range messages {
			switch {
			case m.Kind == pubsub.ToOrphan:
				got = append(got, "orphan")
			case m.Keys == nil:
				got = append(got, "all")
			default:
				got = append(got, strings.Join(m.Keys, " "))
			}
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("client %d got %q, not %q", id, got, want)
	}
}

func TestReadersAreTold(t *testing.T) {
	w := newWorld(t)
	one, two := w.clients[1], w.clients[2]
	w.table.Remember(one, []string{"early"}) // does not track
	w.table.Add(one, &tracking.Mode{NoLoop: true})
	w.table.Add(two, &tracking.Mode{})
	w.table.Remember(one, []string{"a", "b"})
	w.table.Remember(two, []string{"a", "a"})
	if u := w.table.Usage(); u != (tracking.Usage{Clients: 2, Keys: 2, Items: 3}) || w.table.Held() == 0 {
		t.Errorf("usage is %+v", u)
	}
	w.write(1, "a", "early") // its own change
	w.expect(1)
	w.expect(2, "a")
	w.write(2, "a", "b") // a has been forgotten
	w.expect(1, "b")
	w.expect(2)
	w.table.Remember(one, []string{"c"})
	if err := w.store.Flush(); err != nil {
		t.Fatal(err)
	}
	w.expect(1, "all")
	w.expect(2, "all")
	if u := w.table.Usage(); u.Keys != 0 || u.Items != 0 || w.table.Held() != 0 {
		t.Errorf("after a clear the table has %+v, %d bytes", u, w.table.Held())
	}
	w.table.Remember(two, []string{"d"})
	w.table.Remove(one)
	w.table.Remove(two)
	w.table.Remove(two)
	w.write(3, "d")
	w.expect(2)
	if u := w.table.Usage(); u != (tracking.Usage{}) {
		t.Errorf("without clients the table has %+v", u)
	}
}

func TestBroadcastAndRedirect(t *testing.T) {
	w := newWorld(t)
	w.table.Add(w.clients[1], &tracking.Mode{Broadcast: true, NoLoop: true, Prefixes: []string{"a", "user:"}})
	w.table.Add(w.clients[2], &tracking.Mode{Redirect: 3})
	w.write(9, "user:2", "user:1", "b", "a")
	w.expect(1, "a", "user:1 user:2")
	w.write(1, "user:1")
	w.expect(1)
	w.table.Remember(w.clients[2], []string{"b"})
	w.write(9, "b")
	w.expect(2)
	w.expect(3, "b")
	delete(w.clients, 3)
	w.table.Remember(w.clients[2], []string{"b"})
	w.write(9, "b")
	w.expect(2, "orphan")
	if !w.clients[2].Broken() || w.clients[2].Redirect() != 3 || w.clients[1].Redirect() != 0 {
		t.Error("the redirection does not show as broken")
	}
	w.table.Remove(w.clients[2])
	if w.clients[2].Broken() || w.clients[2].Redirect() != -1 || w.clients[2].Mode() != nil {
		t.Error("who tracks no more still redirects")
	}
}

// A key that makes room for others is reported as if it had changed; many readers of one key are all told.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.table.Add(w.clients[1], &tracking.Mode{})
	w.table.Limit(2)
	w.table.Remember(w.clients[1], []string{"a", "b", "c"})
	if u := w.table.Usage(); u.Keys != 2 {
		t.Errorf("%d keys are in a table of two", u.Keys)
	}
	if messages, _ := w.clients[1].Mail.Take(); len(messages) != 1 || len(messages[0].Keys) != 1 {
		t.Errorf("the key that made room: %+v", messages)
	}
	w.table.Limit(0)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	w.table.Remember(w.clients[1], keys)
	if u := w.table.Usage(); u.Keys != 1002 {
		t.Errorf("%d keys without a limit", u.Keys)
	}
	w.table.Limit(10)
	if u := w.table.Usage(); u.Keys != 10 {
		t.Errorf("%d keys after the limit of 10", u.Keys)
	}
	for id := range int64(100) {
		w.clients[id+10] = &tracking.Client{ID: id + 10, Mail: new(pubsub.Subscriber)}
		w.table.Add(w.clients[id+10], &tracking.Mode{})
		w.table.Remember(w.clients[id+10], []string{"shared"})
	}
	w.write(9, "shared")
	for id := range int64(100) {
		w.expect(id+10, "shared")
	}
}

func TestParseAndFollow(t *testing.T) {
	parse := func(line string) (*tracking.Mode, error) {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		return tracking.Parse(&command.Call{Args: args}, func(id int64) bool { return id == 7 })
	}
	for _, c := range []struct{ before, line, want string }{
		{"", "on", ""},
		{"", "on redirect 7 noloop optin", ""},
		{"", "on redirect 8", "client ID you want redirect to does not exist"},
		{"", "on redirect x", "not an integer"},
		{"", "on redirect 7 redirect 7", "only redirect to a single"},
		{"", "on nonsense", "syntax error"},
		{"", "on prefix a", "requires BCAST"},
		{"", "on bcast optin", "not compatible with BCAST"},
		{"", "on optin optout", "both OPTIN mode and OPTOUT"},
		{"", "on bcast prefix ab prefix a", "overlaps with another provided prefix"},
		{"on bcast prefix ab", "on bcast prefix a", "overlaps with an existing prefix"},
		{"on bcast", "on", "can't switch BCAST"},
		{"on optin", "on optout", "can't switch OPTIN"},
	} {
		var before *tracking.Mode
		if c.before != "" {
			var err error
			if before, err = parse("client tracking " + c.before); err != nil || before.Follow(nil) != nil {
				t.Fatalf("%q: %v", c.before, err)
			}
		}
		mode, err := parse("client tracking " + c.line)
		if err == nil {
			err = mode.Follow(before)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q after %q: %v", c.line, c.before, err)
		}
	}
	first, _ := parse("client tracking on bcast prefix b prefix a")
	next, _ := parse("client tracking on bcast prefix c")
	if err := next.Follow(first); err != nil || !slices.Equal(next.Prefixes, []string{"a", "b", "c"}) && !slices.Equal(next.Prefixes, []string{"b", "a", "c"}) {
		t.Errorf("prefixes add up to %q, %v", next.Prefixes, err)
	}
	if next.Size() <= 3 || (*tracking.Mode)(nil).Size() != 0 {
		t.Error("prefixes have no size")
	}
	for _, c := range []struct {
		mode    tracking.Mode
		caching bool
		want    bool
	}{
		{tracking.Mode{}, false, true}, {tracking.Mode{Broadcast: true}, false, false},
		{tracking.Mode{OptIn: true}, false, false}, {tracking.Mode{OptIn: true}, true, true},
		{tracking.Mode{OptOut: true}, false, true}, {tracking.Mode{OptOut: true}, true, false},
	} {
		if c.mode.Tracks(c.caching) != c.want {
			t.Errorf("%+v, caching %t: a read is tracked: %t", c.mode, c.caching, !c.want)
		}
	}
}

func TestWrite(t *testing.T) {
	w := newWorld(t)
	c := w.clients[1]
	var hub pubsub.Hub
	write := func(version int, m pubsub.Message) string {
		var out resp.Writer
		out.SetVersion(version)
		c.Write(&out, &m)
		return string(out.Bytes())
	}
	keys := pubsub.Message{Kind: pubsub.ToReader, Keys: []string{"k"}}
	redirected := pubsub.Message{Kind: pubsub.ToRedirected, Keys: []string{"k"}}
	if got := write(3, keys); got != ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n" {
		t.Errorf("RESP3: %q", got)
	}
	if got := write(3, pubsub.Message{Kind: pubsub.ToReader}); got != ">2\r\n$10\r\ninvalidate\r\n_\r\n" {
		t.Errorf("all keys: %q", got)
	}
	if got := write(2, keys) + write(2, redirected); got != "" {
		t.Errorf("RESP2 without a subscription: %q", got)
	}
	hub.Subscribe(c.Mail, pubsub.Channel, "__redis__:invalidate")
	if got := write(2, redirected); got != "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n" {
		t.Errorf("RESP2: %q", got)
	}
	orphan := pubsub.Message{Kind: pubsub.ToOrphan}
	if got := write(3, orphan); got != "" {
		t.Errorf("who does not redirect is told that the redirection is broken: %q", got)
	}
	w.table.Add(c, &tracking.Mode{Redirect: 9})
	if got := write(3, orphan); got != ">2\r\n$21\r\ntracking-redir-broken\r\n:9\r\n" {
		t.Errorf("a broken redirection: %q", got)
	}
}
