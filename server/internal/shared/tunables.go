package shared

import (
	"sync/atomic"
	"time"
)

// tunables are settings that can change while the server runs.
type tunables struct {
	MaxClients   atomic.Int64
	IdleTimeout  atomic.Int64 // nanoseconds; 0: never
	KeepAlive    atomic.Int64 // seconds; 0: no probes
	ClientMemory atomic.Int64 // bytes; 0: no limit
	MaxMemory    atomic.Int64 // bytes; 0: no limit
	slowerThan   atomic.Int64 // microseconds that make a command slow; negative: none is
	largeRequest atomic.Int64 // bytes of arguments that make a request large; negative: none is
	largeReply   atomic.Int64 // bytes that make a reply large; negative: none is
	SpikeMs      atomic.Int64 // milliseconds that make an execution a spike of LATENCY; 0: none is
	BusyMs       atomic.Int64 // milliseconds after which a script makes others BUSY; 0: never

	outputHard, outputSoft, outputSeconds atomic.Int64 // of replies that wait for a client, as those for messages

	ACLLogMaxLen atomic.Int64 // entries of ACL LOG

	ReplTimeout  atomic.Int64 // seconds after which a silent master is given up
	NoStaleData  atomic.Bool  // a replica whose link is down refuses reads
	IgnoreErrors atomic.Bool  // a replica skips what fails of its master's commands
}

// defaultKeepAlive is the time between TCP keep-alive probes, as in Redis.
const defaultKeepAlive = 300 * time.Second

// Init takes the values that the options give, and Redis's defaults for the others.
func (t *tunables) Init(clients int, idle time.Duration, clientMemory int64) {
	t.MaxClients.Store(int64(clients))
	t.IdleTimeout.Store(int64(idle))
	t.ClientMemory.Store(clientMemory)
	t.KeepAlive.Store(int64(defaultKeepAlive / time.Second))
	t.slowerThan.Store(defaultSlowerThan)
	t.largeRequest.Store(defaultLargerThan)
	t.largeReply.Store(defaultLargerThan)
	t.BusyMs.Store(defaultBusyMs)
	t.ACLLogMaxLen.Store(defaultACLLogMax)
	t.ReplTimeout.Store(defaultReplTimeout)
}

// The settings of SLOWLOG and COMMANDLOG are those of Redis and Valkey until CONFIG SET changes them.
const (
	defaultSlowerThan = 10_000 // microseconds
	defaultSlowMax    = 128
	defaultLargerThan = 1 << 20 // bytes
	defaultACLLogMax  = 128
	defaultBusyMs     = 5000

	defaultReplTimeout = 60 // seconds
)
