package server

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server/internal/member"
)

// GroupRecords keep who is the primary of a group: a key of etcd, or another register with a linearizable compare-and-swap. Those that know
// the other groups of the cluster, too, have a method WatchOthers.
type GroupRecords = group.Service

// Group makes a server a member of a group of servers with the same data. One of them is the primary; the others follow it, and
// take over when it has gone. A write is acknowledged when all members have it that are in sync, so none that was is lost as long as one of
// these is left. docs/CLUSTER.md says what else is promised.
type Group struct {
	// Name is that of the group, and ID that of the server in it: up to 64 letters, digits, and any of "._-". The ID goes with the
	// store.
	Name, ID string
	// Address is where clients and other members reach the server: host and port.
	Address string
	// Records is asked who is the primary.
	Records GroupRecords
	// Bootstrap has the server begin the group, with itself as primary, if there is no record of it, and its store has not seen one. It is for the
	// first start of the first member.
	Bootstrap bool
	// Slots are those of the group, such as "0-8191,9000", where several groups are a cluster: all if it is empty. They are stated when the group is
	// begun, and do not change; later they may be left out, and other ones end Serve. Groups with a part of the slots need Options.Cluster.
	Slots string
	// MinInSync is how many members have a write before it is acknowledged, the primary included. Default: 2.
	MinInSync int
	// StrictReads has a reply wait until all members in sync have acknowledged something that was sent after it was made: a round trip
	// that clients share. Without it reads are up to date as long as clocks of machines, also of those that were suspended, differ in rate by less than a
	// third.
	StrictReads bool
	// Silence is how long a member may acknowledge nothing before the primary goes on without it; meanwhile writes wait. It is also how
	// long the primary answers reads that no member in sync has confirmed. Patience is how long a member waits before it takes
	// over, at least one and a half times as long. Both are the same for all members. Defaults: 1 s, and 1.5 times Silence.
	Silence, Patience time.Duration

	clock func() time.Duration // of a simulator, and
	boot  string               // of its machine: see member.Options
}

// The defaults of Group.
const (
	defaultMinInSync = 2
	defaultSilence   = time.Second
)

// options are what the group's part of the server needs.
func (g *Group) options() (o member.Options, err error) {
	slots, errSlots := group.ParseSlots(g.Slots)
	silence := orDefault(g.Silence, defaultSilence)
	o = member.Options{Group: g.Name, Records: g.Records, Clock: g.clock, Boot: g.boot, Options: group.Options{
		Self: group.Member{ID: g.ID}, Address: g.Address, Bootstrap: g.Bootstrap, StrictReads: g.StrictReads, MinInSync: orDefault(g.MinInSync, defaultMinInSync),
		Interval: silence / 5, Silence: silence, Lease: silence, Patience: orDefault(g.Patience, silence*3/2), Yield: silence * 3 / 10, Retry: silence * 3 / 10,
	}}
	if g.Slots != "" {
		o.Slots = slots.String()
	}
	host, port, err := net.SplitHostPort(g.Address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case !group.IsName(g.Name):
		return o, fmt.Errorf("server: Group.Name must be up to 64 letters, digits or any of \"._-\", and is %q", g.Name)
	case !group.IsName(g.ID):
		return o, fmt.Errorf("server: Group.ID must be up to 64 letters, digits or any of \"._-\", and is %q", g.ID)
	case err != nil || host == "" || port == "0":
		return o, fmt.Errorf("server: Group.Address must be where others reach the server, host:port, and is %q", g.Address)
	case g.Records == nil:
		return o, fmt.Errorf("server: Group.Records must not be nil")
	case errSlots != nil:
		return o, fmt.Errorf("server: Group.Slots: %w", errSlots)
	case o.MinInSync < 1:
		return o, fmt.Errorf("server: Group.MinInSync must not be negative, and is %d", g.MinInSync)
	case silence < 50*time.Millisecond:
		return o, fmt.Errorf("server: Group.Silence must be 50ms or more, and is %s", g.Silence)
	case o.Patience < silence*3/2:
		return o, fmt.Errorf("server: Group.Patience must be one and a half times Silence or more, and is %s", g.Patience)
	}
	return o, nil
}

// joinGroup makes the server a member of the group that its options name.
func (v *Server) joinGroup() error {
	g := v.options.Group
	if g == nil {
		return nil
	}
	o, err := g.options()
	if err != nil {
		return err
	}
	if v.options.Config.Get("replicaof") != "" {
		return fmt.Errorf("server: replicaof is set, and the server is a member of a group, which says whom it follows: remove the setting")
	}
	if slots, _ := group.ParseSlots(g.Slots); !v.options.Cluster && !slots.IsAll() { // checked
		return fmt.Errorf("server: Group.Slots is %q, and clients find the other slots in cluster mode only: Options.Cluster, or cluster-enabled yes", g.Slots)
	}
	o.Refused = func(err error) {
		v.refused.Store(&err)
		v.shutDown()
	}
	v.member, err = member.Join(v.state, o)
	return err
}
