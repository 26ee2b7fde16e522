package system

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/keydir"
)

// ClockName is the name of the record of the latest deadline that has been shown to have passed, Unix ms in ClockSize
// bytes.
const (
	ClockName = "clock"
	ClockSize = 8
)

// Record is the newest record of a name.
type Record struct {
	Value []byte // empty: deleted, and the record hides older ones
	Seq   uint64
	Loc   keydir.Loc
}

// Records owns the system records.
type Records struct {
	// Writing is held by a transaction from its first PutSystem to its End, so
	// that records become known in the order of their sequences. It is taken
	// with stripes held; under it no more are.
	Writing sync.Mutex
	Mu      sync.Mutex // guards names; innermost
	Names   Names

	Changes atomic.Uint64 // how often a part of a library was put; raised under Mu, after the change
}

// Put notes a record, unless a newer one is known. It returns the location that
// has become dead.
func (sr *Records) Put(name string, r Record) (dead keydir.Loc, ok bool) {
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	old := sr.Names[name]
	if r.Seq < old.Seq {
		return 0, false
	}
	sr.Names[name] = r
	if strings.HasPrefix(name, LibraryPrefix) {
		sr.Changes.Add(1)
	}
	return old.Loc, true
}

// Get is the newest record of a name.
func (sr *Records) Get(name string) (Record, bool) {
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	r, ok := sr.Names[name]
	return r, ok
}

// Move changes the location of a record, if it is the old one.
func (sr *Records) Move(name string, old, loc keydir.Loc) bool {
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	r := sr.Names[name]
	if r.Loc != old {
		return false
	}
	r.Loc = loc
	sr.Names[name] = r
	return true
}

// ForgetDeleted forgets the deletions whose records are where they say, and returns their locations.
func (sr *Records) ForgetDeleted(in func(keydir.Loc) bool) (list []keydir.Loc) {
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	for name, r := range sr.Names {
		if len(r.Value) == 0 && in(r.Loc) {
			delete(sr.Names, name)
			list = append(list, r.Loc)
		}
	}
	return list
}

// Copy is all records that are there, at one moment. Their values are not changed by anyone.
func (sr *Records) Copy() Names {
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	return maps.Clone(sr.Names).There()
}

// Dump is all records, of which none that is in the log is missing.
func (sr *Records) Dump() Names {
	sr.Writing.Lock()
	defer sr.Writing.Unlock()
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	return maps.Clone(sr.Names)
}

// Keep reports whether a merge copies the record at loc: it is the newest of its name, and if it is
// a deletion, a segment outside the merge may hold something older. outside is the lowest sequence
// of those (I6).
func (sr *Records) Keep(name string, loc keydir.Loc, seq, outside uint64, empty bool) bool {
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	r, ok := sr.Names[name]
	switch {
	case ok && r.Loc != loc && r.Seq >= seq:
		return false // another one, or another copy of this one
	case !empty:
		return ok && r.Loc == loc
	case seq < outside:
		delete(sr.Names, name)
		return false
	}
	sr.Names[name] = Record{Seq: seq, Loc: loc}
	return true
}

func (sr *Records) Init() { sr.Names = Names{} }

// Names is the newest record of each name.
type Names map[string]Record

// There returns the names without deleted ones.
func (n Names) There() Names {
	maps.DeleteFunc(n, func(_ string, r Record) bool { return len(r.Value) == 0 })
	return n
}

// SameRecord reports whether two stores know the same of a name.
func SameRecord(a, b Record) bool {
	return a.Seq == b.Seq && a.Loc == b.Loc && string(a.Value) == string(b.Value)
}
