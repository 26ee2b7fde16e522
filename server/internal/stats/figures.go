package stats

import (
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/slowlog"
	"github.com/stavedb/stave/server/internal/tracking"
)

// Figures are what INFO and /metrics show of a server.
type Figures struct {
	Counters *Counters
	Table    []*command.Command // with their subcommands
	Store    db.Stats
	Follow   db.FollowState
	Replica  []any // the fields of INFO of a replica, names and values in turn; nil for a master
	Group    []any // the same of a member of a group; nil for others
	Link     *Link // of a replica; nil for a master
	SlowLog  *slowlog.Log
	Spikes   *latency.Spikes
	Tracking tracking.Usage

	Replication                                           replication.Figures
	Failover                                              string // how far one is
	Orphans                                               int    // files of commits that a new master did not have; -1: not known
	FullSyncs, PartialSyncs, PartialRefused, ReplicaBytes int64

	RedisVersion, Version, RunID string
	Mode                         string // standalone or cluster
	Started                      time.Time
	CertificateEnds              time.Time // zero without TLS
	Port                         string
	ConfigFile                   string
	Multiplexing                 string // what waits for connections to be ready
	Hz                           string
	Percentiles                  string // those that INFO shows of the time that commands take, separated by blanks

	Clients                       int // connections
	WaitedKeys, WaitedMissing     int // keys that clients wait for, and those of them whose end they wait for, too
	MaxClients                    int64
	InputPeak, OutputPeak         int64  // bytes of the largest buffers of clients in the last seconds
	Channels, Patterns, Shards    int    // that somebody listens to
	MaxDisk                       int64  // the setting
	MaxMemory, CountedMemory      int64  // the limit, and what is compared with it
	Policy                        string // what is evicted then
	Scripts, Functions, Libraries int
	ScriptBytes, LibraryBytes     int
}

// eachCommand calls fn for each command and subcommand, with its counts.
func (f *Figures) eachCommand(fn func(name string, counts *Command)) {
	for _, cmd := range f.Table {
		for _, one := range append([]*command.Command{cmd}, cmd.Subcommands...) {
			fn(one.Name, &f.Counters.Commands[one.Index])
		}
	}
}

// oneIf is how both texts show whether something is so.
func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}
