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
// microseconds, and longer with many clients (recentBuffers looks at each).
func (v *Server) figures() *stats.Figures {
	f := &stats.Figures{
		Counters: &v.state.counters, Table: Commands, Store: v.state.store.Stats(), Follow: v.state.store.FollowState(),
		SlowLog: &v.state.slowLog, Spikes: &v.state.spikes, Tracking: v.state.tracked.Usage(),
		RedisVersion: RedisVersion, Version: v.options.Version, RunID: v.state.runID, Mode: v.state.modeName(), Started: v.state.started,
		ConfigFile: v.options.Config.inner.File(), Multiplexing: "go", Hz: v.options.Config.inner.Get("hz"), Percentiles: v.options.Config.inner.Get("latency-tracking-info-percentiles"),
		Clients: len(v.state.clients.listed()), MaxClients: v.state.tunables.maxClients.Load(),
		Channels: v.state.hub.Count(pubsub.Channel), Patterns: v.state.hub.Count(pubsub.Pattern), Shards: v.state.hub.Count(pubsub.Shard),
		MaxMemory: v.state.tunables.maxMemory.Load(), CountedMemory: v.state.countedMemory(time.Now()),
	}
	if v.options.Transport == TransportEventLoop {
		f.Multiplexing = "epoll"
	}
	if t := v.secure.Load(); t != nil {
		f.CertificateEnds = t.Certificate().NotAfter
	}
	_, f.Port = v.listenAddress()
	f.WaitedKeys, f.WaitedMissing = serverside.DB.WaitedKeys(v.state.store)
	f.InputPeak, f.OutputPeak = v.state.recentBuffers()
	libraries := v.scripts.Libraries.Current()
	f.Functions, f.Libraries, f.LibraryBytes = len(libraries.Functions), len(libraries.Libraries), libraries.Bytes
	f.Scripts, f.ScriptBytes = v.scripts.Cache.Usage()
	return f
}
