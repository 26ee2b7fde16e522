package slowlog

import (
	"fmt"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// Log keeps the last commands that took long, or were long: the time of their execution, without that of
// waiting for input, for other clients to push something, or for the disk to have a commit, or the bytes of a request or
// of a reply.
type Log struct {
	mu      sync.Mutex // guards the rest
	entries []Entry
	next    int64 // id of the next entry
	most    int64 // entries that are kept
}

// Add appends an entry, whose id and time it sets, and drops the oldest ones above the limit.
func (l *Log) Add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id, e.at = l.next, time.Now()
	l.entries = append(l.entries, e)
	l.next++
	l.trimLocked()
}

// Limit sets how many entries are kept, and drops the oldest ones above that.
func (l *Log) Limit(most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
	l.trimLocked()
}

// Usage returns the number of entries, the time that the newest took, and the id that the next one gets.
func (l *Log) Usage() (length int, last time.Duration, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if length = len(l.entries); length > 0 {
		last = l.entries[length-1].Took
	}
	return length, last, l.next
}

// Entry is one command that took long, or was long.
type Entry struct {
	Took       time.Duration
	Bytes      int      // of the request or of the reply, in a log of those
	Args       []string // as the function Args shows them
	From, Name string   // address and name of the client

	id int64
	at time.Time
}

// Bounds of what an entry repeats of a command, as in Redis.
const (
	slowArgs     = 32
	slowArgBytes = 128
)

// Args is what an entry keeps of the arguments; more says how many commands came with this
// one.
func Args(args [][]byte, more int) []string {
	kept := make([]string, 0, min(len(args), slowArgs)+1)
	for i, arg := range args {
		if i == slowArgs-1 && len(args) > slowArgs {
			kept = append(kept, fmt.Sprintf("... (%d more arguments)", len(args)-i))
			break
		}
		if len(arg) > slowArgBytes {
			kept = append(kept, fmt.Sprintf("%s... (%d more bytes)", arg[:slowArgBytes], len(arg)-slowArgBytes))
		} else {
			kept = append(kept, string(arg))
		}
	}
	if more > 0 {
		kept = append(kept, fmt.Sprintf("... (%d more commands of a pipeline)", more))
	}
	return kept
}

// amount is what an entry is kept for, in microseconds or in bytes.
func (e *Entry) amount() int64 {
	if e.Bytes > 0 {
		return int64(e.Bytes)
	}
	return e.Took.Microseconds()
}

// trimLocked drops the oldest entries. They are cleared, so that the array behind the slice does not keep their
// arguments alive.
func (l *Log) trimLocked() {
	if n := len(l.entries) - int(min(l.most, 1<<30)); n > 0 {
		clear(l.entries[:n])
		l.entries = l.entries[n:]
	}
}

// Get is SLOWLOG GET: the newest ten, or as many as the count says.
func (l *Log) Get(c *command.Call) error {
	if len(c.Args) > 3 {
		return command.ErrUnknownOrArity(c)
	}
	count := int64(10)
	if len(c.Args) == 3 {
		var err error
		if count, err = parseCount(c); err != nil {
			return err
		}
	}
	return l.reply(c, count)
}

// parseCount reads how many entries are asked for.
func parseCount(c *command.Call) (int64, error) {
	count, ok := number.ParseInt(c.Arg(2))
	if !ok || count < -1 {
		return 0, command.Error("ERR count should be greater than or equal to -1")
	}
	return count, nil
}

// reply replies with so many of the newest entries, -1 being all. The count may exceed the log. The mutex is held while
// the reply is written into memory, not while it is sent.
func (l *Log) reply(c *command.Call, count int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.entries)
	if count >= 0 {
		n = int(min(int64(n), count))
	}
	c.Out.Array(n)
	for i := range n {
		e := &l.entries[len(l.entries)-1-i]
		c.Out.Array(6)
		c.Out.Int(e.id)
		c.Out.Int(e.at.Unix())
		c.Out.Int(e.amount())
		c.Names(e.Args)
		c.Out.BulkString(e.From)
		c.Out.BulkString(e.Name)
	}
	return nil
}

// Reset forgets the entries: SLOWLOG RESET.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
