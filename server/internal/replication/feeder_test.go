package replication_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/replication"
)

// play is a stream with replicas that the test plays.
type play struct {
	*testing.T
	stream *replication.Stream
	limits replication.Limits
	now    time.Time
	over   int // replicas that exceeded their limit
}

func newPlay(t *testing.T, backlog int64) *play {
	p := &play{T: t, stream: replication.NewStream(backlog), now: time.Unix(1e9, 0)}
	p.stream.Begin()
	return p
}

func (p *play) attach(ask replication.Ask) (f *replication.Feeder, isPartial bool) {
	ask.EOF, ask.PSYNC2 = true, true
	return p.stream.Attach(ask, func() replication.Limits { return p.limits }, func() { p.over++ }, p.now)
}

// command is a command of one word in a database.
func (p *play) write(database int, words ...string) string {
	text := string(resp.AppendCommandStrings(nil, words...))
	p.stream.Written(serverside.Commit{RESP: []byte(text), First: database, Last: database, Next: 1})
	return text
}

// out is all that a replica is sent.
func (p *play) out(f *replication.Feeder) string {
	p.Helper()
	var all []byte
	for {
		out, err := f.Out(p.now)
		if err != nil {
			p.Fatal(err)
		}
		if len(out) == 0 {
			return string(all)
		}
		all = append(all, out...)
	}
}

func (p *play) in(f *replication.Feeder, words ...string) {
	p.Helper()
	if _, err := f.In(resp.AppendCommandStrings(nil, words...), p.now); err != nil {
		p.Fatal(err)
	}
}

func (p *play) want(what, got, want string) {
	p.Helper()
	if got != want {
		p.Errorf("%s:\ngot  %.500q\nwant %.500q", what, got, want)
	}
}

const selected = "*2\r\n$6\r\nSELECT\r\n$1\r\n%d\r\n"

// full lets a replica have its file, and returns what it was sent before.
func (p *play) full(f *replication.Feeder) string {
	p.Helper()
	if !f.WantsFile() {
		p.Fatal("it wants no file")
	}
	f.Cut()
	head := p.out(f)
	f.BeginFile()
	head += p.out(f) + "file"
	f.EndFile(p.now)
	return head + p.out(f)
}

// TestFullThenStream: a replica gets the file, after it and its first acknowledgement what was written since the cut, and
// first of all the database of that.
func TestFullThenStream(t *testing.T) {
	p := newPlay(t, 1<<20)
	p.write(3, "SET", "before", "1")
	at := p.stream.Position()
	f, isPartial := p.attach(replication.Ask{ReplID: "?", Next: -1})
	if isPartial {
		t.Error("a replica that knows nothing goes on somewhere")
	}
	head := p.full(f)
	mark := head[len(head)-40:]
	p.want("the head", head, fmt.Sprintf("+FULLRESYNC %s %d\r\n$EOF:%s\r\nfile%s", at.ID, at.Offset, mark, mark))
	one := p.write(3, "SET", "after", "2")
	p.want("before the first ACK", p.out(f), "")
	p.in(f, "REPLCONF", "ACK", fmt.Sprint(at.Offset))
	p.want("the stream", p.out(f), fmt.Sprintf(selected, 3)+one)
	two := p.write(3, "SET", "after", "3")
	three := p.write(0, "SET", "after", "4")
	p.want("the stream", p.out(f), two+fmt.Sprintf(selected, 0)+three)
}

// TestContinue: a replica that was away gets the rest from each byte on, and the database that the next command is for.
func TestContinue(t *testing.T) {
	p := newPlay(t, 1<<20)
	begin := p.stream.Position()
	var all string
	for i := range 20 {
		all += map[bool]string{true: fmt.Sprintf(selected, 7)}[i == 0] + p.write(7, "SET", "k", strings.Repeat("v", 10*i*i*i))
	}
	for have := 0; have <= len(all); have += max(1, have/50) {
		f, isPartial := p.attach(replication.Ask{ReplID: begin.ID, Next: begin.Offset + int64(have) + 1})
		if !isPartial {
			t.Fatalf("a replica that has %d bytes of %d cannot go on", have, len(all))
		}
		p.want("the rest", p.out(f), "+CONTINUE "+begin.ID+"\r\n"+all[have:])
		all += fmt.Sprintf(selected, 7) + p.write(7, "INCR", "n")
		p.want("what follows", p.out(f), fmt.Sprintf(selected, 7)+string(resp.AppendCommandStrings(nil, "INCR", "n")))
		p.stream.Detach(f)
	}
	for _, ask := range []replication.Ask{
		{ReplID: begin.ID, Next: int64(len(all)) + 2}, {ReplID: begin.ID, Next: 0}, {ReplID: begin.ID, Next: -1}, {ReplID: strings.Repeat("0", 40), Next: 1},
		{ReplID: "", Next: 1}, {ReplID: begin.ID, Next: 1, SYNC: true},
	} {
		if _, isPartial := p.attach(ask); isPartial {
			t.Errorf("%+v goes on", ask)
		}
	}
}

// TestBacklogIsBounded: the oldest bytes are forgotten, and a commit that is longer than all that is kept goes to those who
// are there only.
func TestBacklogIsBounded(t *testing.T) {
	const limit = 100 << 10
	p := newPlay(t, limit)
	begin := p.stream.Position()
	f, _ := p.attach(replication.Ask{ReplID: begin.ID, Next: 1})
	want := "+CONTINUE " + begin.ID + "\r\n" + fmt.Sprintf(selected, 0)
	for range 3000 {
		want += p.write(0, "SET", "k", strings.Repeat("v", 100))
		if kept := p.stream.Figures(p.now).Kept; kept > limit+16<<10 {
			t.Fatalf("%d bytes are kept, limit %d", kept, limit)
		}
	}
	if kept := p.stream.Figures(p.now).Kept; kept < limit {
		t.Errorf("%d bytes are kept, limit %d", kept, limit)
	}
	if _, isPartial := p.attach(replication.Ask{ReplID: begin.ID, Next: 1}); isPartial {
		t.Error("a replica goes on at bytes that are forgotten")
	}
	want += p.write(0, "SET", "k", strings.Repeat("v", 5*limit))
	if kept := p.stream.Figures(p.now).Kept; kept != 0 {
		t.Errorf("%d bytes are kept after a commit that is longer than all that may be", kept)
	}
	want += p.write(0, "INCR", "n")
	p.want("who was there gets", p.out(f), want)
}

// TestAcknowledgements: they count, whatever pieces they come in, and never beyond what was sent.
func TestAcknowledgements(t *testing.T) {
	p := newPlay(t, 1<<20)
	p.write(0, "SET", "k", "v")
	offset := p.stream.Position().Offset
	in := resp.AppendCommandStrings([]byte("\n"), "REPLCONF", "ACK", fmt.Sprint(offset))
	in = resp.AppendCommandStrings(in, "replconf", "ack", "99999999")
	for cut := range len(in) {
		f, _ := p.attach(replication.Ask{ReplID: p.stream.Position().ID, Next: 1})
		if n := p.stream.Acknowledged(offset); n != 0 {
			t.Fatalf("%d have acknowledged %d", n, offset)
		}
		for _, piece := range [][]byte{in[:cut], in[cut:]} {
			if _, err := f.In(bytes.Clone(piece), p.now); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.stream.Acknowledged(offset); n != 1 {
			t.Errorf("cut at %d: %d have acknowledged %d, want 1", cut, n, offset)
		}
		if n := p.stream.Acknowledged(offset + 1); n != 0 {
			t.Errorf("cut at %d: %d have acknowledged what was not written", cut, n)
		}
		p.stream.Detach(f)
	}
	f, _ := p.attach(replication.Ask{ReplID: p.stream.Position().ID, Next: 1})
	for _, step := range []struct {
		says        []string
		acknowledge bool
		onDisk      int64 // the last offset that counts as on its disk; -1 for none
	}{
		{[]string{"REPLCONF", "ACK", "5"}, true, -1}, // as before Redis 7.2
		{[]string{"REPLCONF", "ACK", "5", "FACK", "x"}, false, -1},
		{[]string{"REPLCONF", "ACK", "5", "FACK"}, false, -1},
		{[]string{"REPLCONF", "ACK", "5", "FACK", "0"}, true, 0},
		{[]string{"REPLCONF", "ACK", "7", "FACK", "0"}, true, 0},
		{[]string{"REPLCONF", "ACK", "7", "fack", "6"}, true, 6},
		{[]string{"REPLCONF", "ACK", "7", "FACK", "6"}, false, 6},
		{[]string{"REPLCONF", "ACK", "7", "FACK", "8"}, true, 7}, // what it has not applied is not on its disk
		{[]string{"REPLCONF", "ACK", "7", "FACK", "3"}, false, 7},
	} {
		acknowledged, err := f.In(resp.AppendCommandStrings(nil, step.says...), p.now)
		if err != nil || acknowledged != step.acknowledge {
			t.Errorf("%q: %v, %v", step.says, acknowledged, err)
		}
		if before, after := p.stream.OnDisk(step.onDisk), p.stream.OnDisk(step.onDisk+1); step.onDisk >= 0 && before != 1 || after != 0 {
			t.Errorf("%q: %d have %d on disk, %d the next byte", step.says, before, step.onDisk, after)
		}
	}
	if _, err := f.In([]byte("*1\r\n$99999999\r\n"), p.now); err == nil {
		t.Error("what is no request is taken")
	}
}

// TestKeptAwake: a replica that waits for its file gets a newline a second.
func TestKeptAwake(t *testing.T) {
	p := newPlay(t, 1<<20)
	f, _ := p.attach(replication.Ask{ReplID: "?"})
	p.want("at once", p.out(f), "")
	p.now = p.now.Add(time.Second)
	p.want("after a second", p.out(f), "\n")
	f.Cut()
	p.out(f)
	p.now = p.now.Add(time.Second)
	p.want("after another", p.out(f), "\n")
	f.BeginFile()
	p.now = p.now.Add(time.Minute)
	if head := p.out(f); !strings.HasPrefix(head, "$EOF:") || len(head) != len("$EOF:")+40+2 {
		t.Errorf("the file begins with %q", head)
	}
}

// TestGivenUp: replicas that say nothing, or for which too much waits, are given up.
func TestGivenUp(t *testing.T) {
	p := newPlay(t, 1<<20)
	p.limits = replication.Limits{Hard: 1000, Soft: 100, SoftFor: 10 * time.Second, Silence: time.Minute}
	check := func(f *replication.Feeder, want error) {
		t.Helper()
		if err := f.Check(p.now); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	silent, _ := p.attach(replication.Ask{ReplID: p.stream.Position().ID, Next: 1})
	p.now = p.now.Add(59 * time.Second)
	check(silent, nil)
	p.now = p.now.Add(2 * time.Second)
	check(silent, replication.ErrSilent)
	p.stream.Detach(silent)

	tool, _ := p.attach(replication.Ask{ReplID: "?", Next: -1, SYNC: true})
	p.full(tool)
	p.in(tool, "REPLCONF", "ACK", "0") // the only one that redis-cli --replica sends
	p.write(0, "SET", "k", "v")
	p.now = p.now.Add(time.Hour)
	check(tool, nil)
	if tool.HasAll() {
		t.Error("it has all before it was given that")
	}
	if p.out(tool); !tool.HasAll() {
		t.Error("it is waited for")
	}
	p.stream.Detach(tool)

	slow, _ := p.attach(replication.Ask{ReplID: p.stream.Position().ID, Next: 1})
	p.write(0, "SET", "k", strings.Repeat("v", 200))
	check(slow, nil)
	p.now = p.now.Add(9 * time.Second)
	check(slow, nil)
	p.out(slow)
	check(slow, nil)
	p.write(0, "SET", "k", strings.Repeat("v", 200))
	check(slow, nil)
	p.now = p.now.Add(10 * time.Second)
	check(slow, replication.ErrOverLimit)
	p.stream.Detach(slow)

	slower, _ := p.attach(replication.Ask{ReplID: p.stream.Position().ID, Next: p.stream.Position().Offset + 1})
	p.write(0, "SET", "k", strings.Repeat("v", 900))
	check(slower, nil)
	p.write(0, "SET", "k", strings.Repeat("v", 200))
	check(slower, replication.ErrOverLimit)
	if p.over != 1 {
		t.Errorf("over was called %d times, want 1", p.over)
	}
}

// TestUndescribed: after a commit that is not described no replica goes on.
func TestUndescribed(t *testing.T) {
	p := newPlay(t, 1<<20)
	p.write(0, "SET", "k", "v")
	before := p.stream.Position()
	f, _ := p.attach(replication.Ask{ReplID: before.ID, Next: 1})
	p.stream.Written(serverside.Commit{Next: 7})
	if _, err := f.Out(p.now); err == nil {
		t.Error("the replica goes on")
	}
	if _, isPartial := p.attach(replication.Ask{ReplID: before.ID, Next: before.Offset + 1}); isPartial {
		t.Error("another one goes on")
	}
	if after := p.stream.Position(); after.ID == before.ID || after.Offset != before.Offset {
		t.Errorf("%+v after %+v", after, before)
	}
}

// TestWokenOncePerRound: a round of an event loop wakes a replica once, at its end, or when much is there for it; what comes between
// two rounds wakes it at once.
func TestWokenOncePerRound(t *testing.T) {
	p := newPlay(t, 1<<20)
	f, _ := p.attach(replication.Ask{ReplID: p.stream.Position().ID, Next: 1})
	woken := func() bool {
		select {
		case <-f.More():
			return true
		default:
			return false
		}
	}
	woken()
	p.out(f)
	step := func(what string, do func(), want bool) {
		t.Helper()
		do()
		if got := woken(); got != want {
			t.Errorf("%s: woken is %v", what, got)
		}
	}
	write := func() { p.write(0, "SET", "k", "v") }
	step("without a round", write, true)
	step("the round begins", p.stream.Rounds.Begin, false)
	step("in a round", write, false)
	step("in a round", write, false)
	step("a second loop begins", p.stream.Rounds.Begin, false)
	step("the end of a round", p.stream.Rounds.End, true)
	step("the end of one without commits", p.stream.Rounds.End, false)
	step("between two", write, true)
	p.stream.Rounds.Begin()
	step("in the next one", write, false)
	step("much in a round", func() { p.write(0, "SET", "k", strings.Repeat("v", 40<<10)) }, true)
	step("little after that", write, false)
	step("its end", p.stream.Rounds.End, true)
}
