package acl

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/server/command"
)

// Admin is what ACL works with.
type Admin struct {
	Users  *Users
	Log    *Log
	File   string // path of the file of users; "" for none
	Logger *slog.Logger
	User   *User          // who asks
	Apply  func([]Change) // ends what changes do not allow any more
}

// Command is ACL. admin is asked at each call.
func Command(admin func(*command.Call) Admin) *command.Command {
	on := func(run func(*Admin, *command.Call) error) func(*command.Call) error {
		return func(c *command.Call) error { a := admin(c); return run(&a, c) }
	}
	return &command.Command{
		Name: "acl", Arity: -2, Group: command.GroupServer,
		Subcommands: []*command.Command{
			{Name: "acl|cat", Arity: -2, Flags: command.Describes | command.OfSession, Run: on(catCommand)},
			{Name: "acl|deluser", Arity: -3, Flags: command.OfOperator, Run: on(delUserCommand)},
			{Name: "acl|dryrun", Arity: -4, Flags: command.Describes | command.OfOperator, Run: on(dryRunCommand)},
			{Name: "acl|genpass", Arity: -2, Flags: command.OfSession, Run: genPassCommand},
			{Name: "acl|getuser", Arity: 3, Flags: command.Describes | command.OfOperator, Run: on(getUserCommand)},
			{Name: "acl|list", Arity: 2, Flags: command.Describes | command.OfOperator,
				Run: on(func(a *Admin, c *command.Call) error { return c.Names(a.Users.Lines()) })},
			{Name: "acl|load", Arity: 2, Flags: command.OfOperator, Run: on(loadCommand)},
			{Name: "acl|log", Arity: -2, Flags: command.Describes | command.OfOperator, Run: on(logCommand)},
			{Name: "acl|save", Arity: 2, Flags: command.OfOperator, Run: on(saveCommand)},
			{Name: "acl|setuser", Arity: -3, Flags: command.OfOperator, Run: on(setUserCommand)},
			{Name: "acl|users", Arity: 2, Flags: command.Describes | command.OfOperator,
				Run: on(func(a *Admin, c *command.Call) error { return c.Names(a.Users.Names()) })},
			{Name: "acl|whoami", Arity: 2, Flags: command.Describes | command.OfSession,
				Run: on(func(a *Admin, c *command.Call) error { c.Out.BulkString(a.User.Name()); return nil })},
			command.HelpRow("acl"),
		},
	}
}

// catCommand is ACL CAT.
func catCommand(a *Admin, c *command.Call) error {
	if len(c.Args) > 3 {
		return command.ErrUnknownOrArity(c)
	}
	if len(c.Args) == 2 {
		return c.Names(Categories())
	}
	list, ok := InCategory(a.Users.table, c.Key(2))
	if !ok {
		return command.Errorf("ERR Unknown category '%s'", command.Quoted(c.Arg(2)))
	}
	names := make([]string, len(list))
	for i, cmd := range list {
		names[i] = cmd.Name
	}
	return c.Names(names)
}

// setUserCommand is ACL SETUSER. Either all rules are applied or none.
func setUserCommand(a *Admin, c *command.Call) error {
	change, err := a.Users.SetUntil(c.Key(2), c.Args.Strings(3), c.Host.Interrupted)
	if err != nil {
		return command.Errorf("ERR %v", err)
	}
	a.Apply([]Change{change})
	return c.OK()
}

// delUserCommand is ACL DELUSER. Nothing is deleted if the default user is among the names.
func delUserCommand(a *Admin, c *command.Call) error {
	names := c.Args.Strings(2)
	if slices.Contains(names, DefaultName) {
		return command.Error("ERR The 'default' user cannot be removed")
	}
	deleted := a.Users.Delete(names)
	a.Apply(deleted)
	return c.Int(len(deleted), nil)
}

// getUserCommand is ACL GETUSER: null for a user that does not exist.
func getUserCommand(a *Admin, c *command.Call) error {
	u := a.Users.Get(c.Key(2))
	if u == nil {
		return c.Reply(nil)
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
func selectorFacts(d SelectorDescription) []command.Fact {
	return []command.Fact{{Name: "commands", Value: d.Commands}, {Name: "keys", Value: d.Keys}, {Name: "channels", Value: d.Channels}}
}

// dryRunCommand is ACL DRYRUN.
func dryRunCommand(a *Admin, c *command.Call) error {
	u := a.Users.Get(c.Key(2))
	if u == nil {
		return command.Errorf("ERR User '%s' not found", command.Quoted(c.Arg(2)))
	}
	args := c.Args[3:]
	cmd, err := a.Users.table.Resolve(args)
	if cmd == nil || err != nil && len(args) > 1 && cmd.Subcommands != nil && cmd.Subcommand(args[1]) == nil {
		return command.Errorf("ERR Command '%s' not found", command.Quoted(args[0]))
	}
	if err != nil {
		return err
	}
	if d := u.Rules().Check(cmd, args); d.Verdict != Allowed {
		return c.Reply(d.Verbose())
	}
	return c.OK()
}

// genPassCommand is ACL GENPASS: hexadecimal digits, of 256 bits unless it is told otherwise.
func genPassCommand(c *command.Call) error {
	if len(c.Args) > 3 {
		return command.ErrUnknownOrArity(c)
	}
	bits := int64(256)
	if len(c.Args) == 3 {
		var err error
		if bits, err = c.Args.ParseInt(2); err != nil {
			return err
		}
		if bits <= 0 || bits > 4096 {
			return command.Error("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
		}
	}
	digits := int(bits+3) / 4
	random := make([]byte, (digits+1)/2)
	_, _ = rand.Read(random) // never fails: crypto/rand ends the process instead
	return c.Reply(hex.EncodeToString(random)[:digits])
}

// errNoACLFile answers ACL LOAD and ACL SAVE of a server without a file of users.
const errNoACLFile command.Error = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command " +
	"and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

// loadCommand is ACL LOAD.
func loadCommand(a *Admin, c *command.Call) error {
	if a.File == "" {
		return errNoACLFile
	}
	changes, err := a.Users.LoadFile(a.File)
	if err != nil {
		a.Logger.Error("the file of users was not loaded; the users are as before", "error", err)
		var pathless *fileError
		if errors.As(err, &pathless) {
			return command.Error("ERR The ACL file cannot be read. The log of the server says why.")
		}
		return command.Errorf("ERR The ACL file was not loaded: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	a.Apply(changes)
	return c.OK()
}

// saveCommand is ACL SAVE.
func saveCommand(a *Admin, c *command.Call) error {
	if a.File == "" {
		return errNoACLFile
	}
	if err := a.Users.SaveFile(a.File); err != nil {
		a.Logger.Error("the file of users was not saved", "error", err)
		return command.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
	}
	return c.OK()
}

// logCommand is ACL LOG.
func logCommand(a *Admin, c *command.Call) error {
	most := int64(10)
	switch {
	case len(c.Args) > 3:
		return command.ErrUnknownOrArity(c)
	case len(c.Args) == 3 && c.Args.Is(2, "reset"):
		a.Log.Reset()
		return c.OK()
	case len(c.Args) == 3:
		n, err := c.Args.ParseInt(2)
		if err != nil {
			return err
		}
		most = min(max(n, 0), math.MaxInt32)
	}
	entries := a.Log.Entries(int(most))
	now := time.Now()
	c.Out.Array(len(entries))
	for _, e := range entries {
		c.Reply([]command.Fact{
			{Name: "count", Value: e.Count}, {Name: "reason", Value: e.Reason()}, {Name: "context", Value: string(e.Context)},
			{Name: "object", Value: e.Object}, {Name: "username", Value: e.Username},
			{Name: "age-seconds", Value: float64(now.Sub(e.Updated).Milliseconds()) / 1000}, {Name: "client-info", Value: e.Client},
			{Name: "entry-id", Value: e.ID}, {Name: "timestamp-created", Value: e.Created.UnixMilli()},
			{Name: "timestamp-last-updated", Value: e.Updated.UnixMilli()},
		})
	}
	return nil
}
