package group

import (
	"context"
	"errors"
	"sync"
	"time"
)

// answerWithin is how long a call of the service may take. An answer is of use also when the node has asked again meanwhile.
const answerWithin = 5 * time.Second

// Driver runs a Node: it has the clock, asks the service, and hands messages over. Its methods may be called from any goroutine.
type Driver struct {
	service Service
	now     func() time.Duration
	asks    func(Action) // gets what is to be asked of the service; nil: it is asked here
	hooks   Hooks
	calls   sync.WaitGroup // of the service, under way

	mu    sync.Mutex // guards the rest
	node  *Node
	ended bool
}

// Hooks are what a driver asks of the store and its server. They are called from several goroutines, and must not wait.
type Hooks struct {
	// Send takes a message to its member, or to all others if To is empty. It may lose it.
	Send func(Send)
	// Changed is called, without a lock, whenever held replies may leave, or never may, by then.
	Changed func()
	// Offset is how far the node's own log has come: see Node.Move. It is called with the driver's lock held.
	Offset func() uint64
	// Refused, which may be nil, is called when the group cannot be begun: with a *SlotsTakenError.
	Refused func(error)
}

// NewDriver returns the driver of a new Node.
func NewDriver(o Options, service Service, h Hooks) *Driver {
	return &Driver{service: service, now: Now, hooks: h, node: New(o, Now())}
}

// NewStepped returns a driver for simulators, without Run: who has it calls Step, by a clock of its own, and hands Answer what the
// service replies to a Read or Swap that asks gets.
func NewStepped(o Options, now func() time.Duration, asks func(Action), h Hooks) *Driver {
	return &Driver{now: now, asks: asks, hooks: h, node: New(o, now())}
}

// Step is to be called often: see Node.Tick.
func (d *Driver) Step() { d.tick(context.Background()) }

func (d *Driver) tick(ctx context.Context) {
	d.event(ctx, func(n *Node) []Action { return n.Tick(d.now()) })
}

// Answer takes what the service replies to a, or a record that was watched, for which a is nil.
func (d *Driver) Answer(a Action, v Versioned) {
	answer := (*Node).Learn
	if _, isRead := a.(Read); isRead {
		answer = (*Node).Answer
	}
	d.event(context.Background(), func(n *Node) []Action { return answer(n, d.now(), v) })
}

// Run drives the node until ctx ends. It is to be called once. From its end on the node is no primary.
func (d *Driver) Run(ctx context.Context) {
	d.calls.Go(func() {
		d.service.Watch(ctx, func(v Versioned) { d.event(ctx, func(n *Node) []Action { return n.Learn(d.now(), v) }) })
	})
	tick := time.NewTicker(max(d.node.Interval/10, time.Millisecond))
	defer tick.Stop()
	for ctx.Err() == nil {
		d.tick(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.hooks.Changed()
	d.calls.Wait()
}

// event tells the node something, and does what it asks for.
func (d *Driver) event(ctx context.Context, tell func(*Node) []Action) {
	d.mu.Lock()
	var do []Action
	if !d.ended {
		d.node.Move(d.hooks.Offset())
		do = tell(d.node)
	}
	d.mu.Unlock()
	for _, a := range do {
		send, isSend := a.(Send)
		switch {
		case isSend:
			d.hooks.Send(send)
			continue
		case d.asks != nil:
			d.asks(a)
			continue
		}
		switch a := a.(type) {
		case Read:
			d.call(ctx, d.service.Read, (*Node).Answer)
		case Swap:
			d.call(ctx, func(ctx context.Context) (Versioned, error) { return d.service.Swap(ctx, a) }, (*Node).Learn)
		}
	}
	d.hooks.Changed()
}

// call asks the service, and gives the node the answer. Only events of Run and of other calls ask for one.
func (d *Driver) call(ctx context.Context, ask func(context.Context) (Versioned, error), answer func(*Node, time.Duration, Versioned) []Action) {
	d.calls.Go(func() {
		within, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		v, err := ask(within)
		if taken := new(SlotsTakenError); errors.As(err, &taken) && d.hooks.Refused != nil {
			d.hooks.Refused(taken)
		}
		if err != nil {
			return // the node asks again
		}
		d.event(ctx, func(n *Node) []Action {
			return answer(n, d.now(), v)
		})
	})
}

// Ping has a primary send pings now.
func (d *Driver) Ping() {
	d.event(context.Background(), func(n *Node) []Action { return n.SendPings(d.now()) })
}

// Pinged takes a ping: see Node.Pinged.
func (d *Driver) Pinged(from string, p Ping, offset uint64) {
	d.event(context.Background(), func(n *Node) []Action { return n.Pinged(d.now(), from, p, offset) })
}

// Applied says that the node's log has come further along the stream of a term: see Node.Applied.
func (d *Driver) Applied(term, offset uint64) {
	d.event(context.Background(), func(n *Node) []Action { return n.Applied(term, offset) })
}

// Acked takes an acknowledgement.
func (d *Driver) Acked(a Ack) {
	d.event(context.Background(), func(n *Node) []Action { n.Acked(a); return nil })
}

// State is what a node is at a moment.
type State struct {
	Known       Versioned // the newest record that it has seen
	IsPrimary   bool      // of that record; replies that wait may leave at some time
	TakesReads  bool
	TakesWrites bool
	Gate        uint64        // commits may be shown up to there
	LeaseEnd    time.Duration // see Node.LeaseEnd
}

// State returns what the node is now.
func (d *Driver) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return State{Known: d.node.Known()}
	}
	now := d.now()
	return State{d.node.Known(), d.node.IsPrimary(), d.node.Serves(now), d.node.TakesWrites(now), d.node.Gate(now), d.node.LeaseEnd(now)}
}
