package admin

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/settings"
)

// CONFIG GET, SET and REWRITE work on the table of package settings; settings_bindings.go has what a setting does to this
// server.
//
// A CONFIG SET of several settings is all or nothing. What can be refused is checked first; then comes what may fail when
// it is applied, and can be put back (the addresses, and changers); what cannot fail (setters) comes last. When two run at
// the same time, each setting ends with the value of one of them, and not all need end with those of the same one.

func configCommand(of source) *command.Command {
	return &command.Command{
		Name: "config", Arity: -2, Group: command.GroupServer,
		Subcommands: []*command.Command{
			{Name: "config|get", Arity: -3, Flags: command.Describes | command.OfOperator, Run: of.on(configGet)},
			{Name: "config|set", Arity: -4, Flags: command.OfOperator, Run: of.on(configSet)},
			{Name: "config|rewrite", Arity: 2, Flags: command.OfOperator, Run: of.on(configRewrite)},
			{Name: "config|resetstat", Arity: 2, Flags: command.OfOperator, Run: of.on(configResetStat)},
			command.HelpRow("config"),
		},
	}
}

// configGet is CONFIG GET. A setting that several patterns match is shown once. Patterns are compared in lower case, as
// all names in the table are, and names come sorted; in Redis their order is that of a hash table. A pattern may take
// long to match (it is a client's), so c.Matches stops when the client has gone.
func configGet(a *Caller, c *command.Call) error {
	settings := a.State.Settings.All()
	rest := slices.Sorted(maps.Keys(settings)) // that no pattern has matched so far
	var names []string
	for i, pattern := range c.Args[2:] {
		if err := c.GoesOn(i); err != nil {
			return err
		}
		pattern := strings.ToLower(string(pattern))
		rest = slices.DeleteFunc(rest, func(name string) bool {
			if !c.Matches(pattern, []byte(name)) {
				return false
			}
			names = append(names, name)
			return true
		})
	}
	slices.Sort(names)
	c.Out.Map(len(names))
	for _, name := range names {
		c.Out.BulkString(name)
		c.Out.BulkString(settings[name])
	}
	return nil
}

// configSet changes all of the settings or none. All names are checked before the first value is
// parsed, and all values are parsed before the first is applied. So a wrong name anywhere is what the
// client is told, whatever the values before it are, as in Redis.
func configSet(a *Caller, c *command.Call) error {
	if len(c.Args)%2 != 0 {
		return command.ErrSyntax
	}
	var rows []*settings.Directive
	seen := map[string]bool{} // the names as they were given: an alias may stand beside its name, and the last holds
	for i := 2; i < len(c.Args); i += 2 {
		d := settings.Table[strings.ToLower(c.Key(i))]
		switch {
		case d == nil:
			return command.Errorf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", command.Quoted(c.Arg(i)))
		case d.Name == "dir" || d.Name == "dbfilename":
			return errSetting(c.Key(i), "can't set protected config")
		case d.Mode == settings.AtStart:
			return errSetting(c.Key(i), "can't set immutable config")
		case seen[strings.ToLower(c.Key(i))]:
			return errSetting(c.Key(i), "duplicate parameter")
		}
		seen[strings.ToLower(c.Key(i))] = true
		rows = append(rows, d)
	}
	values := make([]string, len(rows))
	for i, d := range rows {
		var err error
		if values[i], err = a.State.Settings.Check(d, c.Key(2*i+3)); err != nil {
			return errSetting(c.Key(2*i+2), err.Error())
		}
	}
	if i, err := a.State.Settings.SetAll(rows, values); err != nil {
		return errSetting(c.Key(2*i+2), err.Error())
	}
	return c.OK()
}

// configRewrite is CONFIG REWRITE. It comes after a REPLICAOF before it in an EXEC, as Sentinel sends the two.
func configRewrite(a *Caller, c *command.Call) error { return a.unlocked(c, a.rewriteConfig) }

// rewriteConfig rewrites the file of settings. An error of the file is the operator's to see, and no client's: it is logged.
func (a *Caller) rewriteConfig() error {
	switch err := a.State.Settings.Rewrite(); {
	case errors.Is(err, settings.ErrNoConfigFile):
		return command.Error("ERR The server is running without a config file")
	case err != nil:
		a.State.Options.Logger.Error("CONFIG REWRITE failed", "error", err)
		return command.Error("ERR Rewriting config file: it could not be read or written; the log of the server says why")
	}
	a.State.Options.Logger.Info("CONFIG REWRITE: the file of settings was rewritten", "client", a.Client.ID())
	return nil
}

// configResetStat is CONFIG RESETSTAT. What a session has counted and not added yet counts after the reset.
func configResetStat(a *Caller, c *command.Call) error {
	a.State.Counters.Reset()
	return c.OK()
}

// errSetting is how Redis refuses one setting of several. Nothing has been changed then.
func errSetting(name, why string) command.Error {
	return command.Errorf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", command.Quoted([]byte(name)), why)
}
