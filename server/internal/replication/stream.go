package replication

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/gate"
)

// Sizes of the blocks of a stream, in bytes.
const (
	blockSize = 16 << 10      // of one that is filled by several commits
	ownBlock  = blockSize / 4 // a commit of more is a block by itself, and is not copied
)

// Stream is what a master sends its replicas: the commits of the store in the order of its log, and a few commands of its
// own. It has an id and counts its bytes, so that (id, offset) names a moment of the store. It keeps the last bytes, so that
// a replica that was away can go on where it was.
//
//	S1  The bytes of an id and an offset never change. An id is not used again after bytes were lost.
//	S2  A snapshot that was cut at an offset holds exactly the commits before it.
//	S3  What a commit does here is O(1), and O(replicas); nothing here waits.
//
// Its methods may be called by any goroutine, and with the log of the store locked: they use no store.
type Stream struct {
	passing sync.Mutex // held while received bytes are applied and added; taken before mu

	mu         sync.Mutex // guards all of it, and the feeders' places
	id         string
	former     string  // the id of which this stream is the continuation; "" for none
	formerEnd  int64   // up to this offset
	offset     int64   // bytes so far
	committed  int64   // offset after the newest commit
	commits    commits // as a gate knows them
	asked      int64   // offset after the newest GETACK
	database   int     // that the stream has selected; -1: a replica may know of none, or of another one
	begun      bool    // it has commits, and blocks
	generation int     // how often it has begun: blocks of an earlier time lead nowhere
	received   bool    // it is a master's, whose bytes this server passes on
	demoted    bool    // it was this server's own, and no other server has gone on with it or replaced it yet
	held       bool    // it stays where it is: see CaughtUp
	blocks     []*block
	limit      int64 // bytes of blocks that are kept
	feeders    []*Feeder
	pinged     time.Time

	Rounds Rounds

	takesMessages atomic.Bool // cheap to ask, for every message does; changed with begun, received and held
}

// block is some bytes of the stream, which are never changed: data grows within its capacity. A feeder holds the block that it
// is at, and with it all later ones; the stream holds those of the backlog.
type block struct {
	start    int64 // offset of the stream before data
	database int   // that the stream has selected there; -1: it selects one before the next commit
	data     []byte
	next     *block
}

// NewID is an id that no stream has had.
func NewID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// NewStream returns a stream that has not begun, and keeps so many bytes.
func NewStream(limit int64) *Stream {
	s := &Stream{id: NewID(), formerEnd: -1, database: -1, limit: limit}
	s.Rounds.stream = s
	return s
}

// SetLimit sets how many bytes are kept for replicas that were away.
func (s *Stream) SetLimit(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = bytes
	s.trim()
}

// Begin makes the stream keep what is written from now on.
func (s *Stream) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.offerMessages()
}

func (s *Stream) begin() {
	s.begun = true
	s.generation++
	s.blocks = []*block{{start: s.offset, database: s.database}}
}

// offerMessages lets clients' messages, and this server's own commands, be added where the stream is this server's own.
func (s *Stream) offerMessages() { s.takesMessages.Store(s.begun && !s.received && !s.held) }

// End is its inverse: what is written from now on is not in the stream, so that it has another id when it begins again.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	s.begun, s.received, s.blocks = false, false, nil
	s.offerMessages()
}

// encode is where the stream is, for resume:
//
//	version u8 | id [40]byte | offset i64 | id before it [40]byte, zeros for none | offset up to which that counts i64
func (s *Stream) encode() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := append([]byte{keptVersion}, s.id...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.offset))
	var former [replIDSize]byte
	copy(former[:], s.former)
	return binary.LittleEndian.AppendUint64(append(b, former[:]...), uint64(s.formerEnd))
}

// resume makes the stream one that was encoded. Which database that had selected is not known any more.
func (s *Stream) resume(kept []byte, from int64) bool {
	const idEnd, formerAt = 1 + replIDSize, 1 + replIDSize + 8
	if len(kept) != formerAt+replIDSize+8 || kept[0] != keptVersion {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.former, s.formerEnd = string(kept[1:idEnd]), "", -1
	if former := kept[formerAt : formerAt+replIDSize]; former[0] != 0 {
		s.former, s.formerEnd = string(former), int64(binary.LittleEndian.Uint64(kept[formerAt+replIDSize:]))
	}
	by := int64(binary.LittleEndian.Uint64(kept[idEnd:])) - from
	s.offset += by
	s.committed += by
	for _, b := range s.blocks {
		b.start += by
	}
	return true
}

const keptVersion = 2

// renew gives the stream another id, and ends all feeders.
func (s *Stream) renew() {
	s.id, s.former, s.formerEnd, s.database = NewID(), "", -1, -1
	s.endFeeders()
	if s.begun {
		s.begin()
	}
}

// endFeeders ends all of them: their replicas ask again.
func (s *Stream) endFeeders() {
	for _, f := range s.feeders {
		f.err = errBroken
		f.wake()
	}
}

// Written adds a commit. It is for serverside.Capture.
func (s *Stream) Written(c serverside.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.RESP) == 0 {
		if s.renew(); s.commits.gate != nil && s.begun {
			s.append(commandOf("PING")) // members that have all before it lack the commit
		}
		s.commits.note(&c, s.offset)
		return
	}
	if s.database != c.First {
		s.append(commandOf("SELECT", strconv.Itoa(c.First)))
	}
	s.database = c.First // where a new block begins
	s.append(c.RESP)
	s.database = c.Last
	s.committed = s.offset
	s.commits.note(&c, s.offset)
	s.trim()
	s.wake()
}

// commits is what a stream tells a gate of those in it.
type commits struct {
	next uint64     // the sequence number after the newest one in the log; 0 if this process has written none
	gate *gate.Gate // of a member of a group that has been its primary; nil for others
}

// note lets the gate know of a commit, before anybody else does: it ends in the stream at an offset.
func (n *commits) note(c *serverside.Commit, end int64) {
	if n.next = c.Next; n.gate != nil {
		n.gate.Wrote(c.Next, end, c.Slots, c.Whole)
	}
}

// send adds a command that is no commit.
func (s *Stream) send(args ...string) {
	s.append(commandOf(args...))
	s.trim()
	s.wake()
}

// Ping adds a PING if there are replicas and none was added for the period.
func (s *Stream) Ping(now time.Time, period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.takesMessages.Load() || len(s.feeders) == 0:
	case s.pinged.IsZero():
		s.pinged = now
	case now.Sub(s.pinged) >= period:
		s.pinged = now
		s.send("PING")
	}
}

// publish adds a message, which comes after all commits so far. It takes no SELECT: messages have no database.
func (s *Stream) publish(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takesMessages.Load() { // else it has ended meanwhile
		s.append(message)
		s.committed = s.offset // WAIT after it waits for it
		s.trim()
		s.wake()
	}
}

// AskForAcks makes all replicas say where they are, unless they have been asked since the newest commit.
func (s *Stream) AskForAcks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takesMessages.Load() && s.asked <= s.committed {
		s.send("REPLCONF", "GETACK", "*")
		s.asked = s.offset
	}
}

// commandOf is a command as a client sends it.
func commandOf(args ...string) []byte {
	b := strconv.AppendInt([]byte{'*'}, int64(len(args)), 10)
	for _, arg := range args {
		b = append(strconv.AppendInt(append(b, "\r\n$"...), int64(len(arg)), 10), "\r\n"...)
		b = append(b, arg...)
	}
	return append(b, "\r\n"...)
}

// append adds bytes. A large piece is not copied, so the caller does not use it again.
func (s *Stream) append(b []byte) {
	last := s.blocks[len(s.blocks)-1]
	switch {
	case len(b) > ownBlock:
		if cap(b) > 2*len(b) { // which would not count
			b = bytes.Clone(b)
		}
		s.extend(b[:len(b):len(b)])
	case cap(last.data)-len(last.data) < len(b):
		s.extend(append(make([]byte, 0, blockSize), b...))
	default:
		last.data = append(last.data, b...)
	}
	s.offset += int64(len(b))
}

// extend adds a block.
func (s *Stream) extend(data []byte) {
	next := &block{start: s.offset, database: s.database, data: data}
	s.blocks[len(s.blocks)-1].next = next
	s.blocks = append(s.blocks, next)
}

// trim forgets the oldest blocks, as long as enough is left. A commit of more than that is not kept at all: feeders that are
// there have it.
func (s *Stream) trim() {
	drop := 0
	for len(s.blocks)-drop > 1 && s.offset-s.blocks[drop+1].start >= s.limit {
		s.blocks[drop] = nil
		drop++
	}
	s.blocks = s.blocks[drop:]
	if len(s.blocks) == 1 && int64(len(s.blocks[0].data)) > s.limit+blockSize {
		s.extend(nil)
		s.blocks = s.blocks[1:]
	}
}

// wake lets the feeders go on.
func (s *Stream) wake() {
	for _, f := range s.feeders {
		f.judge(s.offset)
	}
	s.Rounds.added()
}

// find returns the block in which the byte after an offset is, or will be; nil if it is not there any more.
func (s *Stream) find(offset int64) *block {
	if !s.begun || offset > s.offset || offset < s.blocks[0].start {
		return nil
	}
	i := sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].start > offset })
	return s.blocks[i-1]
}

// reaches returns where a replica can go on that has the stream of an id up to an offset; nil if it cannot.
func (s *Stream) reaches(id string, offset int64) *block {
	if id != s.id && (s.former == "" || id != s.former || offset > s.formerEnd) {
		return nil
	}
	return s.find(offset)
}

// Position is a moment of a stream.
type Position struct {
	ID     string
	Offset int64
}

// Position is where the stream is.
func (s *Stream) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Position{ID: s.id, Offset: s.offset}
}

// Committed is how many bytes the stream had after its newest commit.
func (s *Stream) Committed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}
