package server

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stavedb/stave/server/command"
)

// An entry is made after the command has run, with copies of its arguments: the parser's memory is
// used again. A batch is measured as a whole, because its commands share locks and a commit; the
// entry shows the first and says how many more there were.

// slowLog keeps the last commands that took long: the time of their execution, without that of
// waiting for input, for other clients to push something, or for the disk to have a commit.
type slowLog struct {
	mu      sync.Mutex // guards the rest
	entries []slowEntry
	next    int64 // id of the next entry
}

// slowEntry is one command that took long.
type slowEntry struct {
	id       int64
	at       time.Time
	took     time.Duration
	args     []string
	from     string
	fromName string
}

// Bounds of what an entry repeats of a command, as in Redis.
const (
	slowArgs     = 32
	slowArgBytes = 128
)

// slowLogArgs is what an entry keeps of the arguments; more says how many commands came with this
// one.
func slowLogArgs(args [][]byte, more int) []string {
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

// redacted is what MONITOR and SLOWLOG show of the arguments. Like Redis they hide the name and the
// password of HELLO's AUTH, also of a HELLO that fails: a client may send a password to a server
// that asks for none.
func redacted(cmd *command.Command, args [][]byte) [][]byte {
	if cmd.Name != "hello" {
		return args
	}
	shown := slices.Clone(args)
	for i := 2; i+2 < len(shown); i++ {
		switch {
		case bytes.EqualFold(args[i], []byte("auth")):
			shown[i+1], shown[i+2] = []byte("(redacted)"), []byte("(redacted)")
			i += 2
		case bytes.EqualFold(args[i], []byte("setname")):
			i++ // a name may be any word
		}
	}
	return shown
}

// startTimer is the moment from which an execution counts, the zero time if executions are not
// timed.
func (v *Server) startTimer() (start time.Time) {
	if v.tunables.slowerThan.Load() >= 0 {
		start = time.Now()
	}
	return start
}

// noteSlow notes an execution that took long. more is how many commands ran with this one and
// cannot be separated from it. With the log switched off it costs one comparison, and no clock is
// read.
func (s *Session) noteSlow(start time.Time, cmd *command.Command, args [][]byte, more int) {
	if start.IsZero() || cmd.Flags&command.SkipSlowlog != 0 {
		return
	}
	v := s.server
	took, limit := time.Since(start), v.tunables.slowerThan.Load()
	if limit < 0 || took < time.Duration(limit)*time.Microsecond {
		return
	}
	l := &v.slowLog
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, slowEntry{
		id: l.next, at: time.Now(), took: took, args: slowLogArgs(redacted(cmd, args), more), from: s.client.remote, fromName: *s.client.name.Load(),
	})
	l.next++
	l.trim(int(v.tunables.slowMaxLen.Load()))
}

// trim drops the oldest entries. The mutex is held. They are cleared, so that the array behind the
// slice does not keep their arguments alive.
func (l *slowLog) trim(most int) {
	if n := len(l.entries) - most; n > 0 {
		clear(l.entries[:n])
		l.entries = l.entries[n:]
	}
}
