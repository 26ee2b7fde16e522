package server

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

// CONFIG GET shows what a tool built for Redis expects to find, CONFIG SET changes the few settings
// that can change while the server runs (settingParsers in config.go). There is no file of
// settings: what is set here lasts until the process ends.

var configCommand = &command.Command{
	Name: "config", Arity: -2, Group: command.GroupServer, Since: "2.0.0", Complexity: "Depends on the subcommand",
	Summary: "A container for commands about settings.",
	Subcommands: []*command.Command{
		{Name: "config|get", Arity: -3, Flags: operatorFlags, Since: "2.0.0", Complexity: "O(n), n being the number of settings",
			Summary: "Returns the settings that match patterns.", Syntax: "parameter [parameter ...]", Run: onSession(configGet)},
		{Name: "config|set", Arity: -4, Flags: operatorFlags, Since: "2.0.0", Complexity: "O(n), n being the number of settings",
			Summary: "Changes settings that may be changed while the server runs.", Syntax: "parameter value [parameter value ...]",
			Run: onSession(configSet)},
		{Name: "config|rewrite", Arity: 2, Flags: operatorFlags, Since: "2.8.0", Complexity: "O(1)",
			Summary: "Is refused: there is no file of settings.", Run: configRewrite},
		{Name: "config|resetstat", Arity: 2, Flags: operatorFlags, Since: "2.0.0", Complexity: "O(1)",
			Summary: "Sets the counters of INFO to zero.", Run: onSession(configResetStat)},
		{Name: "config|help", Arity: 2, Flags: anyStateFlags, Since: "5.0.0", Complexity: "O(1)", Summary: "Lists the subcommands.",
			Run: command.Help},
	},
}

// configGet is CONFIG GET. A setting that several patterns match is shown once.
func configGet(s *Session, c *command.Call) error {
	settings := s.server.settings()
	var names []string
	for name := range settings {
		for _, pattern := range c.Args[2:] {
			if structures.Match(strings.ToLower(string(pattern)), []byte(name)) {
				names = append(names, name)
				break
			}
		}
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
// parsed, and all values are parsed before the first is applied.
func configSet(s *Session, c *command.Call) error {
	if len(c.Args)%2 != 0 {
		return command.ErrSyntax
	}
	v := s.server
	settings := v.settings()
	var applies []func()
	seen := map[string]bool{}
	for i := 2; i < len(c.Args); i += 2 {
		name := strings.ToLower(c.Key(i))
		if _, known := settings[name]; !known {
			return command.Errorf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", command.Quoted(c.Arg(i)))
		}
		tune := settingParsers[name]
		if tune == nil {
			return errSetting(c.Key(i), "can't set immutable config")
		}
		if seen[name] {
			return errSetting(c.Key(i), "duplicate parameter")
		}
		seen[name] = true
	}
	for i := 2; i < len(c.Args); i += 2 {
		apply, err := settingParsers[strings.ToLower(c.Key(i))](v, c.Key(i+1))
		if err != nil {
			return errSetting(c.Key(i), err.Error())
		}
		applies = append(applies, apply)
	}
	for _, apply := range applies {
		apply()
	}
	return c.OK()
}

// configRewrite is CONFIG REWRITE, which Redis refuses in these words without a file of settings.
func configRewrite(*command.Call) error {
	return command.Error("ERR The server is running without a config file")
}

// configResetStat is CONFIG RESETSTAT.
func configResetStat(s *Session, c *command.Call) error {
	s.server.resetStats()
	return c.OK()
}

// errSetting is how Redis refuses one setting of several. Nothing has been changed then.
func errSetting(name, why string) command.Error {
	return command.Errorf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", command.Quoted([]byte(name)), why)
}
