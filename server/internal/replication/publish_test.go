package replication

import (
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/serverside"
)

// TestPublish: a message stands in the stream after the commits so far, takes no SELECT and changes none; without a stream
// there is none.
func TestPublish(t *testing.T) {
	m := NewFeeders(nil)
	args := func(words ...string) (list [][]byte) {
		for _, w := range words {
			list = append(list, []byte(w))
		}
		return list
	}
	say := func(words ...string) { m.Publish(m.Message(args(words...))) }
	say("PUBLISH", "c", "before the stream")
	m.Stream.Begin()
	f, _ := m.Stream.Attach(Ask{ReplID: "?", Next: -1}, m.limits, func() {}, time.Now())
	f.Cut()
	f.EndFile(time.Now())
	written := func(database int, words ...string) {
		m.Stream.Written(serverside.Commit{RESP: commandOf(words...), First: database, Last: database})
	}
	say("PUBLISH", "c", "1")
	written(3, "SET", "a", "1")
	say("SPUBLISH", "c", "2")
	written(3, "SET", "b", "1")
	long := strings.Repeat("x", ownBlock)
	say("PUBLISH", "c", long)
	late := m.Message(args("PUBLISH", "c", "ended meanwhile"))
	want := string(commandOf("PUBLISH", "c", "1")) + string(commandOf("SELECT", "3")) + string(commandOf("SET", "a", "1")) + string(commandOf("SPUBLISH", "c", "2")) +
		string(commandOf("SET", "b", "1")) + string(commandOf("PUBLISH", "c", long))
	if committed := m.Stream.Committed(); committed != int64(len(want)) {
		t.Errorf("WAIT would wait for %d bytes, of %d", committed, len(want))
	}
	if _, err := f.In(commandOf("REPLCONF", "ACK", "0"), time.Now()); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for {
		out, err := f.Out(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(out) == 0 {
			break
		}
		got.Write(out)
	}
	if _, stream, _ := strings.Cut(got.String(), f.mark); stream != want {
		t.Errorf("the stream is %q, want %q", stream, want)
	}
	m.Stream.End()
	m.Publish(late)
	if m.Message(args("PUBLISH", "c", "after the stream")) != nil {
		t.Error("a message is made for no stream")
	}
}
