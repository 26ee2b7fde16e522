package replication

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/resp"
)

// Peer is what a replica says of itself before it asks for the stream.
type Peer struct {
	Port    int         // that it listens on; 0: it has not said
	Address string      // that others reach it by, if that is not the one of its connection
	EOF     bool        // it takes a file whose end is a mark
	PSYNC2  bool        // it takes another id with CONTINUE
	Valkey  int         // its version as ParseVersion has it; 0: it has not said, as Redis never does
	RDBOnly bool        // it wants the file, and no stream
	Member  *Membership // in the group of this server; nil: it is no member
}

// Membership is what a replica is in the group of the primary that it follows.
type Membership struct {
	group.Member
	Term    uint64 // of the primary
	Address string // where others reach the member
}

// Ask is what a replica asks for.
type Ask struct {
	Peer
	Remote string // of its connection
	ReplID string // that it knows; "?" for none
	Next   int64  // number of the first byte that it lacks, from 1
	SYNC   bool   // by the old command, to which nothing is replied, and after which nothing need be acknowledged: redis-cli --replica
}

// Limits bound what the master keeps for a replica. A zero is none.
type Limits struct {
	Hard, Soft int64         // bytes that wait for it
	SoftFor    time.Duration // that it may be above Soft
	Silence    time.Duration // that it may say nothing
}

// Errors of a feeder. Its connection is to be closed.
var (
	ErrOverLimit = errors.New("the replica does not take the stream: more waits for it than client-output-buffer-limit allows")
	ErrSilent    = errors.New("the replica has said nothing for repl-timeout")
	errLeft      = errors.New("the replica has left")
	errBroken    = errors.New("the stream began anew, or has another id: the replica is to ask again")
)

// phase is how far a replica has got.
type phase uint8

const (
	wanting phase = iota // it needs a file, for which there is no snapshot yet
	cut                  // there is one; the file begins soon
	filing               // the file is being sent
	loading              // it has the file: with its first ACK it says that it has loaded it
	online               // it gets the stream
)

// state is the phase as INFO and ROLE name it.
func (p phase) state() string {
	switch p {
	case wanting, cut:
		return "wait_bgsave"
	case filing:
		return "send_bulk"
	}
	return "online"
}

// keepalive is how often a replica that waits for its file gets a newline.
const keepalive = time.Second

// Feeder gives one replica the stream: bytes in, bytes out. It knows no socket, and is told the time. Whoever drives it calls
// In with what the replica sends, sends what Out returns, and waits for More in between; Check, now and then. If WantsFile
// says so, it takes a snapshot, calling Cut at its moment, and sends it between BeginFile and EndFile.
//
// Its methods may be called by several goroutines: one that reads, one that writes.
type Feeder struct {
	stream *Stream
	ask    Ask
	mark   string // the end of its file
	more   chan struct{}
	over   func() // is called when more than the limit waits; with the log locked
	limits func() Limits

	// Guarded by stream.mu.
	phase     phase
	out       []byte // what is sent before all else
	at        *block // where it is in the stream; nil before the cut
	used      int    // bytes of at that it has been given
	database  int    // that the stream has selected where its file ends; -1: it will select one
	err       error
	parser    *resp.Parser
	acked     int64     // offset that it has acknowledged
	onDisk    int64     // offset up to which all is on its disk, as it says; -1: it has not said
	heard     time.Time // when it last sent something
	groupAck  string    // the newest that it says as a member of a group; "" for none
	kept      time.Time // when the last newline was sent to it
	aboveSoft time.Time // since when more waits for it than Limits.Soft
}

// Attach adds a replica. One that can go on where it was does; another one wants a file.
func (s *Stream) Attach(ask Ask, limits func() Limits, over func(), now time.Time) (f *Feeder, isPartial bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = &Feeder{
		stream: s, ask: ask, mark: NewID(), more: make(chan struct{}, 1), over: over, limits: limits, onDisk: -1, heard: now, kept: now,
		parser: resp.NewParser(resp.Limits{Bulk: 1 << 10}),
	}
	if at := s.reaches(ask.ReplID, ask.Next-1); at != nil && !ask.SYNC {
		f.phase, f.at, f.used = online, at, int(ask.Next-1-at.start)
		f.out = []byte("+CONTINUE\r\n")
		if ask.PSYNC2 {
			f.out = []byte("+CONTINUE " + s.id + "\r\n")
		}
		f.acked = ask.Next - 1
		s.forgetDatabase()
	}
	s.feeders = append(s.feeders, f)
	return f, f.phase == online
}

// Detach removes a replica. Its place goes with it: a block keeps all that are after it, and somebody may still hold the feeder.
func (s *Stream) Detach(f *Feeder) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.feeders {
		if other == f {
			s.feeders = append(s.feeders[:i:i], s.feeders[i+1:]...)
			break
		}
	}
	f.at, f.out = nil, nil
	f.err = cmp.Or(f.err, errLeft)
	return len(s.feeders)
}

// More is readable when Out may have something.
func (f *Feeder) More() <-chan struct{} { return f.more }

func (f *Feeder) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// waits is how many bytes of the stream wait for it.
func (f *Feeder) waits(offset int64) int64 {
	if f.at == nil {
		return 0
	}
	return offset - f.at.start - int64(f.used)
}

// judge ends a replica for which too much waits. It is called with the log locked.
func (f *Feeder) judge(offset int64) {
	n := f.waits(offset)
	limits := f.limits()
	switch {
	case f.err != nil:
	case limits.Hard > 0 && n > limits.Hard:
		f.err = ErrOverLimit
		f.over()
	case limits.Soft == 0 || n <= limits.Soft:
		f.aboveSoft = time.Time{}
	}
}

// Check returns why the replica is to be given up; nil if it is not. It is to be called about once a second.
func (f *Feeder) Check(now time.Time) error {
	s := f.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	limits := f.limits()
	above := limits.Soft > 0 && f.waits(s.offset) > limits.Soft
	switch {
	case f.phase >= loading && limits.Silence > 0 && now.Sub(f.heard) > limits.Silence && !f.ask.SYNC:
		f.err = ErrSilent
	case !above:
		f.aboveSoft = time.Time{}
	case f.aboveSoft.IsZero():
		f.aboveSoft = now
	case now.Sub(f.aboveSoft) >= limits.SoftFor:
		f.err = ErrOverLimit
	}
	return f.err
}

// WantsFile reports whether a snapshot is to be taken for it.
func (f *Feeder) WantsFile() bool {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	return f.phase == wanting
}

// Cut is called at the moment of its snapshot, with the log locked. The commits after it follow the file, and none before. The
// database is forgotten, for the replica begins with none.
func (f *Feeder) Cut() {
	s := f.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		f.err = errBroken
		return
	}
	s.forgetDatabase()
	last := s.blocks[len(s.blocks)-1]
	f.begin(&cutPoint{id: s.id, offset: s.offset, at: last, used: len(last.data), database: s.database})
}

// begin makes a moment the one of its snapshot.
func (f *Feeder) begin(p *cutPoint) {
	f.phase, f.at, f.used, f.acked, f.database = cut, p.at, p.used, p.offset, p.database
	if !f.ask.SYNC {
		f.out = fmt.Appendf(f.out, "+FULLRESYNC %s %d\r\n", p.id, p.offset)
	}
	f.wake()
}

// forgetDatabase lets the next commit be after a SELECT, for who cannot know the database. What is received is passed on as it
// is: a file says which database is selected, and who goes on knows it.
func (s *Stream) forgetDatabase() {
	if !s.received {
		s.database = -1
	}
}

// streamDatabase is the name of the record of a file that says which database the stream has selected where it goes on.
const streamDatabase = "repl-stream-db"

// aux are the records of its file about the stream.
func (f *Feeder) aux() map[string]string {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	if f.database < 0 {
		return nil
	}
	return map[string]string{streamDatabase: strconv.Itoa(f.database)}
}

// BeginFile and EndFile surround the file. What they add to the output is sent before what follows.
func (f *Feeder) BeginFile() {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	f.phase, f.out = filing, append(f.out, "$EOF:"+f.mark+"\r\n"...)
}

// EndFile ends it at a moment.
func (f *Feeder) EndFile(now time.Time) {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	f.phase, f.heard, f.out = loading, now, append(f.out, f.mark...)
}

// Out returns what is to be sent next, none if there is nothing at present. The bytes stay valid.
func (f *Feeder) Out(now time.Time) (out []byte, err error) {
	s := f.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if (f.phase == wanting || f.phase == cut) && now.Sub(f.kept) >= keepalive {
		f.kept, f.out = now, append(f.out, '\n')
	}
	if out = f.out; len(out) > 0 || f.phase != online {
		f.out = nil
		return out, nil
	}
	for f.used == len(f.at.data) && f.at.next != nil {
		f.at, f.used = f.at.next, 0
	}
	out = f.at.data[f.used:len(f.at.data):len(f.at.data)]
	f.used = len(f.at.data)
	return out, nil
}

// HasAll reports whether a replica that gets the stream has acknowledged all of it, or was given it where it acknowledges
// nothing; also true of others.
func (f *Feeder) HasAll() bool {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	return f.phase != online || f.acked >= f.stream.offset || f.ask.SYNC && f.waits(f.stream.offset) == 0
}

// In takes bytes that the replica sends, in any split: its acknowledgements, REPLCONF ACK with the offset that it has applied,
// and since Redis 7.2 FACK with the one that is on its disk. It reports whether it has acknowledged more.
func (f *Feeder) In(in []byte, now time.Time) (acknowledged bool, err error) {
	s := f.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(in) > 0 {
		f.heard = now
	}
	f.parser.Feed(in)
	for {
		args, err := f.parser.Next()
		if err != nil {
			f.err = fmt.Errorf("the replica: %w", err)
			return acknowledged, f.err
		}
		if args == nil {
			return acknowledged, nil
		}
		if len(args) < 3 || !isWord(args[0], "replconf") || !isWord(args[1], "ack") {
			if len(args) == 3 && isWord(args[0], "replconf") && isWord(args[1], "groupack") && f.phase == online {
				f.groupAck = string(args[2])
			}
			continue // as in Redis, there are no replies to a replica
		}
		offset, err := strconv.ParseInt(string(args[2]), 10, 64)
		if err != nil || offset < 0 || f.phase < loading {
			continue
		}
		if f.phase == loading && !f.ask.RDBOnly {
			f.phase = online
			f.wake()
		}
		if offset = min(offset, s.offset); offset > f.acked {
			f.acked, acknowledged = offset, true
		}
		if len(args) < 5 || !isWord(args[3], "fack") {
			continue
		}
		onDisk, err := strconv.ParseInt(string(args[4]), 10, 64)
		if onDisk = min(onDisk, f.acked); err == nil && onDisk > f.onDisk {
			f.onDisk, acknowledged = onDisk, true
		}
	}
}

// takeGroupAck takes the newest thing that a member of a group has said, and how long the stream is.
func (f *Feeder) takeGroupAck() (ack string, offset int64) {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	ack, f.groupAck = f.groupAck, ""
	return ack, f.stream.offset
}

func isWord(arg []byte, lower string) bool {
	if len(arg) != len(lower) {
		return false
	}
	for i := range arg {
		if arg[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// State is what INFO and ROLE say of a replica.
type State struct {
	Address string
	Port    int
	State   string
	Offset  int64 // that it has acknowledged
	Lag     time.Duration
}

// address is where others reach the replica.
func (f *Feeder) address() string {
	if f.ask.Address != "" {
		return f.ask.Address
	}
	host, _, _ := net.SplitHostPort(f.ask.Remote)
	return host
}

func (f *Feeder) stateAt(now time.Time) State {
	return State{Address: f.address(), Port: f.ask.Port, State: f.phase.state(), Offset: f.acked, Lag: now.Sub(f.heard)}
}
