package admin

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
)

// clusterView is the cluster as a client finds it: the server alone, or the groups of which its own is one.
func (of source) clusterView(c *command.Call) cluster.View {
	a := of(c)
	v := cluster.View{
		Enabled: a.State.Options.Cluster, Store: a.State.Store, Preferred: a.State.Settings.Config.Get("cluster-preferred-endpoint-type"), IsTLS: a.IsTLS,
		ReadOnly: &a.Client.ReadOnly, Redirect: a.Client.Redirect.Load(), MaxReply: a.State.Options.MaxReply,
	}
	m := a.State.Member
	if m == nil {
		self := a.clusterNode()
		self.IsPrimary = true
		v.Shards = []cluster.Shard{{Name: self.Name, Slots: group.AllSlots(), Nodes: []cluster.Node{self}}}
		return v
	}
	known, place := m.Known(), m.Place()
	v.IsDown = !a.State.Gate.Answers()
	known.Addresses = maps.Clone(known.Addresses)
	if known.Addresses == nil {
		known.Addresses = make(map[string]string)
	}
	known.Addresses[place.ID] = place.Address
	own := shardOf(place.Group, &known.Record, m.Slots())
	for i := range own.Nodes {
		own.Nodes[i].IsSelf = own.Nodes[i].Name == nodeName(place.Group, place.ID)
	}
	v.Shards = []cluster.Shard{own}
	others := m.Others()
	for i := range others {
		v.Shards = append(v.Shards, shardOf(others[i].Name, &others[i].Record, others[i].Owns))
	}
	return v
}

// nodeName is what a member of a group is called.
func nodeName(of, id string) string { return of + " " + id }

// shardOf is a group as a client finds it: its primary and those in sync, as far as they have said where they are.
func shardOf(name string, of *group.Record, slots group.Slots) cluster.Shard {
	s := cluster.Shard{Name: name, Slots: slots, Epoch: of.Term}
	for _, id := range slices.Sorted(maps.Keys(of.Addresses)) {
		n := nodeAt(of.Addresses[id])
		n.Name, n.IsPrimary = nodeName(name, id), id == of.Primary
		if n.IsPrimary {
			s.Nodes = slices.Insert(s.Nodes, 0, n)
		} else {
			s.Nodes = append(s.Nodes, n)
		}
	}
	return s
}

// busPort is what clients are told, as much higher than the port as in Redis.
const busPort = 10000

// nodeAt is a member of a group where the others reach it, by an address or by name.
func nodeAt(address string) (n cluster.Node) {
	host, port, _ := net.SplitHostPort(address) // checked
	n.IP = host
	if net.ParseIP(host) == nil {
		n.Hostname = host
	}
	n.Port, _ = strconv.Atoi(port) // checked
	n.BusPort = n.Port + busPort
	return n
}

// clusterNode is this server as a client finds it: where the settings announce it, or else where this client has found
// it. So a client that came through a forwarded port and one on this machine are each told an address that works for
// them; a client of a Unix socket is told the port of the TCP listener and no host, which clients take for the one that
// they know.
func (a *Caller) clusterNode() cluster.Node {
	setting := a.State.Settings.Config.Get
	number := func(name string) int {
		n, _ := strconv.Atoi(setting(name)) // checked
		return n
	}
	n := cluster.Node{
		Name: fmt.Sprintf("%x", a.State.Store.Log().StoreID()), IsSelf: true, IP: setting("cluster-announce-ip"), Hostname: setting("cluster-announce-hostname"),
	}
	host, port, err := net.SplitHostPort(a.Client.Local)
	if err != nil { // a Unix socket
		_, port = a.State.Settings.Listening.Address()
		host = ""
	}
	if n.IP == "" {
		n.IP = host
	}
	if n.Port = number("cluster-announce-port"); n.Port == 0 {
		n.Port, _ = strconv.Atoi(port)
	}
	if n.BusPort = number("cluster-announce-bus-port"); n.BusPort == 0 {
		n.BusPort = n.Port + busPort
	}
	return n
}
