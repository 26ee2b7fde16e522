package server

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/gate"
	"github.com/stavedb/stave/server/internal/session"
)

// simKeys are few, so that everything meets. Each write appends an entry of its own to some of them: so a value has all writes that it
// follows, in their order, and one that follows another one begins with it.
var simKeys = []string{"k1", "k2", "k3"}

// simRequest is what a client asks for, and its session.
type simRequest struct {
	w       *sim
	n       int
	o       *simNode
	life    int
	session session.Link
	batch   *session.Batch
	keys    []string
	entry   string // of a write; "" for a read
	called  time.Duration
	since   map[string]int // how much had been shown of each key when it was called
	begun   time.Duration  // when it was executed
	values  []string       // what it shows of keys
}

// clients write and read. Each stays with a node for some time, or until that refuses it.
func (w *sim) clients() {
	w.After(w.Between(1*ms, 60*ms), func() {
		for i, o := range w.asked {
			if w.Chance(5) {
				o = nil
			}
			switch {
			case o == nil && w.service.record.Version > 0 && w.Chance(60):
				o = w.nodeOf(w.service.record.Primary)
			case o == nil:
				o = w.nodes[w.R.IntN(len(w.nodes))]
			}
			if w.asked[i] = o; w.Chance(70) {
				w.request(o)
			}
		}
		w.clients()
	})
}

// leave has clients ask another node.
func (w *sim) leave(o *simNode) {
	for i := range w.asked {
		if w.asked[i] == o && w.Chance(60) {
			w.asked[i] = nil
		}
	}
}

func (w *sim) request(o *simNode) {
	w.judge.requests++
	r := &simRequest{w: w, n: w.judge.requests, o: o, called: w.Now(), since: map[string]int{}, life: o.life}
	r.keys = []string{simKeys[w.R.IntN(len(simKeys))]}
	if w.Chance(25) {
		r.keys = slices.Clone(simKeys[:2])
	}
	for _, key := range r.keys {
		r.since[key] = len(w.judge.shown[key])
	}
	if w.Chance(45) && w.Now() >= o.quiet {
		r.entry = fmt.Sprintf("%d,", r.n)
	}
	w.judge.calls = append(w.judge.calls, r)
	delay := w.Between(200*time.Microsecond, 5*ms)
	if w.Now() < w.cut[[2]int{len(w.nodes), o.i}] {
		if delay += w.Between(0, 2*time.Second); w.Chance(50) {
			return // it never arrives
		}
	}
	w.After(delay, func() {
		if o.store == nil || o.life != r.life {
			w.leave(o)
			return
		}
		o.later(o.life, r.begin)
	})
}

// text is the request as it is sent.
func (r *simRequest) text() string {
	var b strings.Builder
	if len(r.keys) > 1 && r.entry != "" {
		b.WriteString("MULTI\r\n")
	}
	for _, key := range r.keys {
		if r.entry != "" {
			fmt.Fprintf(&b, "APPEND %s %s\r\n", key, r.entry)
		}
	}
	switch {
	case r.entry == "" && len(r.keys) > 1:
		fmt.Fprintf(&b, "MGET %s\r\n", strings.Join(r.keys, " "))
	case r.entry == "":
		fmt.Fprintf(&b, "GET %s\r\n", r.keys[0])
	case len(r.keys) > 1:
		b.WriteString("EXEC\r\n")
	}
	return b.String()
}

// begin has the node execute it. A replica, which says that it is one, shows what it has: nobody takes that for the newest.
func (r *simRequest) begin() {
	o := r.o
	if o.server.state.Following.IsReplica() {
		r.w.leave(o)
		return
	}
	r.batch = session.NewBatch()
	r.session = o.server.newSession().Connect(session.Connection{Remote: "c:9", Local: o.id + ":1", Context: simContext})
	r.session.Attach(0, &clients.Driver{Wake: func() {}, Kill: func() {}})
	r.session.Take([]byte(r.text()))
	o.takes = append(o.takes, r)
}

// execute executes it, in a round of an event loop. It reports false if it would have to wait.
func (r *simRequest) execute() bool {
	o := r.o
	r.session.JoinLoop(r.batch)
	r.session.BeginRound(o.time())
	r.batch.Run()
	r.session.EndRound()
	if r.session.Leaves() {
		return false
	}
	r.begun = r.w.Now()
	for _, key := range r.keys {
		r.values = append(r.values, valueOf(o.store, key))
	}
	o.requests = append(o.requests, r)
	return true
}

// reply lets the replies of a node leave that may.
func (o *simNode) reply() {
	waiting := o.takes[:0]
	for _, r := range o.takes {
		if !r.execute() {
			waiting = append(waiting, r)
		}
	}
	o.takes = waiting
	v := o.server.state
	kept := o.requests[:0]
	for _, r := range o.requests {
		if ticket, round := r.session.Undurable(); r.waits() && o.w.Now() < r.begun+gate.DefaultPatience {
			if v.AskRound(round); !v.Store.Durable(ticket) {
				o.syncSoon()
			}
			kept = append(kept, r)
			continue
		}
		r.end()
	}
	clear(o.requests[len(kept):])
	if o.requests = kept; len(o.takes) > 0 {
		o.syncSoon()
	}
}

// waits reports whether the replies may not leave yet.
func (r *simRequest) waits() bool {
	ticket, _ := r.session.Undurable()
	switch d := r.w.defect; {
	case d == gateOff, d == tableOff && r.entry == "" && r.o.server.state.Gate.Answers():
		return !r.o.server.state.Store.Durable(ticket)
	}
	return r.session.IsPending()
}

// end lets the replies leave.
func (r *simRequest) end() {
	var unknown error
	if r.session.IsPending() {
		unknown = gate.ErrUnknown
	}
	if d := r.w.defect; (d == gateOff || d == tableOff && r.entry == "") && !r.waits() {
		r.session.EndDurable(nil)
	} else {
		r.session.EndDurable(r.session.Outcome(unknown))
	}
	out := bytes.Clone(r.session.Output())
	r.session.Close()
	r.session.Release()
	r.o.leaves(func() { r.w.judge.replied(r, out) })
}

// lost is called when the node has ended before.
func (r *simRequest) lost() { r.w.counts.unknown++ }

// simRefusals are the beginnings of errors after which nothing was executed.
var simRefusals = []string{"-CLUSTERDOWN", "-NOREPLICAS", "-READONLY", "-LOADING", "-EXECABORT"}

// outcome is what a client makes of replies.
func outcome(out []byte) (refused, unknown bool, other string) {
	for line := range strings.Lines(string(out)) {
		switch {
		case strings.HasPrefix(line, "-UNKNOWNOUTCOME"):
			return false, true, ""
		case slices.ContainsFunc(simRefusals, func(code string) bool { return strings.HasPrefix(line, code) }):
			refused = true
		case line[0] == '-' && !refused:
			return false, false, line
		}
	}
	return refused, false, ""
}

// simJudge knows all that clients were shown.
type simJudge struct {
	w        *sim
	requests int
	calls    []*simRequest
	shown    map[string]string // the longest value of each key
	refused  map[string]bool   // entries that were said not to have been written
	ops      []simOp
}

func (j *simJudge) init(w *sim) {
	j.w, j.shown, j.refused = w, map[string]string{}, map[string]bool{}
}

// replied is called when replies leave a node.
func (j *simJudge) replied(r *simRequest, out []byte) {
	w := j.w
	refused, unknown, other := outcome(out)
	switch {
	case other != "":
		w.Fail("%s replies %q to request %d", r.o.id, other, r.n)
		return
	case unknown:
		w.leave(r.o)
		w.counts.unknown++
		return
	case refused:
		w.leave(r.o)
		if w.counts.refused++; r.entry != "" {
			j.refused[r.entry] = true
		}
		return
	}
	w.Note("%s replies to %d, %s %v %s: %s", r.o.id, r.n, fmt.Sprint(r.called), r.keys, r.entry, strings.Join(j.newest(r.values), " "))
	if state := r.o.driver.State(); !state.IsPrimary && w.defect != gateOff {
		w.Fail("S4: %s replies to %d and is not primary of the newest term that it knows", r.o.id, r.n)
	}
	if r.entry == "" {
		w.counts.reads++
		j.matches(r, out)
	} else {
		w.counts.writes++
	}
	for i, key := range r.keys {
		j.shows(r, key, r.values[i])
	}
	j.inSync(fmt.Sprintf("%s replies to %d", r.o.id, r.n))
	if r.entry != "" {
		j.stores(r)
	}
	j.ops = append(j.ops, simOp{r, w.Now()})
}

// newest is the last of each value, for the history.
func (j *simJudge) newest(values []string) (list []string) {
	for _, v := range values {
		list = append(list, fmt.Sprintf("%d:%s", len(v), v[max(0, len(v)-12):]))
	}
	return list
}

// matches checks that a read has replied what the store had.
func (j *simJudge) matches(r *simRequest, out []byte) {
	reply, err := resp.NewDecoder(bytes.NewReader(out)).Read()
	items := []resp.Reply{reply}
	if len(r.keys) > 1 {
		items = reply.Items
	}
	for i, item := range items {
		if err != nil || string(item.Text) != r.values[i] {
			j.w.Fail("%s replies %q to %d, and its store has %q", r.o.id, out, r.n, r.values[i])
		}
	}
}

// shows checks one value against all that were shown before.
func (j *simJudge) shows(r *simRequest, key, value string) {
	longest := j.shown[key]
	what := "reads"
	if r.entry != "" {
		what = "writes"
	}
	switch {
	case len(value) < r.since[key]:
		j.w.Fail("S5: %s %s an old value of %s (request %d): %d bytes, and %d were shown before it was asked", r.o.id, what, key, r.n, len(value), r.since[key])
	case !strings.HasPrefix(longest, value) && !strings.HasPrefix(value, longest):
		j.w.Fail("lost write: %s %s a value of %s (request %d) without one that was shown: %q, %q", r.o.id, what, key, r.n, value, longest)
	case len(value) > len(longest):
		j.shown[key] = value
	}
}

// inSync checks that each one in sync has everything that was shown. One that has come back with a log that may be shorter is none of them.
func (j *simJudge) inSync(why string) {
	w := j.w
	for _, m := range w.service.record.InSync {
		o := w.nodeOf(m.ID)
		for _, key := range simKeys {
			if o.member() == m && !strings.HasPrefix(o.value(key), j.shown[key]) {
				w.Fail("S1: %s: %s is in sync and has %q of %s, and %q was shown", why, o.id, o.value(key), key, j.shown[key])
			}
		}
	}
}

// stores checks that a write is in as many stores as it needs.
func (j *simJudge) stores(r *simRequest) {
	n := 0
	for _, o := range j.w.nodes {
		if strings.HasPrefix(o.value(r.keys[0]), r.values[0]) {
			n++
		}
	}
	if j.w.always && n < j.w.min { // else one may have lost its power since
		j.w.Fail("%s acknowledges %d, which %d stores have, not %d", r.o.id, r.n, n, j.w.min)
	}
}

// final checks what a healed group has.
func (j *simJudge) final() {
	w := j.w
	record := w.service.record
	if len(record.InSync) != len(w.nodes) {
		w.Fail("%d in sync of %d: %s", len(record.InSync), len(w.nodes), w.describe(record))
		return
	}
	before := len(j.ops)
	for i := 0; i < 5 && len(w.Wrong) == 0 && (i == 0 || len(j.ops) == before); i++ {
		w.Run(time.Second)
	}
	if len(w.Wrong) > 0 {
		return
	}
	if len(j.ops) == before {
		w.Fail("nothing goes on: %s", w.describe(record))
		return
	}
	primary := w.nodeOf(w.service.record.Primary)
	for _, key := range simKeys {
		value := primary.value(key)
		if !strings.HasPrefix(value, j.shown[key]) {
			w.Fail("lost write: in the end %s has %q of %s, and %q was shown", primary.id, value, key, j.shown[key])
		}
		seen := map[string]bool{}
		for _, entry := range strings.SplitAfter(value, ",") {
			if seen[entry] || j.refused[entry] {
				w.Fail("%s of %s is there twice, or was refused", entry, key)
			}
			seen[entry] = true
		}
		for _, op := range j.ops {
			if r := op.r; r.entry != "" && slices.Contains(r.keys, key) && !seen[r.entry] {
				w.Fail("lost write: %s of %s, acknowledged at %s", r.entry, key, op.returned)
			}
		}
	}
	j.linearizable(primary)
}

// linearizable judges what clients know of each key, and the end. The value in the end says in which order the writes have happened, so
// each call is placed as early as it can be: after all those that must be before it.
func (j *simJudge) linearizable(primary *simNode) {
	for _, key := range simKeys {
		final := primary.value(key)
		called := map[string]time.Duration{} // of writes, also of those that were not answered
		for _, r := range j.calls {
			if r.entry != "" {
				called[r.entry] = r.called
			}
		}
		writes, reads := map[int]time.Duration{}, map[int][]simOp{} // when they were answered, by how long the value is after them
		for _, op := range j.ops {
			if at := slices.Index(op.r.keys, key); at >= 0 {
				n := len(op.r.values[at])
				if op.r.entry != "" {
					writes[n] = op.returned
				} else {
					reads[n] = append(reads[n], op)
				}
			}
		}
		now, have := time.Duration(0), 0
		place := func(called, returned time.Duration, what any) {
			if now = max(now, called); now > returned {
				j.w.Fail("not linearizable: %v of %s, answered at %s, comes after what was asked at %s", what, key, returned, now)
			}
		}
		for _, entry := range append([]string{""}, strings.SplitAfter(final, ",")...) {
			if have += len(entry); entry != "" {
				returned, known := writes[have]
				if !known {
					returned = j.w.Now()
				}
				place(called[entry], returned, "the write "+entry)
			}
			earliest := now
			latest := now
			for _, op := range reads[have] { // in any order
				now = earliest
				place(op.r.called, op.returned, "a read")
				latest = max(latest, now)
			}
			delete(reads, have)
			now = latest
		}
		if len(reads) > 0 {
			j.w.Fail("not linearizable: reads of %s show what it never held", key)
		}
	}
}
