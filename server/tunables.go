package server

import (
	"sync/atomic"
	"time"
)

// tunables are settings that can change while the server runs.
type tunables struct {
	maxClients   atomic.Int64
	idleTimeout  atomic.Int64 // nanoseconds; 0: never
	keepAlive    atomic.Int64 // seconds; 0: no probes
	clientMemory atomic.Int64 // bytes; 0: no limit
	maxMemory    atomic.Int64 // bytes; 0: no limit
	slowerThan   atomic.Int64 // microseconds that make a command slow; negative: none is
	spikeMs      atomic.Int64 // milliseconds that make an execution a spike of LATENCY; 0: none is
	busyMs       atomic.Int64 // milliseconds after which a script makes others BUSY; 0: never

	outputHard, outputSoft, outputSeconds atomic.Int64 // of replies that wait for a client, as those for messages

	aclLogMaxLen atomic.Int64 // entries of ACL LOG
}

// defaultKeepAlive is the time between TCP keep-alive probes, as in Redis.
const defaultKeepAlive = 300 * time.Second

// init takes the values that the options give, and Redis's defaults for the others.
func (t *tunables) init(clients int, idle time.Duration, clientMemory int64) {
	t.maxClients.Store(int64(clients))
	t.idleTimeout.Store(int64(idle))
	t.clientMemory.Store(clientMemory)
	t.keepAlive.Store(int64(defaultKeepAlive / time.Second))
	t.slowerThan.Store(defaultSlowerThan)
	t.busyMs.Store(defaultBusyMs)
	t.aclLogMaxLen.Store(defaultACLLogMax)
}

// The settings of SLOWLOG are Redis's until CONFIG SET changes them.
const (
	defaultSlowerThan = 10_000 // microseconds
	defaultSlowMax    = 128
	defaultACLLogMax  = 128
	defaultBusyMs     = 5000
)
