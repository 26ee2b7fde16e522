package server

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/shared"
)

// simConn is a connection between two nodes: bytes arrive in their order, late, or not at all when it breaks.
type simConn struct {
	w      *sim
	ends   [2]*simEnd // of the member, and of its primary
	broken bool
}

// simEnd is an end of a connection, in one life of a node.
type simEnd struct {
	o      *simNode
	life   int
	newest time.Duration // when the newest piece for it arrives
	in     []simPiece    // has arrived
	take   func(p simPiece)
	ended  func()
	isOver bool
}

// simPiece is what was sent at once. A file of a whole store is one piece, which may be cut off.
type simPiece struct {
	data   []byte
	isFile bool
	isEnd  bool // the other side has closed
}

// send sends from an end. What cannot arrive now arrives when it can.
func (c *simConn) send(from int, p simPiece) {
	w, to := c.w, c.ends[1-from]
	at := w.Now() + w.Between(200*time.Microsecond, 3*ms)
	if !w.calm && w.Chance(2) {
		at = w.Now() + w.Between(3*ms, 1500*ms)
	}
	if p.isFile {
		at += w.Between(1*ms, 600*ms)
	}
	if until := w.cut[[2]int{c.ends[from].o.i, to.o.i}]; at < until {
		if at = until + w.Between(0, 20*ms); w.Chance(50) {
			w.After(w.Between(0, 2*time.Second), c.abort)
		}
	}
	to.newest = max(to.newest, at)
	w.After(to.newest-w.Now(), func() {
		if !c.broken {
			to.in = append(to.in, p)
			to.o.later(to.life, func() { c.receive(to) })
		}
	})
}

// receive takes what has arrived.
func (c *simConn) receive(e *simEnd) {
	for len(e.in) > 0 && !e.isOver {
		p := e.in[0]
		if e.in = e.in[1:]; p.isEnd {
			c.over(e)
			return
		}
		if n := len(p.data); !p.isFile && n > 1 && c.w.Chance(10) { // in pieces
			at := 1 + c.w.R.IntN(n-1)
			e.in = append([]simPiece{{data: p.data[at:]}}, e.in...)
			p.data = p.data[:at]
			e.take(p)
			c.w.After(c.w.Between(0, 2*ms), func() { e.o.later(e.life, func() { c.receive(e) }) })
			return
		}
		e.take(p)
	}
}

// over ends one end.
func (c *simConn) over(e *simEnd) {
	if !e.isOver {
		e.isOver = true
		e.ended()
	}
}

// close is of one side: the other one learns of it after what was sent before.
func (c *simConn) close(from int) {
	if e := c.ends[from]; !e.isOver {
		c.over(e)
		c.send(from, simPiece{isEnd: true})
	}
}

// abort breaks the connection: what is on its way is lost, and each side learns of it at some time. Of a file that was being sent some
// has arrived.
func (c *simConn) abort() {
	if c.broken {
		return
	}
	c.broken = true
	for _, e := range c.ends {
		c.w.After(c.w.Between(0, 200*ms), func() { e.o.later(e.life, func() { c.over(e) }) })
	}
}

// breakConnections breaks those of a node.
func (o *simNode) breakConnections() {
	if o.link != nil {
		o.link.conn.abort()
	}
	for _, p := range o.peers {
		p.conn.abort()
	}
}

// simLink is what transport.MasterLink is.
type simLink struct {
	*replication.Link
	o       *simNode
	conn    *simConn
	master  shared.Master
	applier *session.Applier
	up      bool
	err     error
	late    time.Duration // of acksArrived: when it applies what has arrived
}

// follow keeps a link to the master that the server has, if there is one.
func (o *simNode) follow() {
	master, _ := o.server.state.Following.Master()
	if l := o.link; l != nil {
		if l.err == nil && master == l.master && !l.conn.ends[0].isOver {
			l.flush()
			return
		}
		l.end()
		o.link = nil
		var diverged *shared.DivergedError
		if errors.As(l.err, &diverged) {
			o.w.Fail("%s: %v", o.id, diverged)
		}
		if l.up || master != l.master {
			o.linkWait = 0
		}
		o.linkWait = min(max(2*o.linkWait, 200*ms), time.Second)
		o.linkAfter = o.w.Now() + o.w.Between(o.linkWait, o.linkWait*3/2)
		if master != l.master {
			o.linkAfter = 0
		}
	}
	if !master.IsZero() && o.w.Now() >= o.linkAfter {
		o.connect(master)
	}
}

// connect makes a link, which begins when the primary's side has it.
func (o *simNode) connect(master shared.Master) {
	v := o.server.state
	greeting, err := v.Member.Greeting(master)
	to := o.w.nodeOf(master.Host)
	if err != nil || to == o || o.w.Now() < max(o.w.cut[[2]int{o.i, to.i}], o.w.cut[[2]int{to.i, o.i}]) {
		o.linkAfter = o.w.Now() + o.w.Between(200*ms, 1500*ms)
		return
	}
	o.w.counts.connections++
	l := &simLink{o: o, master: master, applier: session.NewApplier(o.server.newSession(), func() bool { return false }, nil)}
	l.conn = &simConn{w: o.w}
	l.conn.ends[0] = &simEnd{o: o, life: o.life, take: l.take, ended: func() { l.err = errors.Join(l.err, io.EOF) }}
	l.conn.ends[1] = &simEnd{o: to, life: to.life}
	to.accept(l.conn)
	store := v.Store
	options := replication.Options{Group: greeting}
	options.Origin, options.Known = v.Replicas.Stream.Origin()
	l.Link = replication.NewLink(options, replication.Replica{
		Apply: func(commands []replication.Command, received []byte, after replication.Origin) error {
			return v.Replicas.Stream.Pass(received, after, func() (bool, error) {
				if len(commands) == 0 {
					return true, nil
				}
				return replication.Done(store, after, l.applier.Apply(commands, after))
			})
		},
		Load: func(r io.Reader, at replication.Origin, ended func(io.Reader) error) (int, error) {
			return replication.LoadFile(store, v.Replicas.Stream, r, at, ended, func(int64) {})
		},
		Written:  func() uint64 { return serverside.DB.NextSequence(store) },
		IsOnDisk: func(written uint64) bool { return serverside.DB.IsOnDisk(store, written) },
		Pinged:   v.Member.Pinged, Applied: v.Member.Applied,
	})
	o.link = l
	l.flush()
}

// take takes what has arrived, as MasterLink.serve does.
func (l *simLink) take(p simPiece) {
	if l.err != nil || l.o.link != l {
		return
	}
	done, ok := l.o.server.state.Following.Begin(l.master)
	if !ok {
		l.err = errors.New("another master")
		return
	}
	defer done()
	if l.o.w.defect == acksArrived && l.Phase() == replication.Streaming && !p.isFile {
		l.acknowledgeEarly(p)
		return
	}
	l.err = l.feed(p)
}

func (l *simLink) feed(p simPiece) error {
	v, w := l.o.server.state, l.o.w
	if p.isFile {
		if l.Phase() != replication.Loading {
			return errors.New("BUG: a file has arrived that nobody waits for")
		}
		if !w.calm && w.Chance(5) {
			w.counts.cutFiles++
			p.data = p.data[:w.R.IntN(len(p.data))]
		}
		if _, err := replication.KeepOrphans(v.Store, v.Replicas.Stream, l.History(), l.o.time()); err != nil {
			return err
		}
		if err := l.Load(nil, bytes.NewReader(p.data)); err != nil {
			return err
		}
		w.counts.fulls++
		w.Note("%s has loaded everything of %s", l.o.id, l.master.Host)
	} else if rest, err := l.Feed(p.data); err != nil || len(rest) > 0 {
		return errors.Join(err, errorIf(len(rest) > 0, "BUG: a file in pieces"))
	}
	if l.Phase() == replication.Streaming && !l.up {
		l.up = true
		if l.IsPartial() {
			w.counts.partials++
			w.Note("%s goes on with the stream of %s", l.o.id, l.master.Host)
		}
		v.Replicas.Stream.ContinueAs(l.Position().ReplID)
		v.Following.Report(l.master, func(s *shared.LinkStatus) { s.State = shared.LinkUp })
	}
	return nil
}

func errorIf(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}

// acknowledgeEarly says that what has arrived is applied, and applies it later.
func (l *simLink) acknowledgeEarly(p simPiece) {
	w := l.o.w
	if ack := l.o.server.state.Member.Applied(l.Position().Offset + int64(len(p.data))); ack != "" {
		l.out(simCommand("REPLCONF", "GROUPACK", ack))
	}
	life := l.o.life
	l.late = max(l.late, w.Now()+w.Between(20*ms, 40*ms))
	w.After(l.late-w.Now(), func() {
		l.o.later(life, func() {
			if l.err == nil && l.o.link == l {
				if done, ok := l.o.server.state.Following.Begin(l.master); ok {
					l.err = l.feed(p)
					done()
				}
			}
		})
	})
}

// flush sends the output.
func (l *simLink) flush() {
	if out := l.Output(); len(out) > 0 {
		l.out(bytes.Clone(out))
		l.Sent(len(out))
	}
}

func (l *simLink) out(b []byte) {
	l.o.leaves(func() { l.conn.send(0, simPiece{data: b}) })
}

func (l *simLink) end() {
	l.applier.Close()
	l.o.server.state.Following.Report(l.master, func(s *shared.LinkStatus) { s.State = shared.LinkDown })
	l.o.leaves(func() { l.conn.close(0) })
}

// simPeer is what serves a connection of a member on its primary.
type simPeer struct {
	o       *simNode
	conn    *simConn
	session session.Link
	batch   *session.Batch
	feeder  *replication.Feeder
	over    bool
}

// accept serves the other side of a connection. Nobody does if there is no process.
func (o *simNode) accept(c *simConn) {
	if o.store == nil {
		c.ends[1].take, c.ends[1].ended = func(simPiece) {}, func() {}
		c.abort()
		return
	}
	p := &simPeer{o: o, conn: c, batch: session.NewBatch()}
	p.session = o.server.newSession().Connect(session.Connection{Remote: c.ends[0].o.id + ":9", Local: o.id + ":1", Context: simContext})
	p.session.Attach(0, &clients.Driver{Wake: func() {}, Kill: func() { p.over = true }})
	p.session.JoinLoop(p.batch)
	c.ends[1].take, c.ends[1].ended = p.take, func() { p.over = true }
	o.peers = append(o.peers, p)
}

func (p *simPeer) take(piece simPiece) {
	if p.over {
		return
	}
	if p.feeder != nil {
		p.over = p.o.server.state.Replicas.In(p.feeder, piece.data, p.o.time()) != nil
		return
	}
	p.session.Take(piece.data)
	p.session.BeginRound(p.o.time())
	p.batch.Run()
	if p.session.EndRound(); p.session.Leaves() {
		p.session.ExecuteAside()
	}
	if out := bytes.Clone(p.session.Output()); len(out) > 0 {
		p.session.Sent(len(out))
		p.out(simPiece{data: out})
	}
	if ask := p.session.Follows(); ask != nil {
		p.join(*ask)
	} else if p.session.Closed() {
		p.over = true
	}
}

// join begins to feed the member, as Connections.feed does.
func (p *simPeer) join(ask replication.Ask) {
	v := p.o.server.state
	ask.Remote = "m:9"
	f, err := v.Replicas.Join(ask, func() { p.over = true }, p.o.time())
	if err != nil {
		p.out(simPiece{data: []byte("-" + v.ErrorText(err) + "\r\n")})
		p.over = true
		return
	}
	p.feeder = f
}

func (p *simPeer) out(piece simPiece) {
	p.o.leaves(func() { p.conn.send(1, piece) })
}

// feed sends members what there is for them.
func (o *simNode) feed() {
	kept := o.peers[:0]
	for _, p := range o.peers {
		if !p.over {
			p.feed()
		}
		if p.over {
			p.end()
			continue
		}
		kept = append(kept, p)
	}
	clear(o.peers[len(kept):])
	o.peers = kept
}

func (p *simPeer) feed() {
	f := p.feeder
	if f == nil {
		return
	}
	if f.WantsFile() {
		if err := p.sendFile(); err != nil {
			p.o.w.Note("%s sends no file: %v", p.o.id, err)
			p.over = true
			return
		}
	}
	for {
		out, err := f.Out(p.o.time())
		if err != nil {
			p.over = true
		}
		if err != nil || len(out) == 0 {
			return
		}
		p.out(simPiece{data: bytes.Clone(out)})
	}
}

// sendFile sends a snapshot of the store, as feeding.sendFile does.
func (p *simPeer) sendFile() error {
	m, f := p.o.server.state.Replicas, p.feeder
	snapshot, done, err := m.Snapshot(simContext, f)
	if err != nil {
		return err
	}
	f.BeginFile()
	head, err := f.Out(p.o.time())
	var file bytes.Buffer
	if err == nil {
		p.out(simPiece{data: bytes.Clone(head)})
		err = m.Write(simContext, f, snapshot, &file)
	}
	if err == nil {
		f.EndFile(p.o.time())
		var mark []byte
		mark, err = f.Out(p.o.time())
		file.Write(mark)
		p.out(simPiece{data: file.Bytes(), isFile: true})
	}
	return errors.Join(err, done())
}

func (p *simPeer) end() {
	if p.feeder != nil {
		p.o.server.state.Replicas.Leave(p.feeder)
	}
	p.session.Close()
	p.session.Release()
	p.o.leaves(func() { p.conn.close(1) })
}

// simCommand is one as a client sends it.
func simCommand(words ...string) []byte {
	list := make([][]byte, len(words))
	for i, word := range words {
		list[i] = []byte(word)
	}
	return resp.AppendCommand(nil, list...)
}
