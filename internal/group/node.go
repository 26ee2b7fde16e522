package group

import (
	"fmt"
	"slices"
	"time"
)

// Options are the same for all members of a group, except for Self.
type Options struct {
	Self Member
	// Address is where others reach it, for the record; "" for none.
	Address string
	// Bootstrap has it make the record, with itself alone in sync, if there is none. (See Noting for one that is lost.)
	Bootstrap bool
	// Slots are those of the record that it makes: see Record.
	Slots string
	// MinInSync is how many members have a write before it is acknowledged, the primary included.
	MinInSync int
	// StrictReads has a read wait for a ping that was sent after it and that all in sync have acknowledged.
	StrictReads bool

	Interval time.Duration // of pings
	Silence  time.Duration // a member that has acknowledged no ping of so long is out of sync
	Lease    time.Duration // reads are served for so long after a ping that all in sync have acknowledged
	Patience time.Duration // a member that has heard nothing for so long takes over; more than 4/3 of Lease
	Yield    time.Duration // later, if another one has come further
	Retry    time.Duration // of reads and swaps without an answer
}

// Node is the state of a member. Times are by a clock of its own, which never goes back. It is for one goroutine.
type Node struct {
	Options

	known  Versioned     // the newest record that it has seen; version 0: none yet
	offset uint64        // how far its own log has come, on disk if each commit is to be synced
	since  time.Duration // when it learned of the term
	pinged time.Duration // when it sent its last pings
	heard  time.Duration // when the primary's last ping came
	// promised is when it last acknowledged a ping: until Patience later it is no primary, whatever the record says.
	promised time.Duration
	ping     Ping // the newest one of the primary

	// claimed is the term that this process has tried to become primary of: an earlier process of the same node was another primary.
	claimed uint64
	backups map[Member]*backup // of a primary
	gate    uint64             // of a primary: what all in sync have had
	// floor is how far the log had come when the node became primary: earlier ones may have acknowledged as much.
	floor uint64

	swap      *Swap // whose outcome is not known
	swapped   time.Duration
	reading   bool
	read      time.Duration
	candidate bool // it takes over if the record is still the one that it knows
	do        []Action
}

// backup is what a primary knows of a member that follows it.
type backup struct {
	offset  uint64
	sent    time.Duration // of the newest ping that it has acknowledged
	address string        // "" if it has not said
}

// New returns a node that begins with reading the record. Its first Tick is to follow.
func New(o Options, now time.Duration) *Node {
	return &Node{Options: o, since: now, promised: now, heard: now, pinged: now - o.Interval}
}

// Known returns the newest record that the node has seen. Its version is 0 if it has seen none.
func (n *Node) Known() Versioned { return n.known }

// IsPrimary reports whether the node is primary as far as it knows. It may not serve yet, or no more.
func (n *Node) IsPrimary() bool {
	return n.claimed > 0 && n.known.Term == n.claimed && n.known.Primary == n.Self.ID && n.known.has(n.Self)
}

// Serves reports whether a primary takes reads: what earlier primaries may still show is over.
func (n *Node) Serves(now time.Duration) bool { return n.IsPrimary() && now >= n.promised+n.Patience }

// TakesWrites reports whether a primary takes writes, too: as many members are in sync as a write needs.
func (n *Node) TakesWrites(now time.Duration) bool {
	return n.Serves(now) && n.stores() >= n.MinInSync
}

// stores is how many members are in sync, not counted twice after a loss of power.
func (n *Node) stores() int {
	ids := map[string]bool{}
	for _, m := range n.known.InSync {
		ids[m.ID] = true
	}
	return len(ids)
}

// Gate returns how far commits may be shown, 0 if the node does not serve. Writes of this term are acknowledged up to there while
// TakesWrites; those of an earlier one may be gone from the log.
func (n *Node) Gate(now time.Duration) uint64 {
	if !n.Serves(now) {
		return 0
	}
	return n.gate
}

// MayRead reports whether a read was up to date that was done between two times. It is to be asked after the read; a read that may
// not be shown yet may be asked for again, but one of an earlier term never may be.
func (n *Node) MayRead(from, to, now time.Duration) bool {
	if now >= n.LeaseEnd(now) || from < max(n.since, n.promised+n.Patience) {
		return false
	}
	for _, m := range n.counted() {
		if n.StrictReads && n.backups[m].sent <= to {
			return false
		}
	}
	return true
}

// LeaseEnd is until when reads of the node's term are up to date, as far as it is known now; 0 if the node does not serve, or a
// member that counts has acknowledged nothing.
func (n *Node) LeaseEnd(now time.Duration) time.Duration {
	if !n.Serves(now) {
		return 0
	}
	end := now + n.Lease
	for _, m := range n.counted() {
		b := n.backups[m]
		if b == nil {
			return 0
		}
		end = min(end, b.sent+n.Lease)
	}
	return end
}

// Tick is to be called often: each tenth of Interval.
func (n *Node) Tick(now time.Duration) []Action {
	switch {
	case n.known.Version == 0:
		n.ask(now)
	case n.swap != nil:
		if now >= n.swapped+n.Retry {
			n.swapped = now
			n.do = append(n.do, *n.swap)
		}
	case !n.IsPrimary():
		n.watch(now)
	}
	if n.IsPrimary() {
		n.sendPings(now)
		n.judge(now)
	}
	return n.done()
}

// SendPings sends pings before it is time for them.
func (n *Node) SendPings(now time.Duration) []Action {
	if n.IsPrimary() {
		n.pinged = now - n.Interval
		n.sendPings(now)
	}
	return n.done()
}

// Learn takes a record that was watched, or there when a swap was tried. Each new one is to be learned, soon or late. What a
// process knows first is the answer to its Read: an old record would have it follow a primary that is none any more.
func (n *Node) Learn(now time.Duration, v Versioned) []Action {
	if n.known.Version > 0 {
		n.learn(now, v)
	}
	return n.done()
}

func (n *Node) learn(now time.Duration, v Versioned) {
	if v.Version <= n.known.Version {
		return
	}
	was, term := n.IsPrimary(), n.known.Term
	n.known = v
	n.swap, n.candidate = nil, false // another version: it has failed, or is this one
	if v.Term != term {
		n.since, n.heard, n.ping = now, now, Ping{}
	}
	if is := n.IsPrimary(); is && (!was || v.Term != term) {
		n.backups, n.gate, n.floor, n.since = make(map[Member]*backup), 0, n.offset, now
	}
	n.advance()
}

// Answer takes the answer to a Read, which is linearizable: the record as it was after the Read was asked for.
func (n *Node) Answer(now time.Duration, v Versioned) []Action {
	n.reading = v.Version == 0 // there is no record yet: Retry later
	candidate := n.candidate && v.Version == n.known.Version
	if n.reading && n.Bootstrap && n.known.Version == 0 {
		n.claimed = 1
		n.try(now, n.record(n.claimed, []Member{n.Self}))
	}
	n.learn(now, v)
	n.candidate = false
	if candidate && n.isDue(now) {
		n.claimed = n.known.Term + 1
		n.try(now, n.record(n.claimed, n.heirs()))
	}
	return n.done()
}

// Move says how far the node's own log has come, before Applied or Pinged says so to the primary.
func (n *Node) Move(offset uint64) {
	n.offset = offset
	n.advance()
}

func (n *Node) ask(now time.Duration) {
	if n.reading && now < n.read+n.Retry {
		return
	}
	n.reading, n.read = true, now
	n.do = append(n.do, Read{})
}

func (n *Node) try(now time.Duration, r Record) {
	n.swap, n.swapped = &Swap{n.known.Version, r}, now
	n.do = append(n.do, *n.swap)
}

// record is one with the node as primary.
func (n *Node) record(term uint64, inSync []Member) Record {
	r := Record{Term: term, Primary: n.Self.ID, InSync: inSync, Slots: n.known.Slots}
	if n.known.Version == 0 {
		r.Slots = n.Slots
	}
	for _, m := range inSync {
		address := n.known.Addresses[m.ID]
		if b := n.backups[m]; b != nil && b.address != "" {
			address = b.address
		}
		if m == n.Self && n.Address != "" {
			address = n.Address
		}
		if address == "" {
			continue
		}
		if r.Addresses == nil {
			r.Addresses = make(map[string]string)
		}
		r.Addresses[m.ID] = address
	}
	return r
}

func (n *Node) done() []Action {
	do := n.do
	n.do = nil
	return do
}

// without returns the members but one, in a new slice.
func without(members []Member, m Member) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(o Member) bool { return o == m })
}

// String shows the state, for logs.
func (n *Node) String() string {
	return fmt.Sprintf("%+v offset %d gate %d floor %d heard %s promised %s candidate %t reading %t swap %+v backups %d", n.known, n.offset, n.gate, n.floor, n.heard, n.promised, n.candidate, n.reading, n.swap, len(n.backups))
}
