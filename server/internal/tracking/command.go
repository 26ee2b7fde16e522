package tracking

import (
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
)

// Session is what the commands work with.
type Session struct {
	Reads       *Reads
	IsConnected func(id int64) bool
}

// Commands are the subcommands of CLIENT about client-side caching. of is asked at each call.
func Commands(of func(*command.Call) Session) []*command.Command {
	on := func(run func(Session, *command.Call) error) func(*command.Call) error {
		return func(c *command.Call) error { return run(of(c), c) }
	}
	return []*command.Command{
		{Name: "client|tracking", Arity: -3, Flags: command.OfSession, Run: on(clientTracking)},
		{Name: "client|caching", Arity: 3, Flags: command.OfSession, Run: on(clientCaching)},
		{Name: "client|trackinginfo", Arity: 2, Flags: command.Describes | command.OfSession, Run: on(clientTrackingInfo)},
		{Name: "client|getredir", Arity: 2, Flags: command.Describes | command.OfSession, Run: on(clientGetRedir)},
	}
}

// The refusals of CLIENT CACHING, in Redis's words.
const (
	errCachingNoMode   command.Error = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
	errCachingYesOptIn command.Error = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
	errCachingNoOptOut command.Error = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
)

// clientTracking is CLIENT TRACKING. Options of a request with OFF are checked and otherwise ignored, as in Redis. A
// session that tracks already may say ON again, to add prefixes or change where messages go; a change between the default
// mode and BCAST, or between OPTIN and OPTOUT, is refused (Mode.Follow). s.tracked.reads is false for BCAST: there the
// prefixes decide, and no read is noted.
func clientTracking(s Session, c *command.Call) error {
	mode, err := Parse(c, s.IsConnected)
	switch {
	case err != nil:
		return err
	case c.Args.Is(2, "off"):
		s.Reads.Stop()
	case !c.Args.Is(2, "on"):
		return command.ErrSyntax
	default:
		if err := mode.Follow(s.Reads.client.Mode()); err != nil {
			return err
		}
		s.Reads.table.Add(s.Reads.client, mode)
		s.Reads.reads = !mode.Broadcast
	}
	return c.OK()
}

// clientCaching is CLIENT CACHING. It reverses, for the next command, what OPTIN or OPTOUT has chosen; the word must be
// the one that makes a difference in that mode. The flag is dropped by EndCaching.
func clientCaching(s Session, c *command.Call) error {
	mode := s.Reads.client.Mode()
	switch {
	case mode == nil:
		return errCachingNoMode
	case c.Args.Is(2, "yes"):
		if !mode.OptIn {
			return errCachingYesOptIn
		}
	case c.Args.Is(2, "no"):
		if !mode.OptOut {
			return errCachingNoOptOut
		}
	default:
		return command.ErrSyntax
	}
	s.Reads.caching = true
	return c.OK()
}

// clientTrackingInfo is CLIENT TRACKINGINFO. A redirect of -1 says that tracking is off, 0 that it is on and messages come
// by this connection.
func clientTrackingInfo(s Session, c *command.Call) error {
	mode := s.Reads.client.Mode()
	flags, redirect := []string{"off"}, int64(-1)
	if mode != nil {
		flags, redirect = []string{"on"}, mode.Redirect
	} else {
		mode = new(Mode)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"bcast", mode.Broadcast}, {"optin", mode.OptIn}, {"caching-yes", mode.OptIn && s.Reads.caching}, {"optout", mode.OptOut},
		{"caching-no", mode.OptOut && s.Reads.caching}, {"noloop", mode.NoLoop}, {"broken_redirect", s.Reads.client.Broken()},
	} {
		if flag.set {
			flags = append(flags, flag.name)
		}
	}
	return c.Reply([]command.Fact{{Name: "flags", Value: command.BulkSet(flags)}, {Name: "redirect", Value: redirect}, {Name: "prefixes", Value: mode.Prefixes}})
}

// clientGetRedir is CLIENT GETREDIR.
func clientGetRedir(s Session, c *command.Call) error {
	c.Out.Int(s.Reads.client.Redirect())
	return nil
}

// Reads are the session's side of CLIENT TRACKING. Only the session uses it.
type Reads struct {
	table   *Table
	client  *Client
	reads   bool // keys that are read go into the table
	caching bool // CLIENT CACHING concerns the next command, or the transaction
}

// NewReads returns those of a client that tracks nothing.
func NewReads(table *Table, client *Client) Reads { return Reads{table: table, client: client} }

// IsCaching reports whether CLIENT CACHING concerns the next command.
func (t *Reads) IsCaching() bool { return t.caching }

// Stop makes the session track no more. It may be called when it does not: RESET and Close do. Messages that are
// in the mailbox by then are still delivered.
func (t *Reads) Stop() {
	t.reads, t.caching = false, false
	t.table.Remove(t.client)
}

// Note notes which keys a command has read, while they are locked. In a transaction that has changed something
// the read takes its place among the changes, so that those before it do not make it obsolete.
func (t *Reads) Note(c *command.Call) {
	if !t.reads || c.Tx == nil || c.Command.Flags&(command.ReadOnly|command.RunsScript) != command.ReadOnly || !t.client.Mode().Tracks(t.caching) {
		return
	}
	keys := c.Command.AppendKeys(nil, c.Args)
	if len(keys) > 0 && serverside.DB.NoteRead(c.Tx, keys[0]) {
		for _, key := range keys[1:] {
			serverside.DB.NoteRead(c.Tx, key)
		}
		return
	}
	t.table.Remember(t.client, keys)
}

// EndCaching ends what CLIENT CACHING has begun: it holds for the next command, or the next transaction as a whole.
func (t *Reads) EndCaching(cmd *command.Command, queued bool) {
	if t.caching && !queued && (cmd == nil || cmd.Container == nil || cmd.Container.Name != "client") {
		t.caching = false
	}
}
