package admin

import (
	"math"
	"strconv"
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/shared"
)

// replicationCommands are those of replicas, and those about them.
func replicationCommands(of source) []*command.Command {
	const follow = command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti
	return []*command.Command{
		{Name: "wait", Arity: 3, Flags: command.NoScript | command.ConnectionCategory, Group: command.GroupGeneric, Run: of.on(waitCommand)},
		{Name: "waitaof", Arity: 4, Flags: command.NoScript | command.ConnectionCategory | command.Blocking, Work: command.Unbounded, Group: command.GroupGeneric,
			Run: of.on(waitaofCommand)},
		{Name: "replconf", Arity: -1, Flags: command.OfOperator | command.AllowBusy, Group: command.GroupServer, Run: of.on(replconfCommand)},
		{Name: "psync", Arity: -3, Flags: follow, Work: command.Unbounded, Group: command.GroupServer, Run: of.on(psyncCommand)},
		{Name: "sync", Arity: 1, Flags: follow, Group: command.GroupServer, Run: of.on(syncCommand)},
	}
}

// roleOfMaster is what ROLE replies of a master.
func roleOfMaster(a *Caller) []any {
	f := a.State.Replicas.Stream.Figures(time.Now())
	list := []any{}
	for _, r := range f.Replicas {
		if r.State == "online" {
			list = append(list, []any{r.Address, strconv.Itoa(r.Port), strconv.FormatInt(r.Offset, 10)})
		}
	}
	return []any{"master", f.Offset, list}
}

// replconfCommand is REPLCONF, by which a replica says what it is before PSYNC. What it sends afterwards does not come here.
func replconfCommand(a *Caller, c *command.Call) error {
	if len(c.Args)%2 == 0 {
		return command.ErrSyntax
	}
	peer := replication.Peer{}
	if before := a.Client.Peer.Load(); before != nil {
		peer = *before
	}
	for i := 1; i < len(c.Args); i += 2 {
		switch {
		case c.Args.Is(i, "listening-port"):
			port, err := c.Args.ParseInt(i + 1)
			if err != nil {
				return err
			}
			if port < 0 || port > math.MaxUint16 {
				return command.Error("ERR Invalid port")
			}
			peer.Port = int(port)
		case c.Args.Is(i, "ip-address"):
			if len(c.Arg(i+1)) > maxAddress {
				return command.Errorf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes", len(c.Arg(i+1)))
			}
			peer.Address = string(c.Arg(i + 1))
			if peer.Address != "" && !(shared.Master{Host: peer.Address, Port: 1}).IsValid() {
				return command.Error("ERR REPLCONF ip-address is no address")
			}
		case c.Args.Is(i, "capa"):
			peer.EOF = peer.EOF || c.Args.Is(i+1, "eof")
			peer.PSYNC2 = peer.PSYNC2 || c.Args.Is(i+1, "psync2")
		case c.Args.Is(i, "rdb-only"):
			only, err := c.Args.ParseInt(i + 1)
			if err != nil {
				return err
			}
			peer.RDBOnly = only == 1
		case c.Args.Is(i, "version"):
			version, ok := replication.ParseVersion(string(c.Arg(i + 1)))
			if !ok {
				return command.Errorf("ERR Unrecognized version format: %s", command.Quoted(c.Arg(i+1)))
			}
			peer.Valkey = version
		case c.Args.Is(i, "group") && a.State.Member != nil:
			m, err := a.State.Member.Greeted(string(c.Arg(i + 1)))
			if err != nil {
				return err
			}
			peer.Member = m
		case c.Args.Is(i, "ack"), c.Args.Is(i, "getack"):
			return shared.ErrNoReply // of one that is no replica: nothing, as in Redis
		default:
			return command.Errorf("ERR Unrecognized REPLCONF option: %s", command.Quoted(c.Arg(i)))
		}
	}
	a.Client.Peer.Store(&peer)
	return c.OK()
}

// maxAddress is the length of an address that REPLCONF takes, in bytes.
const maxAddress = 255

// psyncCommand is PSYNC. The reply, and all that follows, comes from the one who feeds the replica.
func psyncCommand(a *Caller, c *command.Call) error {
	next, ok := number.ParseInt(c.Arg(2))
	if !ok {
		return command.ErrNotInteger
	}
	id, takesOver := string(c.Arg(1)), len(c.Args) > 3 && c.Args.Is(3, "failover")
	if !replication.IsReplID(id) {
		id = "?" // as for any id that is not known: everything is sent
	}
	return follow(a, &replication.Ask{ReplID: id, Next: next}, takesOver)
}

// syncCommand is SYNC, PSYNC of Redis before 2.8, and of redis-cli --rdb.
func syncCommand(a *Caller, _ *command.Call) error {
	return follow(a, &replication.Ask{ReplID: "?", Next: -1, SYNC: true}, false)
}

// follow makes the client a replica. If the server is to take over from it, it becomes the master when nothing else stands in the way:
// otherwise the client would be the master still, and there would be two.
func follow(a *Caller, ask *replication.Ask, takesOver bool) error {
	if peer := a.Client.Peer.Load(); peer != nil {
		ask.Peer = *peer
	}
	switch {
	case !takesOver && a.State.Following.IsStale():
		return replication.ErrNoMasterLink
	case a.Follow == nil:
		return command.Error("ERR there is no connection to send the stream on: this is an embedded session.")
	case !ask.EOF:
		return command.Error("ERR the file is sent with a mark at its end, which the replica has to ask for: REPLCONF capa eof")
	case takesOver && a.State.Member != nil:
		return shared.ErrOfGroup
	case takesOver:
		if err := a.State.Failover.TakeOver(ask.ReplID, a.Client.Remote); err != nil {
			return err
		}
	}
	a.Follow(ask)
	return shared.ErrNoReply
}
