package group

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Pinged takes a ping, and how far the node's log has come along the stream of its term: 0 if it does not follow that stream
// yet.
func (n *Node) Pinged(now time.Duration, from string, p Ping, offset uint64) []Action {
	if p.Term == n.known.Term && from == n.known.Primary && from != n.Self.ID && p.Sent > n.ping.Sent {
		n.ping, n.heard, n.promised = p, now, now
		n.ack(offset)
	}
	return n.done()
}

// Applied says that the node's log has come further along the stream of a term.
func (n *Node) Applied(term, offset uint64) []Action {
	if !n.IsPrimary() && term > 0 && term == n.known.Term && term == n.ping.Term {
		n.ack(offset)
	}
	return n.done()
}

func (n *Node) ack(offset uint64) {
	n.do = append(n.do, Send{n.known.Primary, Ack{n.ping.Term, n.ping.Sent, n.Self, offset, n.Address}})
}

// watch reads the record if the primary has been silent: there may be another one. If it is the same record, a member in
// sync takes over. One that cannot read it does not try, so that it goes on acknowledging if the primary comes back.
func (n *Node) watch(now time.Duration) {
	if n.candidate = n.isDue(now); n.candidate || now >= max(n.heard, n.read)+n.Patience {
		n.ask(now)
	}
}

// isDue reports whether the node is to take over.
func (n *Node) isDue(now time.Duration) bool {
	if n.IsPrimary() || !n.known.has(n.Self) {
		return false
	}
	if n.known.Primary == n.Self.ID { // an earlier process
		// The others go on with its stream once one of them has taken over. From this one, which may have lost where that ended, they
		// would take all of the data anew.
		return n.stores() == 1 || now >= n.heard+n.Patience+2*n.Yield
	}
	wait := n.Patience
	for _, p := range n.ping.Known {
		if p.Member != n.Self && p.Member.ID != n.known.Primary && n.isAhead(p) {
			wait += n.Yield
			break
		}
	}
	return now >= n.heard+wait
}

// heirs are those in sync after a takeover: all but the primary that is gone. Each has everything that was acknowledged.
func (n *Node) heirs() []Member {
	return slices.DeleteFunc(slices.Clone(n.known.InSync), func(m Member) bool { return m != n.Self && m.ID == n.known.Primary })
}

// isAhead reports whether another one is to take over first, as the last ping has it: it has come further, or as far, with
// the smaller name.
func (n *Node) isAhead(other Position) bool {
	for _, p := range n.ping.Known {
		if p.Member == n.Self {
			return other.Offset > p.Offset || other.Offset == p.Offset && other.Member.ID < n.Self.ID
		}
	}
	return true
}

func compareMembers(a, b Member) int {
	return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Incarnation, b.Incarnation))
}
