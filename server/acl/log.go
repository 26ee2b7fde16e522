package acl

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Context is where a request was refused.
type Context string

// The contexts that exist here.
const (
	TopLevel Context = "toplevel"
	InMulti  Context = "multi"
	InScript Context = "lua"
)

// Entry is one line of ACL LOG: what was refused, how often within a minute.
type Entry struct {
	ID               int64
	Count            int
	Verdict          Verdict
	Context          Context
	Object, Username string
	Client           string // the line of CLIENT LIST
	Created, Updated time.Time
}

// Reason is the verdict's word.
func (e *Entry) Reason() string {
	return map[Verdict]string{DeniedCommand: "command", DeniedKey: "key", DeniedAuth: "auth", DeniedChannel: "channel"}[e.Verdict]
}

const (
	sameFor     = time.Minute // refusals that differ in time only are one entry
	comparedNew = 10          // of the newest entries a refusal is compared with
	objectBytes = 1024        // of an object are kept, and of a user's name
	clientBytes = 4096        // of a client's line
)

// Log keeps what was refused, the newest first.
type Log struct {
	mu      sync.Mutex // guards the rest
	entries []Entry
	nextID  int64
}

// Add notes a refusal. No more than most entries are kept.
func (l *Log) Add(e Entry, most int) {
	e.Object, e.Username, e.Client = cut(e.Object, objectBytes), cut(e.Username, objectBytes), cut(e.Client, clientBytes)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.entries[:min(len(l.entries), comparedNew)] {
		old := l.entries[i]
		if old.Verdict == e.Verdict && old.Context == e.Context && old.Object == e.Object && old.Username == e.Username && e.Updated.Sub(old.Updated) <= sameFor {
			old.Count++
			old.Updated, old.Client = e.Updated, e.Client
			copy(l.entries[1:i+1], l.entries[:i])
			l.entries[0] = old
			return
		}
	}
	e.ID, e.Count, e.Created = l.nextID, 1, e.Updated
	l.nextID++
	l.entries = slices.Insert(l.entries, 0, e)
	if len(l.entries) > most {
		clear(l.entries[most:])
		l.entries = l.entries[:most]
	}
}

// cut is the beginning of a text, as a copy: a part of it would keep the whole in memory.
func cut(text string, most int) string {
	if len(text) > most {
		text = strings.Clone(text[:most])
	}
	return text
}

// Entries returns the newest, at most so many.
func (l *Log) Entries(most int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Entry(nil), l.entries[:min(most, len(l.entries))]...)
}

// Reset forgets all entries.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
