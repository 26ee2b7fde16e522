package server

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/command"
)

// client is what other connections may see of a session: CLIENT LIST reads it while the session
// works, so everything is atomic.
type client struct {
	// What CLIENT SETNAME and SETINFO set.
	name, library, version atomic.Pointer[string]
	remote, local          string // addresses; set before the session is registered, then constant
	born                   time.Time
	lastSeen               atomic.Int64 // Unix nanoseconds of the last command
	lastCommand            atomic.Pointer[command.Command]
	namespace, queued      atomic.Int64 // queued: commands since MULTI, -1 outside
	version3               atomic.Bool
	bufferBytes            atomic.Int64 // bytes of the buffers, as last accounted for
	kill                   func()       // ends the connection from any goroutine; nil without one
	wake                   func()       // makes the driver call Resume, from any goroutine; nil without one
	blocked                atomic.Pointer[blocked]
	watched                atomic.Int64 // keys
	subscribed             [audiences]atomic.Int64
	abort                  func() // is kill without anything that takes a lock; nil without a connection
}

var noText = ""

func (c *client) init() {
	c.name.Store(&noText)
	c.library.Store(&noText)
	c.version.Store(&noText)
	c.born = time.Now()
	c.lastSeen.Store(c.born.UnixNano())
	c.queued.Store(-1)
}

// noteCommand notes what the session is about to do. It is called once for a run of equal commands,
// with the counts.
func (c *client) noteCommand(s *Session, cmd *command.Command) {
	c.lastCommand.Store(cmd)
	c.lastSeen.Store(s.statsSince.UnixNano())
	c.namespace.Store(int64(s.namespace))
	c.version3.Store(s.out.Version() == 3)
	queued := int64(-1)
	if s.queue != nil {
		queued = int64(len(s.queue.requests))
	}
	c.queued.Store(queued)
}

// listLine is the session's line of CLIENT LIST. The fields and their order are Redis's;
// what has no counterpart here is a constant, because parsers expect the field.
func (s *Session) listLine(now time.Time) string {
	c := &s.client
	cmd := "NULL"
	if last := c.lastCommand.Load(); last != nil {
		cmd = last.Name
	}
	protocol := 2
	if c.version3.Load() {
		protocol = 3
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=%d watch=%d "+
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=%d events=r cmd=%s user=default "+
		"redir=-1 resp=%d lib-name=%s lib-ver=%s",
		s.id, c.remote, c.local, *c.name.Load(), int(now.Sub(c.born).Seconds()),
		int(now.Sub(time.Unix(0, c.lastSeen.Load())).Seconds()), c.flags(), c.namespace.Load(),
		c.subscribed[toChannel].Load(), c.subscribed[toPattern].Load(), c.subscribed[toShard].Load(), c.queued.Load(), c.watched.Load(),
		c.bufferBytes.Load(), cmd, protocol, *c.library.Load(), *c.version.Load())
}

// flags are Redis's letters for what the session is at. A client may have several; N is for one
// that has none.
func (c *client) flags() string {
	flags := ""
	if c.kind() == "pubsub" {
		flags += "P"
	}
	if c.subscribed[toCommands].Load() > 0 {
		flags += "O"
	}
	if c.blocked.Load() != nil {
		flags += "b"
	}
	if c.queued.Load() >= 0 {
		flags += "x"
	}
	if flags == "" {
		flags = "N"
	}
	return flags
}

// kind is the type that CLIENT LIST and CLIENT KILL select by.
func (c *client) kind() string {
	for to := range toCommands {
		if c.subscribed[to].Load() > 0 {
			return "pubsub"
		}
	}
	return "normal"
}

// sortSessions sorts by age, which is what ascending ids are.
func sortSessions(list []*Session) {
	slices.SortFunc(list, func(a, b *Session) int { return int(a.id - b.id) })
}

// printable reports whether text can stand in CLIENT LIST, where spaces separate fields and line
// ends clients.
func printable(text []byte) bool {
	for _, b := range text {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}
