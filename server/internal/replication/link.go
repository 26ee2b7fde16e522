package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/resp"
)

// Bounds of what becomes one commit: so many commands, or bytes of them, or what has arrived. A transaction of the master
// is never divided.
const (
	maxCommands = 64
	maxBytes    = 64 << 10
)

// Other bounds, in bytes.
const (
	maxLine        = 4 << 10   // of a reply of the master
	maxArgument    = 512 << 20 // the longest string of a Redis server
	maxTransaction = 1 << 30   // of the master, as it was received
)

// Buffers of more than that are released when they have been used.
const (
	keepBytes    = 1 << 20 // of the stream
	keepCommands = 1 << 10
)

// Options are what a link says of its replica.
type Options struct {
	User, Password string // for the master; without a password it does not authenticate
	Address        string // that the master shows; "" for that of the connection
	ListeningPort  string // that it shows; "" for none
	Origin         Origin // where the replica stands, if Known; then the master is asked where the two parted, too: see History
	Known          bool
	TakeOver       bool   // the master is a replica of this server's, and is to become the master first
	Group          string // what the replica says of itself as a member of a group; "" if it is none
}

// Replica is what a link does to its replica. An error ends the link.
type Replica struct {
	// Apply executes commands in one commit, which also notes the position after them. received are the bytes that they came
	// in, in order and without a gap, for those who replicate from this replica; there may be no commands in them, and then
	// there is nothing to be committed. All arguments are valid until it returns.
	Apply func(commands []Command, received []byte, after Origin) error
	// Load replaces everything by the RDB file that r begins with, in a way that leaves the old data or the new, and notes the
	// position, with the database that the file says. Before that it calls ended with what comes after the file; an error of that
	// is its own.
	Load func(r io.Reader, at Origin, ended func(after io.Reader) error) (database int, err error)
	// Written is a number that grows with each commit of the replica, and IsOnDisk reports whether all commits up to such a
	// number are on disk. Written is nil where nothing is said of the disk.
	Written  func() uint64
	IsOnDisk func(written uint64) bool
	// Pinged is told of a ping of the primary of a group, and Applied that more has been applied: up to an offset, and as durably as
	// commits are acknowledged. They return what the primary is to be told then; "" for nothing. They are nil where the replica is no
	// member of a group.
	Pinged  func(ping string, offset int64) (ack string)
	Applied func(offset int64) (ack string)
}

// Phase is what a link does.
type Phase uint8

const (
	Introducing Phase = iota
	Loading           // Load reads the file
	Streaming
)

// Link is a replica's side of the connection to its master, as a state machine: bytes in, bytes out. It is not safe for
// concurrent use.
//
//	Feed(bytes that arrived)  until Phase is Loading: then Load reads the rest of them, and what follows
//	Output(), Sent(n)         what is to be sent
//	Tick()                    each second
//
// An error ends it. A connection that is lost, and a process that is killed, leave the replica at the Origin of its last
// commit, and the next link goes on from there: what was applied and where that ended are one commit.
type Link struct {
	options Options
	replica Replica

	phase   Phase
	step    step
	line    []byte // of a reply that has not arrived as a whole
	out     []byte
	partial bool // the master has continued from the known origin
	asked   bool // the master was asked to become one
	took    bool // and is one
	early   bool // see AskedEarly
	theirs  History
	info    int // bytes of the master's INFO that have not arrived

	at     Origin // after what has been applied
	told   int64  // the offset that the primary of a group was told last
	onDisk mark   // what is known to be on the replica's disk
	toDisk mark   // what is to be there next
	marker []byte // that ends the file; nil: it has a length
	length int64  // of the file

	parser   *resp.Parser
	arrived  int64 // the offset after all bytes that were fed
	after    int64 // the offset after the last command of the stream
	database int   // that the stream has selected after it
	pending  []Command
	kept     int    // commands of pending whose arguments are copies
	size     int    // of pending, in bytes
	inMulti  bool   // within the master's MULTI
	raw      []byte // of the stream, as far as it was not applied when the last of it arrived
	passed   int    // bytes of raw that have been applied since

	mostTransaction int // maxTransaction; tests have less
}

// mark is a position, and what the replica had written when it had applied what is before it.
type mark struct {
	offset  int64
	written uint64
}

// step is the reply that a link waits for.
type step uint8

const (
	stepPing step = iota
	stepAuth
	stepPort
	stepAddress
	stepCapabilities
	stepVersion
	stepGroup
	stepHistory
	stepPSYNC
	stepFile
)

// NewLink returns a link that has something to send.
func NewLink(o Options, r Replica) *Link {
	l := &Link{options: o, replica: r, at: o.Origin, mostTransaction: maxTransaction}
	if !o.Known {
		l.at.Offset = -1
	}
	l.send("PING")
	return l
}

// Phase is what the link does.
func (l *Link) Phase() Phase { return l.phase }

// IsPartial reports whether the master has continued from the origin.
func (l *Link) IsPartial() bool { return l.partial }

// TookOver reports whether the master has become one, as it was asked to.
func (l *Link) TookOver() bool { return l.took }

// Position is where the replica stands.
func (l *Link) Position() Origin { return l.at }

// Output is what is to be sent; Sent drops what has been.
func (l *Link) Output() []byte { return l.out }

// Sent drops output.
func (l *Link) Sent(n int) { l.out = l.out[:copy(l.out, l.out[n:])] }

// Tick acknowledges what has been applied, as a replica does each second.
func (l *Link) Tick() {
	if l.phase == Streaming {
		l.acknowledge()
	}
}

// acknowledge says what has been applied, and nothing that has only arrived, and how much of it is on disk. Masters before
// Redis 7.2 do not read the latter.
func (l *Link) acknowledge() {
	words := []string{"REPLCONF", "ACK", strconv.FormatInt(l.at.Offset, 10)}
	if l.replica.Written != nil {
		if l.noteDisk(); l.onDisk.written > 0 {
			words = append(words, "FACK", strconv.FormatInt(l.onDisk.offset, 10))
		}
	}
	l.send(words...)
}

// noteDisk notes how much of what has been applied is on disk. Of commits that are not, it keeps one moment until they are:
// what comes after it waits for the next one.
func (l *Link) noteDisk() {
	if l.toDisk.written > 0 && l.replica.IsOnDisk(l.toDisk.written) {
		l.onDisk, l.toDisk = l.toDisk, mark{}
	}
	if now := (mark{l.at.Offset, l.replica.Written()}); l.replica.IsOnDisk(now.written) {
		l.onDisk, l.toDisk = now, mark{}
	} else if l.toDisk.written == 0 {
		l.toDisk = now
	}
}

// send sends a command.
func (l *Link) send(words ...string) {
	l.out = fmt.Appendf(l.out, "*%d\r\n", len(words))
	for _, word := range words {
		l.out = fmt.Appendf(l.out, "$%d\r\n%s\r\n", len(word), word)
	}
}

// Feed takes bytes that arrived. Of those that come after the beginning of a file it returns the rest, which Load reads
// first.
func (l *Link) Feed(in []byte) (rest []byte, err error) {
	for len(in) > 0 && l.phase == Introducing {
		end := bytes.IndexByte(in, '\n')
		if end < 0 {
			l.line = append(l.line, in...)
			if len(l.line) > maxLine {
				return nil, errors.New("the master's reply has no end")
			}
			return nil, nil
		}
		line := append(l.line, in[:end]...)
		l.line, in = nil, in[end+1:]
		if len(line) > maxLine {
			return nil, errors.New("the master's reply has no end")
		}
		if l.info > 0 {
			l.takeInfo(string(line))
		} else if err := l.reply(strings.TrimSuffix(string(line), "\r")); err != nil {
			return nil, err
		}
	}
	switch {
	case l.phase == Loading:
		return in, nil
	case len(in) > 0:
		return nil, l.stream(in)
	}
	return nil, nil
}

// reply takes one line of the master before the stream. An empty one says that it is alive.
func (l *Link) reply(line string) error {
	if line == "" {
		return nil
	}
	switch l.step {
	case stepPing:
		if line[0] == '-' && !strings.HasPrefix(line, "-NOAUTH") && !strings.HasPrefix(line, "-NOPERM") && !strings.HasPrefix(line, "-ERR operation not permitted") {
			return refused("PING", line)
		}
		l.authenticate()
	case stepAuth:
		if line[0] == '-' {
			line, _, _ = strings.Cut(line, ", with args") // with the password, where AUTH is unknown
			return refused("AUTH", line)
		}
		l.introduce()
	case stepPort:
		if line[0] == '-' {
			return refused("REPLCONF", line)
		}
		if l.step = stepAddress; l.options.Address == "" {
			l.capabilities()
			return nil
		}
		l.send("REPLCONF", "ip-address", l.options.Address)
	case stepAddress:
		if line[0] == '-' {
			return refused("REPLCONF", line)
		}
		l.capabilities()
	case stepCapabilities:
		if line[0] == '-' {
			return refused("REPLCONF", line)
		}
		l.step = stepVersion
		l.send("REPLCONF", "version", firstTimed)
	case stepVersion: // which Redis refuses to know
		if l.options.Group == "" {
			l.askHistory()
			return nil
		}
		l.step = stepGroup
		l.send("REPLCONF", "group", l.options.Group)
	case stepGroup:
		if line[0] == '-' {
			return refused("REPLCONF", line)
		}
		l.askHistory()
	case stepHistory:
		return l.beginInfo(line)
	case stepPSYNC:
		return l.synchronized(line)
	case stepFile:
		return l.file(line)
	}
	return nil
}

// refused is the error of a command that the master refuses.
func refused(command, line string) error {
	text := strings.TrimPrefix(line, "-")
	switch {
	case strings.HasPrefix(line, "-NOAUTH"), strings.HasPrefix(line, "-WRONGPASS"):
		text += " (set masterauth, and masteruser if the master has users)"
	case strings.HasPrefix(line, "-NOPERM"):
		text += " (its user needs +psync +replconf +ping)"
	case strings.HasPrefix(line, "-ERR unknown command") && command == "PSYNC":
		text += " (it is not a Redis server of 2.8 or later)"
	}
	return fmt.Errorf("the master refused %s: %s", command, text)
}

// authenticate sends the password, if there is one.
func (l *Link) authenticate() {
	l.step = stepAuth
	switch {
	case l.options.Password == "":
		l.introduce()
	case l.options.User == "":
		l.send("AUTH", l.options.Password)
	default:
		l.send("AUTH", l.options.User, l.options.Password)
	}
}

// introduce says where the replica listens.
func (l *Link) introduce() {
	l.step = stepPort
	port := l.options.ListeningPort
	if port == "" {
		port = "0"
	}
	l.send("REPLCONF", "listening-port", port)
}

// capabilities says what the replica knows of the protocol.
func (l *Link) capabilities() {
	l.step = stepCapabilities
	l.send("REPLCONF", "capa", "eof", "capa", "psync2")
}

// synchronize asks for what comes after the origin.
func (l *Link) synchronize() {
	l.step = stepPSYNC
	switch id, next := string(l.at.ReplID[:]), strconv.FormatInt(l.at.Offset+1, 10); {
	case l.options.Known && l.options.TakeOver && !l.asked:
		l.asked = true
		l.send("PSYNC", id, next, "FAILOVER")
	case l.options.Known:
		l.send("PSYNC", id, next)
	default:
		l.send("PSYNC", "?", "-1")
	}
}

// synchronized takes the answer to PSYNC.
func (l *Link) synchronized(line string) (err error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 3 && words[0] == "+FULLRESYNC":
		l.at = Origin{}
		if l.at.ReplID, err = parseReplID(words[1]); err == nil {
			l.at.Offset, err = parseOffset(words[2])
		}
		l.theirs = l.theirs.now(words[1], l.at.Offset)
		l.step, l.early, l.took = stepFile, l.asked && !l.took, l.asked
	case len(words) >= 1 && len(words) <= 2 && words[0] == "+CONTINUE":
		if !l.options.Known {
			return errors.New("the master continued a stream that the replica has nothing of")
		}
		if len(words) == 2 {
			l.at.ReplID, err = parseReplID(words[1])
		}
		l.partial, l.took = true, l.asked
		l.begin()
	case l.asked && !l.took && strings.Contains(line, isMaster): // it was asked before, and its reply was lost
		l.took = true
		l.synchronize()
	case l.asked && !l.took && strings.HasPrefix(line, "-"):
		return &TakeOverError{Reply: strings.TrimPrefix(line, "-")}
	default:
		return refused("PSYNC", line)
	}
	return err
}

// isMaster is what a server says that is asked to become the master, and is one.
const isMaster = "PSYNC FAILOVER can't be sent to a master"

// TakeOverError is the refusal of a replica to become the master.
type TakeOverError struct{ Reply string }

func (e *TakeOverError) Error() string { return "the replica refused to become the master: " + e.Reply }

// file takes the line before the file.
func (l *Link) file(line string) error {
	text, ok := strings.CutPrefix(line, "$")
	if marker, ends := strings.CutPrefix(text, "EOF:"); ok && ends {
		if len(marker) != replIDSize {
			return fmt.Errorf("the master announced a file by %.60q", line)
		}
		l.marker = []byte(marker)
	} else {
		n, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil || n < 0 {
			return fmt.Errorf("the master announced a file by %.60q", line)
		}
		l.length = n
	}
	l.phase = Loading
	return nil
}

// begin begins with the stream.
func (l *Link) begin() {
	l.phase = Streaming
	l.parser = streamParser()
	l.arrived, l.after, l.told, l.database = l.at.Offset, l.at.Offset, l.at.Offset, l.at.Database
	l.acknowledge()
}

// tellGroup sends what a member has to say to its primary; "" is nothing.
func (l *Link) tellGroup(ack string) {
	if ack != "" {
		l.told = l.at.Offset
		l.send("REPLCONF", "GROUPACK", ack)
	}
}
