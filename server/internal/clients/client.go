package clients

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/stats"
	"github.com/stavedb/stave/server/internal/tracking"
)

// Client is what other connections may see of a session: CLIENT LIST reads it while the session
// works, so everything is atomic, or constant from before the session is registered. A line of CLIENT
// LIST is therefore not of one moment: the fields are read one after the other.
type Client struct {
	// What CLIENT SETNAME and SETINFO set.
	Name, Library, Version atomic.Pointer[string]
	Remote, Local          string // addresses; set before the session is registered, then constant
	FD                     int    // descriptor of the connection, -1 without one; constant like these
	Born                   time.Time
	lastSeen               atomic.Int64 // Unix nanoseconds of the last command
	lastCommand            atomic.Pointer[command.Command]
	namespace, queued      atomic.Int64 // queued: commands since MULTI, -1 outside
	version3               atomic.Bool
	BufferBytes            atomic.Int64 // bytes of the buffers, as last accounted for
	Unread                 stats.Unread
	Figures                Figures
	driver                 atomic.Pointer[Driver]           // what moves its bytes; nil for an embedded session
	Wait                   atomic.Pointer[Wait]             // of the command that it waits in; nil without one
	User                   atomic.Pointer[acl.User]         // whose rules hold for the connection
	Watched                atomic.Int64                     // keys
	NoEvict, NoTouch       atomic.Bool                      // as CLIENT NO-EVICT and NO-TOUCH have set them
	ReadOnly               atomic.Bool                      // as READONLY has set it
	Redirect               atomic.Bool                      // a replica sends it to its master: CLIENT CAPA
	Peer                   atomic.Pointer[replication.Peer] // what REPLCONF has said; nil for nothing
	IsReplica              atomic.Bool                      // it gets the stream
	Tracking               tracking.Client
	Killed                 atomic.Bool // the server has ended the connection
	Unnoted                bool        // it is the dashboard's: its commands are neither in SLOWLOG and LATENCY nor counted
}

// ID is what CLIENT ID shows.
func (c *Client) ID() int64 { return c.Tracking.ID }

// NoText is the name, library and version of a client that has given none.
var NoText = ""

// Texts is how many bytes the texts have that the client has set.
func (c *Client) Texts() int {
	return len(*c.Name.Load()) + len(*c.Library.Load()) + len(*c.Version.Load())
}

// IsDriven reports whether it has a connection.
func (c *Client) IsDriven() bool { return c.driver.Load() != nil }

// KillOnce ends the connection, and reports whether it is this call that does: without a connection, or if the server
// ends it already, nothing happens. It is counted, where there is a counter, before anybody can see the end.
func (c *Client) KillOnce(counter *atomic.Int64) bool {
	if !c.IsDriven() || !c.Killed.CompareAndSwap(false, true) {
		return false
	}
	if counter != nil {
		counter.Add(1)
	}
	c.Kill()
	return true
}

// Init makes a client without a connection. Pointers are set to something, so that nobody who reads them asks for nil.
func (c *Client) Init() {
	c.Name.Store(&NoText)
	c.Library.Store(&NoText)
	c.Version.Store(&NoText)
	c.FD, c.Born = -1, time.Now()
	c.lastSeen.Store(c.Born.UnixNano())
	c.queued.Store(-1)
}

// NoteCommand notes what the session is about to do. It is called once for a run of equal commands, with the counts.
// queued is the number of commands since MULTI, -1 outside.
func (c *Client) NoteCommand(cmd *command.Command, at time.Time, namespace, version, queued int) {
	c.lastCommand.Store(cmd)
	c.lastSeen.Store(at.UnixNano())
	c.namespace.Store(int64(namespace))
	c.version3.Store(version == 3)
	c.queued.Store(int64(queued))
}

// ListLine is the session's line of CLIENT LIST. The fields and their order are Redis's; what has no counterpart here
// is a constant, because parsers expect the field. Messages that wait for a subscriber count as output, as in Redis.
func (c *Client) ListLine(now time.Time) string {
	cmd := "NULL"
	if last := c.lastCommand.Load(); last != nil {
		cmd = last.Name
	}
	protocol := 2
	if c.version3.Load() {
		protocol = 3
	}
	f := &c.Figures
	messages, messageBytes := c.Tracking.Mail.Waiting()
	_, recent := f.Recent(now)
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=%d watch=%d "+
		"qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=%d rbp=%d obl=%d oll=%d omem=%d tot-mem=%d events=r cmd=%s user=%s "+
		"redir=%d resp=%d lib-name=%s lib-ver=%s",
		c.ID(), c.Remote, c.Local, c.FD, *c.Name.Load(), int(now.Sub(c.Born).Seconds()),
		int(c.Idle(now).Seconds()), c.Flags(), c.Database(),
		c.Tracking.Mail.Count(pubsub.Channel), c.Tracking.Mail.Count(pubsub.Pattern), c.Tracking.Mail.Count(pubsub.Shard), c.queued.Load(), c.Watched.Load(),
		f.Query.Load(), f.QueryFree.Load(), f.Arguments.Load(), f.Queued.Load(), f.Reply.Load(), recent,
		f.Pending.Load(), f.Parts.Load()+int64(messages), f.PartBytes.Load()+int64(messageBytes), c.BufferBytes.Load(), cmd, c.User.Load().Name(), c.Tracking.Redirect(), protocol, *c.Library.Load(), *c.Version.Load())
}

// Idle is how long ago its last command was.
func (c *Client) Idle(now time.Time) time.Duration { return now.Sub(time.Unix(0, c.lastSeen.Load())) }

// Database is the one that it has selected.
func (c *Client) Database() int64 { return c.namespace.Load() }

// Flags are Redis's letters for what the session is at. A client may have several; N is for one
// that has none. Letters of Redis for what does not exist here never appear: M (a master), d
// (a watched key has changed: EXEC finds out), c and A (it is about to be closed), u (unblocked).
func (c *Client) Flags() string {
	flags := ""
	if c.IsReplica.Load() {
		flags += "S"
	}
	if c.Tracking.Mail.Count(pubsub.Commands) > 0 {
		flags += "O"
	}
	if c.Kind() == "pubsub" {
		flags += "P"
	}
	if c.queued.Load() >= 0 {
		flags += "x"
	}
	if c.Wait.Load() != nil {
		flags += "b"
	}
	if mode := c.Tracking.Mode(); mode != nil {
		flags += "t"
		if c.Tracking.Broken() {
			flags += "R"
		}
		if mode.Broadcast {
			flags += "B"
		}
	}
	if strings.HasPrefix(c.Local, "/") {
		flags += "U"
	}
	if c.ReadOnly.Load() {
		flags += "r"
	}
	if c.NoEvict.Load() {
		flags += "e"
	}
	if c.NoTouch.Load() {
		flags += "T"
	}
	if flags == "" {
		flags = "N"
	}
	return flags
}

// Kind is the type that CLIENT LIST and CLIENT KILL select by. A client that only gets messages about tracked keys is a
// normal one, as in Redis.
func (c *Client) Kind() string {
	switch {
	case c.IsReplica.Load():
		return "replica"
	case c.Tracking.Mail.Listens():
		return "pubsub"
	}
	return "normal"
}
