package server

import (
	"time"

	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/stats"
)

// Info returns the text of INFO: the named sections, or those that INFO shows without a name.
// Unknown names are skipped, as in Redis. The sections have Redis's order.
func (v *Server) Info(sections ...string) string { return v.figures().Info(sections...) }

// Metrics returns all figures, as GET /metrics does.
func (v *Server) Metrics() string { return v.figures().Metrics() }

// figures are what the server knows of itself. Each is right by itself, but they are not of one moment: counters run on
// while they are read. It asks the store for its statistics and copies the list of clients, so it takes some
// microseconds, and longer with many clients (RecentBuffers looks at each).
func (v *Server) figures() *stats.Figures {
	f := &stats.Figures{
		Counters: &v.state.Counters, Table: Commands, Store: v.state.Store.Stats(), Follow: v.state.Store.FollowState(), Replica: v.state.Following.Info(time.Now()),
		SlowLog: &v.state.SlowLog, Spikes: &v.state.Spikes, Tracking: v.state.Tracked.Usage(),
		RedisVersion: RedisVersion, Version: v.options.Version, RunID: v.state.RunID, Mode: v.state.ModeName(), Started: v.state.Started,
		ConfigFile: v.options.Config.inner.File(), Multiplexing: "go", Hz: v.options.Config.inner.Get("hz"), Percentiles: v.options.Config.inner.Get("latency-tracking-info-percentiles"),
		Clients: len(v.state.Clients.Listed()), MaxClients: v.state.Tunables.MaxClients.Load(),
		Channels: v.state.Hub.Count(pubsub.Channel), Patterns: v.state.Hub.Count(pubsub.Pattern), Shards: v.state.Hub.Count(pubsub.Shard),
		MaxMemory: v.state.Tunables.MaxMemory.Load(), CountedMemory: v.state.CountedMemory(time.Now()),
	}
	f.MaxDisk = v.state.Store.Evict().Disk
	if f.Policy = string(v.state.Store.Evict().Policy); v.state.Evicts() {
		f.CountedMemory = f.Store.EntryBytes
	}
	if v.member != nil {
		f.Group = v.member.Info()
	}
	replicas := v.state.Replicas
	f.Replication = replicas.Stream.Figures(time.Now())
	of := v.state.Following.Status()
	f.Link = of.Figures(time.Now())
	f.Failover = v.state.Failover.Phase().String()
	f.FullSyncs, f.PartialSyncs = replicas.FullSyncs.Load(), replicas.PartialSyncs.Load()
	f.PartialRefused, f.ReplicaBytes = replicas.PartialRefused.Load(), replicas.Sent.Load()
	f.Orphans = v.orphans.Count(time.Now(), func() ([]string, error) { return serverside.DB.Orphans(v.state.Store) })
	if v.options.Transport == TransportEventLoop {
		f.Multiplexing = "epoll"
	}
	if t := v.secure.Load(); t != nil {
		f.CertificateEnds = t.Certificate().NotAfter
	}
	_, f.Port = v.listenAddress()
	f.WaitedKeys, f.WaitedMissing = serverside.DB.WaitedKeys(v.state.Store)
	f.InputPeak, f.OutputPeak = v.state.RecentBuffers()
	libraries := v.scripts.Libraries.Current()
	f.Functions, f.Libraries, f.LibraryBytes = len(libraries.Functions), len(libraries.Libraries), libraries.Bytes
	f.Scripts, f.ScriptBytes = v.scripts.Cache.Usage()
	return f
}
