package replication

import (
	"strconv"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/orphans"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
)

// A server whose history has parted from that of its new master gets everything anew, and what it alone has would be gone. That
// is kept: the stream from where the two parted, as far as the backlog reaches. It is on the disk before anything of the master
// is loaded, so whatever is killed after that, and whatever fails, leaves it there.
//
//	S5  No byte of its stream that a server alone has is replaced before it is in a file, or is counted there as not known any
//	    more. A master that was killed has no stream.
//
// Where the two parted the master says (Link.History). If it does not, all of the backlog is kept of a server that was a
// master, and nothing of one that was a replica: its master has that.

// Orphans is what KeepOrphans has kept.
type Orphans struct {
	orphans.Header
	Name   string // of the file; "": nothing was alone
	IsNew  bool   // it was not kept before
	Parted bool   // it is known where the two parted
}

// KeepOrphans keeps what the stream of a replica has, and its master has not.
func KeepOrphans(store *db.Store, stream *Stream, theirs History, now time.Time) (o Orphans, err error) {
	a, parted := stream.alone(theirs)
	if o.Parted = parted; a == nil {
		return o, nil
	}
	if !a.look() {
		return o, nil
	}
	a.Time = now.UTC().Truncate(time.Second)
	file := orphans.Encode(&a.Header, a.database, a.parts)
	o.Header, o.Name = a.Header, a.Name()
	o.IsNew, err = serverside.DB.KeepOrphans(store, o.Name, file)
	return o, err
}

// alone is what a stream has, and another server has not.
type alone struct {
	orphans.Header
	database int      // that the stream has selected before the first of parts; until look, before before
	before   []byte   // the bytes right before From, from the beginning of their block
	parts    [][]byte // the bytes from From on
}

// alone returns what the stream has after it parted from another history; nil for nothing. The bytes are not copied: they are
// never changed.
func (s *Stream) alone(theirs History) (a *alone, parted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		return nil, false
	}
	own := History{ID: s.id, Offset: s.offset, Former: s.former, FormerEnd: s.formerEnd}
	first := s.blocks[0].start
	from, parted := own.common(theirs)
	switch {
	case !parted && !s.demoted:
		return nil, false
	case !parted:
		from = first
	}
	if parted && s.offset <= from {
		return nil, true
	}
	a = &alone{Header: orphans.Header{ReplID: s.id, From: max(from, first), To: s.offset, Before: max(first-from, 0)}}
	if !parted {
		a.Before = orphans.Unknown
	}
	at := s.find(a.From)
	within := int(a.From - at.start)
	a.database, a.before = at.database, at.data[:within]
	for b := at; b != nil; b, within = b.next, 0 {
		if within < len(b.data) {
			a.parts = append(a.parts, b.data[within:len(b.data):len(b.data)])
		}
	}
	return a, parted
}

// streamParser returns one for a stream of a server.
func streamParser() *resp.Parser { return resp.NewParser(resp.Limits{Bulk: maxArgument}) }

// look finds which database is selected at the beginning, counts the commands, and reports whether any of it matters: a PING
// does not. Bytes that cannot be understood do, and so do bytes that are gone.
func (a *alone) look() (matters bool) {
	before := eachCommand([][]byte{a.before}, func(args [][]byte) {
		if n, err := strconv.Atoi(string(args[len(args)-1])); err == nil && word(args[0], "select") {
			a.database = n
		}
	})
	all := eachCommand(a.parts, func(args [][]byte) {
		if orphans.Changes(args) {
			a.Commands++
		}
	})
	return !before || !all || a.Commands > 0 || a.Before != 0
}

// eachCommand calls do with the commands in parts of a stream, and reports whether there are only whole commands.
func eachCommand(parts [][]byte, do func(args [][]byte)) bool {
	parser := streamParser()
	for _, part := range parts {
		parser.Feed(part)
		for {
			args, err := parser.Next()
			if err != nil {
				return false
			}
			if args == nil {
				break
			}
			do(args)
		}
	}
	return !parser.Partial()
}
