package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
)

// ACL administers users; package acl has the rules, permission.go the places where they are obeyed.

const aclFlags = operatorFlags

// aclCommand administers users.
var aclCommand = &command.Command{
	Name: "acl", Arity: -2, Group: command.GroupServer, Since: "6.0.0", Complexity: "Depends on the subcommand",
	Summary: "A container for commands about users and what they may do.",
	Subcommands: []*command.Command{
		{Name: "acl|cat", Arity: -2, Flags: sessionFlags, Since: "6.0.0", Complexity: "O(n), n being the number of commands",
			Summary: "Lists the categories of commands, or the commands of one.", Syntax: "[category]", Run: aclCat},
		{Name: "acl|deluser", Arity: -3, Flags: aclFlags, Since: "6.0.0", Complexity: "O(1) a user",
			Summary: "Deletes users and ends their connections.", Syntax: "username [username ...]", Run: onSession(aclDelUser)},
		{Name: "acl|dryrun", Arity: -4, Flags: aclFlags, Since: "7.0.0", Complexity: "O(1)",
			Summary: "Says whether a user may make a request, without executing it.", Syntax: "username command [arg [arg ...]]", Run: onSession(aclDryRun)},
		{Name: "acl|genpass", Arity: -2, Flags: sessionFlags, Since: "6.0.0", Complexity: "O(1)",
			Summary: "Makes a random password.", Syntax: "[bits]", Run: aclGenPass},
		{Name: "acl|getuser", Arity: 3, Flags: aclFlags, Since: "6.0.0", Complexity: "O(n), n being the number of the user's rules",
			Summary: "Describes a user.", Syntax: "username", Run: onSession(aclGetUser)},
		{Name: "acl|list", Arity: 2, Flags: aclFlags, Since: "6.0.0", Complexity: "O(n), n being the number of users",
			Summary: "Describes all users, as in a file of users.",
			Run:     onSession(func(s *Session, c *command.Call) error { return c.Names(s.server.users.Lines()) })},
		{Name: "acl|load", Arity: 2, Flags: aclFlags, Since: "6.0.0", Complexity: "O(n), n being the number of users",
			Summary: "Reads the file of users again.", Run: onSession(aclLoad)},
		{Name: "acl|log", Arity: -2, Flags: aclFlags, Since: "6.0.0", Complexity: "O(n), n being the number of entries",
			Summary: "Lists requests and passwords that were refused, or forgets them.", Syntax: "[count | RESET]", Run: onSession(aclLogCommand)},
		{Name: "acl|save", Arity: 2, Flags: aclFlags, Since: "6.0.0", Complexity: "O(n), n being the number of users",
			Summary: "Writes all users to the file of users.", Run: onSession(aclSave)},
		{Name: "acl|setuser", Arity: -3, Flags: aclFlags, Since: "6.0.0", Complexity: "O(n), n being the number of rules",
			Summary: "Makes a user or changes its rules.", Syntax: "username [rule [rule ...]]", Run: onSession(aclSetUser)},
		{Name: "acl|users", Arity: 2, Flags: aclFlags, Since: "6.0.0", Complexity: "O(n), n being the number of users",
			Summary: "Lists the names of all users.",
			Run:     onSession(func(s *Session, c *command.Call) error { return c.Names(s.server.users.Names()) })},
		{Name: "acl|whoami", Arity: 2, Flags: sessionFlags, Since: "6.0.0", Complexity: "O(1)",
			Summary: "Returns the name of this connection's user.",
			Run:     onSession(func(s *Session, c *command.Call) error { c.Out.BulkString(s.user.Name()); return nil })},
		{Name: "acl|help", Arity: 2, Flags: anyStateFlags, Since: "6.0.0", Complexity: "O(1)", Summary: "Lists the subcommands.",
			Run: command.Help},
	},
}

// aclCat is ACL CAT.
func aclCat(c *command.Call) error {
	if len(c.Args) > 3 {
		return command.ErrUnknownOrArity(c)
	}
	if len(c.Args) == 2 {
		return c.Names(acl.Categories())
	}
	list, ok := acl.InCategory(table, c.Key(2))
	if !ok {
		return command.Errorf("ERR Unknown category '%s'", command.Quoted(c.Arg(2)))
	}
	names := make([]string, len(list))
	for i, cmd := range list {
		names[i] = cmd.Name
	}
	return c.Names(names)
}

// aclSetUser is ACL SETUSER. Either all rules are applied or none.
func aclSetUser(s *Session, c *command.Call) error {
	change, err := s.server.users.Set(c.Key(2), c.Strings(3))
	if err != nil {
		return command.Errorf("ERR %v", err)
	}
	s.applyChange(change)
	return c.OK()
}

// aclDelUser is ACL DELUSER. Nothing is deleted if the default user is among the names.
func aclDelUser(s *Session, c *command.Call) error {
	for _, name := range c.Strings(2) {
		if name == acl.DefaultName {
			return command.Error("ERR The 'default' user cannot be removed")
		}
	}
	deleted := 0
	for _, name := range c.Strings(2) {
		if u := s.server.users.Delete(name); u != nil {
			deleted++
			s.dropUser(u)
		}
	}
	return c.Int(deleted, nil)
}

// aclGetUser is ACL GETUSER: null for a user that does not exist.
func aclGetUser(s *Session, c *command.Call) error {
	u := s.server.users.Get(c.Key(2))
	if u == nil {
		c.Out.Null()
		return nil
	}
	d := u.Rules().Describe()
	selectors := make([]any, len(d.Selectors))
	for i, one := range d.Selectors {
		selectors[i] = selectorFacts(one)
	}
	facts := []command.Fact{{Name: "flags", Value: command.BulkSet(d.Flags)}, {Name: "passwords", Value: d.Passwords}}
	facts = append(facts, selectorFacts(d.SelectorDescription)...)
	return c.Reply(append(facts, command.Fact{Name: "selectors", Value: selectors}))
}

// selectorFacts are the rules of one selector for a reply.
func selectorFacts(d acl.SelectorDescription) []command.Fact {
	return []command.Fact{{Name: "commands", Value: d.Commands}, {Name: "keys", Value: d.Keys}, {Name: "channels", Value: d.Channels}}
}

// aclDryRun is ACL DRYRUN.
func aclDryRun(s *Session, c *command.Call) error {
	u := s.server.users.Get(c.Key(2))
	if u == nil {
		return command.Errorf("ERR User '%s' not found", command.Quoted(c.Arg(2)))
	}
	args := c.Args[3:]
	cmd, err := table.Resolve(args)
	if cmd == nil || err != nil && len(args) > 1 && cmd.Subcommands != nil && cmd.Subcommand(args[1]) == nil {
		return command.Errorf("ERR Command '%s' not found", command.Quoted(args[0]))
	}
	if err != nil {
		return err
	}
	if d := u.Rules().Check(cmd, args); d.Verdict != acl.Allowed {
		c.Out.BulkString(d.Verbose())
		return nil
	}
	return c.OK()
}

// aclGenPass is ACL GENPASS: hexadecimal digits, of 256 bits unless it is told otherwise.
func aclGenPass(c *command.Call) error {
	if len(c.Args) > 3 {
		return command.ErrUnknownOrArity(c)
	}
	bits := int64(256)
	if len(c.Args) == 3 {
		var err error
		if bits, err = c.ParseInt(2); err != nil {
			return err
		}
		if bits <= 0 || bits > 4096 {
			return command.Error("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
		}
	}
	digits := int(bits+3) / 4
	random := make([]byte, (digits+1)/2)
	_, _ = rand.Read(random) // never fails: crypto/rand ends the process instead
	c.Out.BulkString(hex.EncodeToString(random)[:digits])
	return nil
}

// errNoACLFile answers ACL LOAD and ACL SAVE of a server without a file of users.
const errNoACLFile command.Error = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command " +
	"and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

// aclLoad is ACL LOAD.
func aclLoad(s *Session, c *command.Call) error {
	v := s.server
	if v.options.ACLFile == "" {
		return errNoACLFile
	}
	changes, err := v.loadACLFile()
	if err != nil {
		v.options.Logger.Error("the file of users was not loaded; the users are as before", "error", err)
		var pathless *fileError
		if errors.As(err, &pathless) {
			return command.Error("ERR The ACL file cannot be read. The log of the server says why.")
		}
		return command.Errorf("ERR The ACL file was not loaded: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	for _, change := range changes {
		s.applyChange(change)
	}
	return c.OK()
}

// aclSave is ACL SAVE.
func aclSave(s *Session, c *command.Call) error {
	v := s.server
	if v.options.ACLFile == "" {
		return errNoACLFile
	}
	if err := v.saveACLFile(); err != nil {
		v.options.Logger.Error("the file of users was not saved", "error", err)
		return command.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
	}
	return c.OK()
}

// aclLogCommand is ACL LOG.
func aclLogCommand(s *Session, c *command.Call) error {
	most := int64(10)
	switch {
	case len(c.Args) > 3:
		return command.ErrUnknownOrArity(c)
	case len(c.Args) == 3 && c.Is(2, "reset"):
		s.server.aclLog.Reset()
		return c.OK()
	case len(c.Args) == 3:
		n, ok := number.ParseInt(c.Arg(2))
		if !ok {
			return command.ErrNotInteger
		}
		most = min(max(n, 0), math.MaxInt32)
	}
	entries := s.server.aclLog.Entries(int(most))
	now := time.Now()
	c.Out.Array(len(entries))
	for _, e := range entries {
		c.Out.Map(10)
		pair := func(name, value string) { c.Out.BulkString(name); c.Out.BulkString(value) }
		number := func(name string, n int64) { c.Out.BulkString(name); c.Out.Int(n) }
		number("count", int64(e.Count))
		pair("reason", e.Reason())
		pair("context", string(e.Context))
		pair("object", e.Object)
		pair("username", e.Username)
		c.Out.BulkString("age-seconds")
		c.Out.Double(float64(now.Sub(e.Updated).Milliseconds()) / 1000)
		pair("client-info", e.Client)
		number("entry-id", e.ID)
		number("timestamp-created", e.Created.UnixMilli())
		number("timestamp-last-updated", e.Updated.UnixMilli())
	}
	return nil
}
