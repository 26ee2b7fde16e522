package group_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/group"
)

var (
	memberA, memberB = group.Member{ID: "a"}, group.Member{ID: "b"}
	first            = group.Versioned{Version: 1, Record: group.Record{Term: 1, Primary: "a", InSync: []group.Member{memberA, memberB}}}
)

func newNode(self group.Member) *group.Node {
	return group.New(group.Options{
		Self: self, MinInSync: 2,
		Interval: 200 * ms, Silence: time.Second, Lease: time.Second, Patience: 1500 * ms, Yield: 300 * ms, Retry: 300 * ms,
	}, 0)
}

// wants checks what a node asks for.
func wants(t *testing.T, got []group.Action, want ...group.Action) {
	t.Helper()
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, not %+v", got, want)
	}
}

// TestTakeover: a member takes over after Patience, when it has read that the record is still the same.
func TestTakeover(t *testing.T) {
	n := newNode(memberB)
	wants(t, n.Tick(0), group.Read{})
	wants(t, n.Answer(10*ms, first))
	wants(t, n.Pinged(100*ms, "a", group.Ping{Term: 1, Sent: time.Hour}, 7), group.Send{To: "a", Message: group.Ack{Term: 1, Sent: time.Hour, Member: memberB, Offset: 7}})
	wants(t, n.Tick(1599*ms))
	wants(t, n.Tick(1600*ms), group.Read{})
	swap := group.Swap{If: 1, Record: group.Record{Term: 2, Primary: "b", InSync: []group.Member{memberB}}}
	wants(t, n.Answer(1650*ms, first), swap)
	wants(t, n.Tick(1949*ms))
	wants(t, n.Tick(1950*ms), swap)

	// The primary is back. What it is promised holds although the swap has been carried out.
	wants(t, n.Pinged(1960*ms, "a", group.Ping{Term: 1, Sent: time.Hour + time.Second}, 9), group.Send{To: "a", Message: group.Ack{Term: 1, Sent: time.Hour + time.Second, Member: memberB, Offset: 9}})
	wants(t, n.Learn(2000*ms, group.Versioned{Version: 2, Record: swap.Record}))
	for _, at := range []time.Duration{2000 * ms, 3459 * ms, 3460 * ms} {
		if want := at == 3460*ms; !n.IsPrimary() || n.Serves(at) != want {
			t.Errorf("at %s: primary %t, serves %t", at, n.IsPrimary(), n.Serves(at))
		}
	}
	if n.TakesWrites(time.Hour) {
		t.Error("one member takes writes that two are to have")
	}
}

// TestPrimaryPingsBack: a member that hears the primary while it reads the record does not take over.
func TestPrimaryPingsBack(t *testing.T) {
	n := newNode(memberB)
	n.Answer(0, first)
	wants(t, n.Tick(1500*ms), group.Read{})
	n.Pinged(1510*ms, "a", group.Ping{Term: 1, Sent: 1}, 0)
	wants(t, n.Answer(1520*ms, first))
}

// TestStartAsPrimary: a process that starts on the node of a primary that was alone begins a term of its own, and serves after what the
// process before it may have promised.
func TestStartAsPrimary(t *testing.T) {
	n := newNode(memberA)
	n.Move(5)
	alone := group.Versioned{Version: 1, Record: group.Record{Term: 1, Primary: "a", InSync: []group.Member{memberA}}}
	wants(t, n.Tick(0), group.Read{})
	wants(t, n.Answer(10*ms, alone))
	wants(t, n.Tick(20*ms), group.Read{})
	own := group.Record{Term: 2, Primary: "a", InSync: []group.Member{memberA}}
	wants(t, n.Answer(30*ms, alone), group.Swap{If: 1, Record: own})
	n.Learn(40*ms, group.Versioned{Version: 2, Record: own})
	for at, want := range map[time.Duration]bool{1499 * ms: false, 1500 * ms: true} {
		if n.Serves(at) != want || n.MayRead(at, at, at) != want {
			t.Errorf("at %s: serves %t, reads %t", at, n.Serves(at), n.MayRead(at, at, at))
		}
	}
}

// TestStartBesideOthersInSync: a process that starts on the primary's node waits for the others that are in sync to take over, and does so
// itself if none of them has.
func TestStartBesideOthersInSync(t *testing.T) {
	n := newNode(memberA)
	n.Move(5)
	wants(t, n.Tick(0), group.Read{})
	wants(t, n.Answer(10*ms, first))
	wants(t, n.Tick(1509*ms))
	wants(t, n.Tick(1510*ms), group.Read{})
	wants(t, n.Answer(1520*ms, first))
	wants(t, n.Tick(2109*ms))
	wants(t, n.Tick(2110*ms), group.Read{})
	own := group.Record{Term: 2, Primary: "a", InSync: first.InSync}
	wants(t, n.Answer(2120*ms, first), group.Swap{If: 1, Record: own})
	n.Learn(2130*ms, group.Versioned{Version: 2, Record: own})
	now := 2500 * ms
	ack := group.Ack{Term: 1, Sent: 2400 * ms, Member: memberB, Offset: 5}
	n.Acked(ack)
	if got := n.Gate(now); got != 0 {
		t.Errorf("an acknowledgement of an earlier term opens the gate: %d", got)
	}
	ack.Term = 2
	n.Acked(ack)
	if got := n.Gate(now); got != 5 || !n.TakesWrites(now) || !n.MayRead(now, now, now) {
		t.Errorf("gate %d, writes %t, reads %t", got, n.TakesWrites(now), n.MayRead(now, now, now))
	}
	if n.MayRead(now, now, 3400*ms) {
		t.Error("the lease is over")
	}
	if n.MayRead(2129*ms, 2129*ms, now) {
		t.Error("a read of a time at which it did not serve")
	}
}

// TestFirstRecordIsRead: a process that starts takes no record that was watched before it has read one: it may be an old one.
func TestFirstRecordIsRead(t *testing.T) {
	n := newNode(memberB)
	wants(t, n.Learn(0, first))
	wants(t, n.Pinged(0, "a", group.Ping{Term: 1, Sent: 1}, 7))
	second := group.Versioned{Version: 2, Record: group.Record{Term: 2, Primary: "c", InSync: []group.Member{memberB, {ID: "c"}}}}
	wants(t, n.Answer(10*ms, second))
	wants(t, n.Learn(10*ms, first))
	wants(t, n.Pinged(20*ms, "a", group.Ping{Term: 1, Sent: 2}, 7))
	if got := n.Known(); got.Version != 2 {
		t.Errorf("%+v", got)
	}
}

// TestStrictReads: a ping that was sent at the time of the read, as its clock has it, may have been sent before.
func TestStrictReads(t *testing.T) {
	n := group.New(group.Options{
		Self: memberA, MinInSync: 1, StrictReads: true,
		Interval: 200 * ms, Silence: time.Second, Lease: time.Second, Patience: 1500 * ms, Yield: 300 * ms, Retry: 300 * ms,
	}, -2100*ms)
	n.Answer(-2100*ms, first)
	n.Tick(0)
	own := group.Record{Term: 2, Primary: "a", InSync: first.InSync}
	wants(t, n.Answer(0, first), group.Swap{If: 1, Record: own})
	n.Learn(0, group.Versioned{Version: 2, Record: own})
	n.Acked(group.Ack{Term: 2, Sent: 1600 * ms, Member: memberB, Offset: 1})
	for at, want := range map[time.Duration]bool{1599 * ms: true, 1600 * ms: false, 1601 * ms: false} {
		if got := n.MayRead(at, at, 1700*ms); got != want {
			t.Errorf("read at %s: %t", at, got)
		}
	}
}

// TestIncarnationsAreOneStore: a store that has lost its power is no second store for a write.
func TestIncarnationsAreOneStore(t *testing.T) {
	n := newNode(memberA)
	twice := group.Record{Term: 1, Primary: "a", InSync: []group.Member{memberA}}
	n.Answer(0, group.Versioned{Version: 1, Record: twice})
	n.Tick(0)
	n.Answer(0, group.Versioned{Version: 1, Record: twice})
	twice.Term, twice.InSync = 2, []group.Member{memberA, {ID: "a", Incarnation: 7}}
	n.Learn(0, group.Versioned{Version: 2, Record: twice})
	if !n.Serves(1500*ms) || n.TakesWrites(1500*ms) {
		t.Errorf("serves %t, takes writes %t", n.Serves(1500*ms), n.TakesWrites(1500*ms))
	}
}

// TestYield: of two members in sync the one that has come further takes over first.
func TestYield(t *testing.T) {
	memberC := group.Member{ID: "c"}
	record := group.Versioned{Version: 1, Record: group.Record{Term: 1, Primary: "a", InSync: []group.Member{memberA, memberB, memberC}}}
	for offset, want := range map[uint64]time.Duration{6: 1800 * ms, 7: 1500 * ms, 8: 1500 * ms} { // as far: the smaller name
		n := newNode(memberB)
		n.Answer(0, record)
		n.Pinged(0, "a", group.Ping{Term: 1, Sent: 1, Known: []group.Position{{Member: memberB, Offset: offset}, {Member: memberC, Offset: 7}}}, offset)
		var at time.Duration
		for len(n.Answer(at, record)) == 0 {
			at += 100 * ms
			n.Tick(at)
		}
		if at != want {
			t.Errorf("at %d, where the other one is at 7, it takes over after %s, not %s", offset, at, want)
		}
	}
}
