package admin

import (
	"net"
	"strconv"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
)

// clusterNode is this server as a client finds it: where the settings announce it, or else where this client has found
// it. So a client that came through a forwarded port and one on this machine are each told an address that works for
// them; a client of a Unix socket is told the port of the TCP listener and no host, which clients take for the one that
// they know.
func (of source) clusterNode(c *command.Call) cluster.Node {
	a := of(c)
	setting := a.State.Settings.Config.Get
	number := func(name string) int {
		n, _ := strconv.Atoi(setting(name)) // checked
		return n
	}
	n := cluster.Node{
		Enabled: a.State.Options.Cluster, Store: a.State.Store, IP: setting("cluster-announce-ip"), Hostname: setting("cluster-announce-hostname"),
		Preferred: setting("cluster-preferred-endpoint-type"), IsTLS: a.IsTLS, ReadOnly: &a.Client.ReadOnly, Redirect: a.Client.Redirect.Load(), MaxReply: a.State.Options.MaxReply,
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
		n.BusPort = n.Port + 10000 // nothing listens there
	}
	return n
}
