package replication

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// at is a position in the stream of an id of equal digits.
func at(digit string, offset int64, database int) (o Origin) {
	copy(o.ReplID[:], strings.Repeat(digit, replIDSize))
	o.Offset, o.Database = offset, database
	return o
}

// passes is a stream of a replica that a test plays.
type passes struct {
	*testing.T
	*Stream
	now time.Time
}

func newPasses(t *testing.T, o Origin) *passes {
	p := &passes{T: t, Stream: NewStream(1 << 20), now: time.Unix(1e9, 0)}
	p.Receive(o)
	return p
}

func (p *passes) pass(text string, after Origin) {
	p.Helper()
	if err := p.Pass([]byte(text), after, func() (bool, error) { return true, nil }); err != nil {
		p.Fatal(err)
	}
}

// attach adds a replica that has the stream of an id up to an offset.
func (p *passes) attach(id string, has int64) (f *Feeder, isPartial bool) {
	return p.Attach(Ask{Peer: Peer{EOF: true, PSYNC2: true}, ReplID: id, Next: has + 1}, func() Limits { return Limits{} }, func() {}, p.now)
}

// gets is all that a replica is sent at present.
func (p *passes) gets(f *Feeder) (all string) {
	p.Helper()
	for {
		out, err := f.Out(p.now)
		if err != nil {
			return all + "(" + err.Error() + ")"
		}
		if len(out) == 0 {
			return all
		}
		all += string(out)
	}
}

func (p *passes) want(what, got, want string) {
	p.Helper()
	if got != want {
		p.Errorf("%s: %q, want %q", what, got, want)
	}
}

var id = map[string]string{"a": strings.Repeat("a", replIDSize), "b": strings.Repeat("b", replIDSize), "c": strings.Repeat("c", replIDSize)}

const ended = "(the stream began anew, or has another id: the replica is to ask again)"

// TestPassedByteByByte: a replica's replica gets the bytes of the master and no others, whatever is asked of the stream, and not
// those that could not be applied.
func TestPassedByteByByte(t *testing.T) {
	p := newPasses(t, at("a", 1000, 3))
	f, _ := p.attach(id["a"], 1000)
	p.pass("one", at("a", 1003, 3))
	p.Ping(p.now, 0)
	p.Ping(p.now.Add(time.Hour), time.Second)
	p.AskForAcks()
	failed := errors.New("no")
	if err := p.Pass([]byte("never"), at("a", 1008, 3), func() (bool, error) { return false, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	large := strings.Repeat("x", ownBlock+1)
	b := []byte(large)
	if err := p.Pass(b, at("a", 1003+int64(len(b)), 3), func() (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	clear(b) // the link uses it again
	p.want("it gets", p.gets(f), "+CONTINUE "+id["a"]+"\r\none"+large)
	if p.Pass([]byte("gap"), at("a", 99_999, 3), func() (bool, error) { t.Error("bytes are applied after a gap"); return true, nil }) == nil {
		t.Error("bytes were passed on after a gap")
	}
	second, isPartial := p.attach(id["a"], 1001)
	if !isPartial {
		t.Fatal("a replica that is behind cannot go on")
	}
	p.want("who comes later gets", p.gets(second), "+CONTINUE "+id["a"]+"\r\nne"+large)
	third, _ := p.attach("?", -2)
	third.Cut()
	if says := fmt.Sprint(third.aux()); says != "map[repl-stream-db:3]" {
		t.Errorf("a file says %s, want the database of the stream", says)
	}
	p.pass("end", at("a", 1006+int64(len(large)), 7))
	p.want("nothing is added for the one with the file", p.gets(f), "end")
}

// TestPromoted: who has not more than the promoted replica goes on by its new id, also after a planned restart, and the first
// command says its database. Replicas that are connected are to ask again.
func TestPromoted(t *testing.T) {
	p := newPasses(t, at("a", 1000, 3))
	f, _ := p.attach(id["a"], 1000)
	p.pass("one", at("a", 1003, 3))
	p.promote()
	p.want("who was there", p.gets(f), ended)
	p.Detach(f)
	p.Written(serverside.Commit{RESP: []byte("two"), First: 3, Last: 3, Next: 6})
	again := NewStream(1 << 20)
	again.Begin()
	if !again.resume(p.encode(), 0) {
		t.Fatal("it does not go on after a restart")
	}
	if f := again.Figures(p.now); f.Former != id["a"] || f.FormerEnd != 1003 || f.ID != p.id || f.Offset != p.offset {
		t.Errorf("after a restart: %+v", f)
	}
	const selects = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
	for has := int64(1000); has <= 1003; has++ {
		f, isPartial := p.attach(id["a"], has)
		if !isPartial {
			t.Errorf("who has %d cannot go on", has)
			continue
		}
		p.want("who goes on gets", p.gets(f), "+CONTINUE "+p.id+"\r\n"+"one"[has-1000:]+selects+"two")
	}
	if _, isPartial := p.attach(id["a"], 1004); isPartial {
		t.Error("who has more of the old stream than the promoted replica goes on")
	}
}

// TestDemoted: a master that becomes a replica goes on where it is, keeps its replicas, and adds nothing of its own. If the new
// master goes on by another id, its replicas are told.
func TestDemoted(t *testing.T) {
	p := &passes{T: t, Stream: NewStream(1 << 20), now: time.Unix(1e9, 0)}
	if _, ok := p.demote(); ok {
		t.Error("a stream that has not begun is somewhere")
	}
	p.Begin()
	f, _ := p.attach(p.id, 0)
	p.Written(serverside.Commit{RESP: []byte("one"), First: 0, Last: 0, Next: 2})
	o, ok := p.demote()
	if !ok || o.Offset != p.offset || string(o.ReplID[:]) != p.id {
		t.Errorf("it stands at %+v, %v", o, ok)
	}
	p.Ping(p.now.Add(time.Hour), 0)
	p.AskForAcks()
	p.want("its replica gets", p.gets(f), "+CONTINUE "+p.id+"\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\none")
	former := p.id
	after := at("b", o.Offset+3, 0)
	p.pass("two", after)
	p.want("its replica gets", p.gets(f), ended)
	if f := p.Figures(p.now); f.ID != id["b"] || f.Former != former || f.FormerEnd != o.Offset {
		t.Errorf("%+v", f)
	}
	second, _ := p.attach(former, o.Offset)
	p.want("and asks again", p.gets(second), "+CONTINUE "+id["b"]+"\r\ntwo")
}

// TestHeldForItsSuccessor: a stream that a replica has all of stays there until the server is the replica of that one, which would
// lack a PING otherwise. A replica that lacks something does not hold it.
func TestHeldForItsSuccessor(t *testing.T) {
	p := &passes{T: t, Stream: NewStream(1 << 20), now: time.Unix(1e9, 0)}
	p.Begin()
	f, _ := p.Attach(Ask{Peer: Peer{Port: 6380, EOF: true}, Remote: "127.0.0.1:1", ReplID: p.id, Next: 1}, func() Limits { return Limits{} }, func() {}, p.now)
	add := func() (added bool) {
		before := p.Position().Offset
		p.Ping(p.now, time.Second)
		p.now = p.now.Add(time.Hour)
		p.Ping(p.now, time.Second)
		p.AskForAcks()
		p.publish([]byte("message"))
		return p.Position().Offset > before
	}
	hold := func() (ok bool) {
		_, _, ok = p.CaughtUp("127.0.0.1", 6380, true)
		return ok
	}
	if !hold() {
		t.Fatal("a replica that has everything is none")
	}
	if m := (&Feeders{Stream: p.Stream}); add() || m.Message(nil) != nil {
		t.Error("something is added to a stream that is held")
	}
	if o, ok := p.demote(); !ok || o.Offset != f.acked {
		t.Errorf("it stands at %+v, %v, and its successor at %d", o, ok, f.acked)
	}
	p.lead()
	if p.Release(); !add() {
		t.Error("nothing is added after that")
	}
	if hold() || !add() {
		t.Error("a replica that lacks something holds the stream")
	}
}

// TestAheadWaits: a replica that has more of the same stream than a server that was killed is not synchronized as a whole: it
// waits. So do all while nothing was received.
func TestAheadWaits(t *testing.T) {
	p := newPasses(t, at("a", 1000, 0))
	for has, want := range map[int64]bool{999: true, 1000: true, 1001: false} {
		if p.serves(&Ask{ReplID: id["a"], Next: has + 1}) != want {
			t.Errorf("who has %d is served: %v", has, !want)
		}
	}
	if !p.serves(&Ask{ReplID: id["b"], Next: 5000}) || !p.serves(&Ask{ReplID: "?", Next: -1, SYNC: true}) {
		t.Error("who has nothing of the stream waits")
	}
	if NewStream(1).serves(&Ask{ReplID: "?", Next: -1}) {
		t.Error("a file is promised of a stream that has not begun")
	}
}

// TestInstalledAnew: when everything is replaced no replica goes on, and none was given a snapshot of either state with the
// position of the other.
func TestInstalledAnew(t *testing.T) {
	p := newPasses(t, at("a", 1000, 0))
	f, _ := p.attach(id["a"], 1000)
	file, _ := p.attach("?", -2)
	if err := p.Install(at("b", 50, 2), func() (bool, error) {
		if p.passing.TryLock() {
			t.Error("a snapshot may be cut while everything is replaced")
		}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	file.Cut()
	p.want("who was there", p.gets(f), ended)
	p.want("who waits for a file", p.gets(file), ended)
	if _, isPartial := p.attach(id["a"], 1000); isPartial {
		t.Error("a replica of the old data goes on")
	}
	if o, ok := p.Origin(); !ok || o != at("b", 50, 2) {
		t.Errorf("it stands at %+v, %v", o, ok)
	}
	failed := errors.New("no")
	if err := p.Install(at("a", 9, 0), func() (bool, error) { return false, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if o, _ := p.Origin(); o != at("b", 50, 2) {
		t.Errorf("after a failure it stands at %+v", o)
	}
}

// TestNoCutBetween: no snapshot is cut between a commit and its bytes; they go on right after its moment, and after a snapshot
// that failed.
func TestNoCutBetween(t *testing.T) {
	p := newPasses(t, at("a", 1000, 0))
	held := func() bool {
		if p.passing.TryLock() {
			p.passing.Unlock()
			return false
		}
		return true
	}
	if err := p.Pass([]byte("one"), at("a", 1003, 0), func() (bool, error) {
		if !held() {
			t.Error("a snapshot may be cut between a commit and its bytes")
		}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	_, _ = p.cut(func(cut func()) (*db.Store, error) {
		if !held() {
			t.Error("bytes may be on their way at the moment of a snapshot")
		}
		cut()
		if held() {
			t.Error("bytes wait until a snapshot is open")
		}
		return nil, nil
	}, func() {})
	_, err := p.cut(func(func()) (*db.Store, error) { return nil, errors.New("no") }, func() { t.Error("a snapshot that failed has a moment") })
	if err == nil || held() {
		t.Errorf("after a snapshot that failed: %v", err)
	}
}
