package replication_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server/internal/replication"
)

// memberLink is the link of a member of a group, which says what it is told.
func memberLink(t *testing.T, r *recorder, told *[]string) *replication.Link {
	t.Helper()
	o := replication.Options{Known: true, Origin: replication.Origin{Offset: 100}, Group: "greeting"}
	copy(o.Origin.ReplID[:], replid)
	replica := r.replica()
	replica.Pinged = func(ping string, offset int64) string {
		if ping == "*" {
			return ""
		}
		*told = append(*told, fmt.Sprint(ping, " at ", offset))
		return fmt.Sprint("pinged ", offset)
	}
	replica.Applied = func(offset int64) string {
		*told = append(*told, fmt.Sprint("applied ", offset))
		if offset%2 == 0 {
			return ""
		}
		return fmt.Sprint("applied ", offset)
	}
	l := replication.NewLink(o, replica)
	if _, err := l.Feed([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n")); err != nil {
		t.Fatal(err)
	}
	if out := string(l.Output()); !strings.HasSuffix(out, command("REPLCONF", "group", "greeting")) {
		t.Fatalf("%q", out)
	}
	return l
}

// TestLinkOfMember: a member greets the primary before it follows, and says what it has applied when it is asked, and whenever that is
// more: never of what has only arrived.
func TestLinkOfMember(t *testing.T) {
	var told []string
	if _, err := memberLink(t, &recorder{}, &told).Feed([]byte("-ERR this is not the primary\r\n")); err == nil || !strings.Contains(err.Error(), "not the primary") {
		t.Error(err)
	}
	ping, set := command("REPLCONF", "GETACK", "a ping"), command("SET", "k", "v")
	in := set + ping + command("MULTI") + set + ping[:5]
	for _, n := range []int{1, 7, len(in)} {
		told = nil
		r := &recorder{}
		l := memberLink(t, r, &told)
		if _, err := l.Feed([]byte("+OK\r\n$0\r\n\r\n+CONTINUE\r\n")); err != nil {
			t.Fatal(err)
		}
		l.Sent(len(l.Output()))
		for piece := range slices.Chunk([]byte(in), n) {
			if _, err := l.Feed(piece); err != nil {
				t.Fatal(err)
			}
		}
		at := int64(100 + len(set) + len(ping))
		want := []string{fmt.Sprint("applied ", 100+len(set)), fmt.Sprint("a ping at ", at)}
		if n == len(in) { // the commands before the ping are applied with it
			want = want[1:]
		}
		if !slices.Equal(told, want) {
			t.Errorf("in pieces of %d: told %q, want %q", n, told, want)
		}
		says := command("REPLCONF", "ACK", fmt.Sprint(at)) + command("REPLCONF", "GROUPACK", fmt.Sprint("pinged ", at))
		if out := string(l.Output()); !strings.HasSuffix(out, says) {
			t.Errorf("in pieces of %d: says %q, want %q at the end", n, out, says)
		}
	}
}

// TestOtherQuestion: a question how far the replica is, which the group knows nothing of, keeps nothing from being acknowledged.
func TestOtherQuestion(t *testing.T) {
	var told []string
	l := memberLink(t, &recorder{}, &told)
	set, question := command("SET", "k", "vv"), command("REPLCONF", "GETACK", "*")
	if _, err := l.Feed([]byte("+OK\r\n$0\r\n\r\n+CONTINUE\r\n" + set + question)); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint("applied ", 100+len(set)+len(question)); !slices.Equal(told, []string{want}) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestFeederOfMember: what a member says reaches its group, with how long the stream is, when it gets the stream. Nobody else is heard.
func TestFeederOfMember(t *testing.T) {
	store, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	m := replication.NewFeeders(store)
	var heard []string
	m.GroupAcked = func(from *replication.Membership, ack string, length int64) {
		heard = append(heard, fmt.Sprint(from.ID, " ", ack, " of ", length))
	}
	join := func(id string) *replication.Feeder {
		ask := replication.Ask{ReplID: "?"}
		if ask.EOF = true; id != "" {
			ask.Member = &replication.Membership{Member: group.Member{ID: id}}
		}
		f, err := m.Join(ask, func() {}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	say := func(f *replication.Feeder, words ...string) {
		t.Helper()
		if err := m.In(f, []byte(command(words...)), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	a, other := join("a"), join("")
	say(a, "REPLCONF", "GROUPACK", "early")
	for _, f := range []*replication.Feeder{a, other} {
		f.Cut()
		f.BeginFile()
		f.EndFile(time.Now())
		say(f, "REPLCONF", "ACK", "0")
	}
	m.PingGroup("a ping")
	say(a, "REPLCONF", "GROUPACK", "1")
	say(other, "REPLCONF", "GROUPACK", "2")
	if err := m.In(a, []byte(command("REPLCONF", "GROUPACK", "3")+command("REPLCONF", "GROUPACK", "4")), time.Now()); err != nil {
		t.Fatal(err)
	}
	say(a, "REPLCONF", "ACK", "1")
	length := len(command("REPLCONF", "GETACK", "a ping"))
	if want := []string{fmt.Sprint("a 1 of ", length), fmt.Sprint("a 4 of ", length)}; !slices.Equal(heard, want) {
		t.Errorf("%q, want %q", heard, want)
	}
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
}
