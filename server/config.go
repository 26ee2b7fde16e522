package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

var configCommand = &command.Command{
	Name: "config", Arity: -2, Group: command.GroupServer, Since: "2.0.0", Complexity: "Depends on the subcommand",
	Summary: "A container for commands about settings.",
	Subcommands: []*command.Command{
		{
			Name: "config|get", Arity: -3, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Since: "2.0.0",
			Complexity: "O(n), n being the number of settings", Summary: "Returns the settings that match patterns.",
			Syntax: "parameter [parameter ...]", Run: onSession(configGet),
		},
		{
			Name: "config|set", Arity: -4, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Since: "2.0.0",
			Complexity: "O(n), n being the number of settings", Summary: "Changes settings that may be changed while the server runs.",
			Syntax: "parameter value [parameter value ...]", Run: onSession(configSet),
		},
		{
			Name: "config|rewrite", Arity: 2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Since: "2.8.0", Complexity: "O(1)",
			Summary: "Is refused: there is no file of settings.", Run: configRewrite,
		},
		{
			Name: "config|resetstat", Arity: 2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Since: "2.0.0", Complexity: "O(1)",
			Summary: "Sets the counters of INFO to zero.", Run: onSession(configResetStat),
		},
		{
			Name: "config|help", Arity: 2, Flags: command.Loading | command.Stale, Since: "5.0.0", Complexity: "O(1)",
			Summary: "Lists the subcommands.", Run: command.Help,
		},
	},
}

// settings are what CONFIG GET shows: by Redis's names, so that tools find what they look for. Values that Stave does not
// have the mechanism for say that it is off.
func (v *Server) settings() map[string]string {
	o := &v.options
	host, port := v.listenAddress()
	settings := map[string]string{
		"activedefrag":               "no",
		"appendfsync":                "everysec",
		"appendonly":                 "yes", // the log is append-only, and it is all there is
		"bind":                       host,
		"busy-reply-threshold":       "5000",
		"client-output-buffer-limit": fmt.Sprintf("normal 0 0 0 slave 0 0 0 pubsub %d %d %d", maxMailBytes, softMailBytes, int(softMailPeriod.Seconds())),
		"client-query-buffer-limit":  strconv.Itoa(o.Limits.Bulk),
		"cluster-enabled":            "no",
		"daemonize":                  "no",
		"databases":                  strconv.Itoa(v.databases()),
		"dbfilename":                 "",
		"dir":                        v.store.Stats().Dir,
		"hz":                         "10",
		"io-threads":                 "1",
		"latency-monitor-threshold":  "0",
		"lazyfree-lazy-user-del":     "yes",
		"loglevel":                   "notice",
		"maxclients":                 strconv.FormatInt(v.tunables.maxClients.Load(), 10),
		"maxmemory":                  "0",
		"maxmemory-clients":          strconv.FormatInt(v.tunables.clientMemory.Load(), 10),
		"maxmemory-policy":           "noeviction",
		"maxmemory-samples":          "5",
		"min-replicas-to-write":      "0",
		"notify-keyspace-events":     notifyFlags(v.notifier.flags.Load()).String(),
		"port":                       port,
		"proto-max-bulk-len":         strconv.Itoa(o.Limits.Bulk),
		"protected-mode":             "yes",
		"rdbcompression":             "no",
		"replica-read-only":          "yes",
		"replicaof":                  "",
		"requirepass":                "",
		"save":                       "",
		"slave-read-only":            "yes",
		"slowlog-log-slower-than":    strconv.FormatInt(v.tunables.slowerThan.Load(), 10),
		"slowlog-max-len":            strconv.FormatInt(v.tunables.slowMaxLen.Load(), 10),
		"tcp-keepalive":              strconv.Itoa(int(keepAlive.Seconds())),
		"timeout":                    strconv.Itoa(int(time.Duration(v.tunables.idleTimeout.Load()).Seconds())),
		"tls-port":                   "0",
		"unixsocket":                 "",
	}
	for name, value := range o.Settings {
		settings[name] = value
	}
	return settings
}

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

func configResetStat(s *Session, c *command.Call) error {
	s.server.resetStats()
	return c.OK()
}
