package stats

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/internal/latency"
)

// Counters are the sums that INFO shows, since the start or CONFIG RESETSTAT. All may be used by several goroutines.
type Counters struct {
	Connections  atomic.Int64 // accepted
	Rejected     atomic.Int64 // refused because of MaxClients
	Evicted      atomic.Int64 // closed because of ClientMemory
	Flooded      atomic.Int64 // closed because they did not read their messages
	Hits         atomic.Int64 // reads that found something
	Misses       atomic.Int64 // reads that found nothing
	Panics       atomic.Int64 // commands that panicked
	ErrorReplies atomic.Int64
	In, Out      atomic.Int64 // bytes from and to clients
	Reads        atomic.Int64 // read(2) calls that brought something
	Writes       atomic.Int64 // write(2) calls
	ClientBytes  atomic.Int64 // bytes of the buffers of all clients
	Blocked      atomic.Int64 // clients that wait in a command
	Aside        atomic.Int64 // times that a session has left an event loop for a command

	HandshakesFailed atomic.Int64 // of TLS

	Commands  []Command   // by command.Command.Index
	NoLatency atomic.Bool // executions are not counted by how long they take

	Saves      Saves
	peakMemory atomic.Uint64

	errorsMu sync.Mutex
	errors   map[string]int64 // error replies by code; guarded by errorsMu

	rateMu    sync.Mutex // guards the three below
	rateSince time.Time  // start of the interval that rate measures
	rateCount int64      // commands before it
	rateLast  int64      // commands a second in the interval before
}

// Init prepares the counters of so many commands.
func (c *Counters) Init(commands int) {
	c.Commands, c.errors = make([]Command, commands), make(map[string]int64)
}

// Command counts one command. The nanoseconds are those of its execution; in a batch each command has an equal share.
type Command struct {
	Calls, Nanoseconds, Rejected, Failed atomic.Int64
	Latency                              atomic.Pointer[latency.Histogram] // nil until the command is called
}

// NoteLatency counts executions that took so long each, on the average of those that were timed together.
func (c *Counters) NoteLatency(to *Command, each time.Duration, calls int64) {
	if c.NoLatency.Load() {
		return
	}
	h := to.Latency.Load()
	if h == nil { // a command that is called has one, made once
		to.Latency.CompareAndSwap(nil, new(latency.Histogram))
		if h = to.Latency.Load(); h == nil {
			return // CONFIG RESETSTAT came in between
		}
	}
	h.Note(each, calls)
}

// executed is the number of commands executed.
func (c *Counters) executed() (n int64) {
	for i := range c.Commands {
		n += c.Commands[i].Calls.Load()
	}
	return n
}

// Bounds of the codes of errors, as in Redis. A script makes up errors, and so codes.
const (
	maxErrorCodes  = 128 // that are counted apart
	errorCodeBytes = 30  // a longer first word is no code: the error counts as ERR
)

// CountError counts an error reply by its code.
func (c *Counters) CountError(text string) {
	c.ErrorReplies.Add(1)
	code := errorCode(text)
	c.errorsMu.Lock()
	defer c.errorsMu.Unlock()
	if _, known := c.errors[code]; known || len(c.errors) < maxErrorCodes {
		c.errors[code]++
	}
}

// errorCode is the code of an error reply, the first word of its text, as INFO shows it. Line ends are spaces in a reply.
func errorCode(text string) string {
	code := text[:min(len(text), errorCodeBytes+1)]
	if end := strings.IndexAny(code, " \r\n"); end >= 0 {
		code = code[:end]
	}
	if len(code) > errorCodeBytes {
		return "ERR"
	}
	return strings.Clone(fieldName(code)) // the text may be long
}

// errorCount is how often an error was replied.
type errorCount struct {
	name  string
	count int64
}

// errorCodes are the error replies by their code, sorted.
func (c *Counters) errorCodes() []errorCount {
	c.errorsMu.Lock()
	defer c.errorsMu.Unlock()
	list := make([]errorCount, 0, len(c.errors))
	for code, n := range c.errors {
		list = append(list, errorCount{code, n})
	}
	slices.SortFunc(list, func(a, b errorCount) int { return strings.Compare(a.name, b.name) })
	return list
}

// rate returns the commands executed a second, over the last interval of at least a second that
// ended with a call. The first call after a quiet time therefore shows the average of that time.
// Redis samples ten times a second; here nothing runs while no one asks.
func (c *Counters) rate() int64 {
	c.rateMu.Lock()
	defer c.rateMu.Unlock()
	now, count := time.Now(), c.executed()
	if passed := now.Sub(c.rateSince); passed >= time.Second {
		c.rateLast = int64(float64(count-c.rateCount) / passed.Seconds())
		c.rateSince, c.rateCount = now, count
	}
	return c.rateLast
}

// Reset sets the counters to zero, except those that describe the present. They are set one after the other: a command
// that runs at the same time may be counted in one and not in another.
func (c *Counters) Reset() {
	for _, n := range []*atomic.Int64{
		&c.Connections, &c.Rejected, &c.Evicted, &c.Flooded, &c.Hits, &c.Misses, &c.Panics, &c.ErrorReplies, &c.In, &c.Out, &c.Reads, &c.Writes,
	} {
		n.Store(0)
	}
	for i := range c.Commands {
		s := &c.Commands[i]
		s.Calls.Store(0)
		s.Nanoseconds.Store(0)
		s.Rejected.Store(0)
		s.Failed.Store(0)
		s.Latency.Store(nil)
	}
	c.errorsMu.Lock()
	clear(c.errors)
	c.errorsMu.Unlock()
	c.rateMu.Lock()
	c.rateSince, c.rateCount = time.Now(), 0
	c.rateMu.Unlock()
}

// Saves is what INFO and LASTSAVE report of SAVE and BGSAVE.
type Saves struct {
	At       atomic.Int64 // Unix seconds of the last one that worked; at first, of the start
	sequence atomic.Uint64
	failed   atomic.Bool  // the last one did
	took     atomic.Int64 // nanoseconds of the last one
	count    atomic.Int64
}

// Init says when the server has started, and what the log had then.
func (a *Saves) Init(at time.Time, sequence uint64) {
	a.At.Store(at.Unix())
	a.sequence.Store(sequence)
}

// Note notes a save that began at start, when the log had so much.
func (a *Saves) Note(start time.Time, sequence uint64, err error) {
	a.failed.Store(err != nil)
	if err == nil {
		a.At.Store(time.Now().Unix())
		a.sequence.Store(sequence)
		a.count.Add(1)
		a.took.Store(int64(time.Since(start)))
	}
}

// changes is how many records have been written since, which is what rdb_changes_since_last_save counts here.
func (a *Saves) changes(sequence uint64) uint64 {
	return sequence - min(a.sequence.Load(), sequence)
}
