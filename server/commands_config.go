package server

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/listeners"
	"github.com/stavedb/stave/server/internal/settings"
)

// CONFIG GET, SET and REWRITE work on the table of package settings; config_bindings.go has what a setting does to this
// server.
//
// A CONFIG SET of several settings is all or nothing. What can be refused is checked first; then comes what may fail when
// it is applied, and can be put back (the addresses, and changers); what cannot fail (setters) comes last. When two run at
// the same time, each setting ends with the value of one of them, and not all need end with those of the same one.

var configCommand = &command.Command{
	Name: "config", Arity: -2, Group: command.GroupServer,
	Subcommands: []*command.Command{
		{Name: "config|get", Arity: -3, Flags: command.Describes | command.OfOperator, Run: onSession(configGet)},
		{Name: "config|set", Arity: -4, Flags: command.OfOperator, Run: onSession(configSet)},
		{Name: "config|rewrite", Arity: 2, Flags: command.OfOperator, Run: onSession(configRewrite)},
		{Name: "config|resetstat", Arity: 2, Flags: command.OfOperator, Run: onSession(configResetStat)},
		command.HelpRow("config"),
	},
}

// configGet is CONFIG GET. A setting that several patterns match is shown once. Patterns are compared in lower case, as
// all names in the table are, and names come sorted; in Redis their order is that of a hash table. A pattern may take
// long to match (it is a client's), so c.Matches stops when the client has gone.
func configGet(s *Session, c *command.Call) error {
	settings := s.server.settings()
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
func configSet(s *Session, c *command.Call) error {
	if len(c.Args)%2 != 0 {
		return command.ErrSyntax
	}
	v := s.server
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
		if values[i], err = v.newSetting(d, c.Key(2*i+3)); err != nil {
			return errSetting(c.Key(2*i+2), err.Error())
		}
	}
	if i, err := v.applyAll(rows, values); err != nil {
		return errSetting(c.Key(2*i+2), err.Error())
	}
	return c.OK()
}

// applyAll makes checked values so, or none of them: then it says which one failed, and why. What has been applied is put
// back in reverse order. The configuration notes the values only when nothing can fail any more: a CONFIG REWRITE at
// the same time writes none that did not hold.
func (v *Server) applyAll(rows []*settings.Directive, values []string) (failed int, err error) {
	var undo []func()
	if to, at := listeners.Among(rows, values); at >= 0 {
		before := listeners.Values{}
		for name := range to {
			before[name] = v.setting(settings.Table[name])
		}
		if err := v.changeBound(to); err != nil {
			return at, err
		}
		undo = append(undo, func() {
			if err := v.changeBound(before); err != nil {
				v.options.Logger.Error("bind and ports could not be put back", "error", err)
			}
		})
	}
	for i, d := range rows {
		if changers[d.Name] == nil {
			continue
		}
		before := v.setting(d)
		if err := v.apply(d, values[i]); err != nil {
			for _, back := range slices.Backward(undo) {
				back()
			}
			return i, err
		}
		undo = append(undo, func() {
			if err := v.apply(d, before); err != nil {
				v.options.Logger.Error("a setting could not be put back", "name", d.Name, "error", err)
			}
		})
	}
	for i, d := range rows {
		if set := setters[d.Name]; set != nil {
			set(v, values[i])
		}
		v.config.Store(d, values[i], settings.FromClient)
	}
	return 0, nil
}

// newSetting checks a value that a client wants and returns it in its canonical form: bytes without a unit, yes and no
// in lower case. A setting that has a single value here, such as maxmemory-policy, may be set to that.
func (v *Server) newSetting(d *settings.Directive, text string) (string, error) {
	value, err := d.Kind.Check(text, v.setting(d))
	switch {
	case err != nil:
		return "", err
	case d.Mode == settings.Fixed && value != v.setting(d):
		return "", errors.New(d.Refusal)
	case d.Name == "maxclients":
		return value, v.checkMaxClients(value)
	}
	return value, nil
}

// checkMaxClients refuses more clients than there are files for, as Redis does for CONFIG SET. At the start, and on a
// reload, such a value is lowered instead: see limitClients.
func (v *Server) checkMaxClients(value string) error {
	n, err := settings.ParseMemory(value)
	if err != nil {
		return err
	}
	if most, known := v.mostClients(); known && n > most {
		return command.Errorf("The operating system is not able to handle the specified number of clients, try with %d", most)
	}
	return nil
}

// configRewrite is CONFIG REWRITE. An error of the file is the operator's to see, and no client's: it is
// logged. It excludes a reload: that would read the file while it is written, and compare it with users that are half
// those of before.
func configRewrite(s *Session, c *command.Call) error {
	v := s.server
	v.reloadMu.Lock()
	defer v.reloadMu.Unlock()
	users := v.rewrittenUsers()
	err := v.config.Rewrite(users)
	if err == nil && users != nil {
		v.given = users
	}
	switch {
	case errors.Is(err, settings.ErrNoConfigFile):
		return command.Error("ERR The server is running without a config file")
	case err != nil:
		v.options.Logger.Error("CONFIG REWRITE failed", "error", err)
		return command.Error("ERR Rewriting config file: it could not be read or written; the log of the server says why")
	}
	v.options.Logger.Info("CONFIG REWRITE: the file of settings was rewritten", "client", s.id)
	return c.OK()
}

// configResetStat is CONFIG RESETSTAT. What a session has counted and not added yet counts after the reset: see stats.go.
func configResetStat(s *Session, c *command.Call) error {
	s.server.counters.Reset()
	return c.OK()
}

// errSetting is how Redis refuses one setting of several. Nothing has been changed then.
func errSetting(name, why string) command.Error {
	return command.Errorf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", command.Quoted([]byte(name)), why)
}
