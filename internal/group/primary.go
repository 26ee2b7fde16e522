package group

import (
	"maps"
	"slices"
	"time"
)

// counted returns the members, without the node itself, that must have a commit before it is shown: those in sync, and those
// that a swap would add whose outcome is not known.
func (n *Node) counted() []Member {
	list := without(n.known.InSync, n.Self)
	if n.swap != nil {
		for _, m := range n.swap.Record.InSync {
			if m != n.Self && !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	return list
}

// advance moves the gate to what all have that count.
func (n *Node) advance() {
	if !n.IsPrimary() {
		return
	}
	all := n.offset
	for _, m := range n.counted() {
		b := n.backups[m]
		if b == nil {
			return
		}
		all = min(all, b.offset)
	}
	n.gate = max(n.gate, all)
}

// Acked takes an acknowledgement.
func (n *Node) Acked(a Ack) {
	if !n.IsPrimary() || a.Term != n.known.Term {
		return
	}
	b := n.backups[a.Member]
	if b == nil {
		b = new(backup)
		n.backups[a.Member] = b
	}
	b.offset, b.sent = max(b.offset, a.Offset), max(b.sent, a.Sent)
	if a.Address != "" {
		b.address = a.Address
	}
	n.advance()
}

// sendPings sends a ping to all: members that do not follow yet do not hear it.
func (n *Node) sendPings(now time.Duration) {
	if now < n.pinged+n.Interval {
		return
	}
	n.pinged = now
	p := Ping{Term: n.known.Term, Sent: now}
	for _, m := range without(n.known.InSync, n.Self) {
		if b := n.backups[m]; b != nil {
			p.Known = append(p.Known, Position{m, b.offset})
		}
	}
	n.do = append(n.do, Send{"", p})
}

// judge swaps the record if others are in sync than it has, or at other addresses: it removes those that have been silent, and
// adds those that have everything that may have been shown. Until the outcome is known the old ones count and the new ones, too.
func (n *Node) judge(now time.Duration) {
	if n.swap != nil {
		return
	}
	next := slices.DeleteFunc(slices.Clone(n.known.InSync), func(m Member) bool { return m != n.Self && n.isSilent(now, m) })
	// In an order that does not depend on chance, so that a history can be repeated.
	for _, m := range slices.SortedFunc(maps.Keys(n.backups), compareMembers) {
		if b := n.backups[m]; !n.known.has(m) && !n.isSilent(now, m) && b.offset > 0 && b.offset >= max(n.gate, n.floor) {
			next = append(next, m)
		}
	}
	if r := n.record(n.known.Term, next); !slices.Equal(next, n.known.InSync) || !maps.Equal(r.Addresses, n.known.Addresses) {
		n.try(now, r)
	}
}

// isSilent reports whether a member has acknowledged no ping that was sent lately.
func (n *Node) isSilent(now time.Duration, m Member) bool {
	last := n.since
	if b := n.backups[m]; b != nil {
		last = max(last, b.sent)
	}
	return now >= last+n.Silence
}
