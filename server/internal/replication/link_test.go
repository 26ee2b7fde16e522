package replication_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stavedb/stave/server/internal/replication"
)

const (
	replid = "0123456789abcdef0123456789abcdef01234567"
	marker = "76543210fedcba9876543210fedcba9876543210"
)

// recorder is a replica that notes what is done to it.
type recorder struct {
	did      []string
	received []byte
	at       replication.Origin
	fail     error
	database int // that the file says
}

func (r *recorder) replica() replication.Replica {
	return replication.Replica{
		Apply: func(commands []replication.Command, received []byte, after replication.Origin) error {
			if r.fail != nil {
				return r.fail
			}
			r.received = append(r.received, received...)
			if len(commands) == 0 {
				return nil
			}
			for _, c := range commands {
				r.did = append(r.did, fmt.Sprintf("%d:%s", c.Database, bytes.Join(c.Args, []byte(" "))))
			}
			r.did, r.at = append(r.did, fmt.Sprintf("commit %d/%d", after.Offset, after.Database)), after
			return nil
		},
		Load: func(in io.Reader, at replication.Origin, ended func(io.Reader) error) (int, error) {
			file := make([]byte, 4) // which this format is four bytes long
			if _, err := io.ReadFull(in, file); err != nil {
				return 0, err
			}
			if err := ended(in); err != nil {
				return 0, err
			}
			r.did, r.at = append(r.did, fmt.Sprintf("load %s %d", file, at.Offset)), at
			return r.database, nil
		},
	}
}

func command(words ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

// drive feeds a link in pieces of n bytes, and Load with what comes after a piece, byte by byte where slow is set.
func drive(l *replication.Link, text string, n int, slow bool) error {
	for fed := 0; fed < len(text); {
		end := min(fed+n, len(text))
		rest, err := l.Feed([]byte(text[fed:end]))
		if err != nil {
			return err
		}
		if fed = end; l.Phase() != replication.Loading {
			continue
		}
		later := strings.NewReader(text[fed:])
		in := io.Reader(later)
		if slow {
			in = iotest.OneByteReader(in)
		}
		if err := l.Load(rest, in); err != nil {
			return err
		}
		fed = len(text) - later.Len()
	}
	return nil
}

var stream = command("PING") + command("SELECT", "0") + command("SET", "a", "1") + command("MULTI") + command("SELECT", "3") + command("INCR", "b") + command("SELECT", "0") +
	command("INCR", "c") + command("EXEC") + command("FLUSHALL") + command("DEL", "x") + command("REPLCONF", "GETACK", "*") + command("SET", "last", "\r\n") + command("PING")

// effects are those of a recorder without its commits.
func effects(did []string) (list []string) {
	for _, one := range did {
		if !strings.HasPrefix(one, "commit") {
			list = append(list, one)
		}
	}
	return list
}

// TestLinkInPieces: whatever the pieces in which a master's bytes arrive, the same is done, and the position at the end is
// that of the last command that did something.
func TestLinkInPieces(t *testing.T) {
	greeting := "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " + replid + " 1000\r\n\n\n"
	want := []string{"load RDB! 1000", "0:SET a 1", "3:INCR b", "0:INCR c", "0:FLUSHALL", "0:DEL x", "0:SET last \r\n"}
	for _, file := range []string{"$EOF:" + marker + "\r\nRDB!" + marker, "$4\r\nRDB!"} {
		text := greeting + file + stream
		for n := 1; n <= len(text); n++ {
			for _, slow := range []bool{false, true} {
				r := &recorder{}
				l := replication.NewLink(replication.Options{}, r.replica())
				if err := drive(l, text, n, slow); err != nil {
					t.Fatalf("pieces of %d: %v", n, err)
				}
				if have := effects(r.did); !slices.Equal(have, want) {
					t.Fatalf("pieces of %d: did %q, want %q", n, have, want)
				}
				end := 1000 + int64(len(stream))
				if p := l.Position(); p.Offset != end || p.Database != 0 || string(p.ReplID[:]) != replid {
					t.Fatalf("pieces of %d: at %+v, want offset %d", n, p, end)
				}
				if kept := r.at.Offset; kept != end && kept != end-int64(len(command("PING"))) { // a PING alone is no commit
					t.Fatalf("pieces of %d: kept %d, want about %d", n, kept, end)
				}
				if string(r.received) != stream {
					t.Fatalf("pieces of %d: passed on %q", n, r.received)
				}
			}
		}
	}
}

// TestLinkCommits: what arrives together is one commit, but for a command on everything, and a transaction of the master
// is never divided.
func TestLinkCommits(t *testing.T) {
	many := command("MULTI") + strings.Repeat(command("INCR", "n"), 200) + command("EXEC")
	r := &recorder{}
	l := linkAt(r, 0)
	if err := drive(l, stream+many+strings.Repeat(command("INCR", "m"), 100), 1<<20, false); err != nil {
		t.Fatal(err)
	}
	var commits []int
	n := 0
	for _, one := range r.did {
		n++
		if strings.HasPrefix(one, "commit") {
			commits, n = append(commits, n-1), 0
		}
	}
	// SET, INCR, INCR; FLUSHALL; DEL, before the acknowledgement; SET and the 200; 64 and the rest of the 100
	if want := []int{3, 1, 1, 201, 64, 36}; !slices.Equal(commits, want) {
		t.Errorf("commits of %v commands, want %v", commits, want)
	}
}

// linkAt is a link that goes on from an offset.
func linkAt(r *recorder, offset int64) *replication.Link {
	o := replication.Options{Known: true, Origin: replication.Origin{Offset: offset}}
	copy(o.Origin.ReplID[:], replid)
	l := replication.NewLink(o, r.replica())
	if _, err := l.Feed([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+CONTINUE\r\n")); err != nil {
		panic(err)
	}
	l.Sent(len(l.Output()))
	return l
}

// TestLinkAcknowledges: what is acknowledged has been applied: never more, not even of a transaction that has arrived in part.
func TestLinkAcknowledges(t *testing.T) {
	for cut := range len(stream) {
		r := &recorder{}
		l := linkAt(r, 5000)
		if _, err := l.Feed([]byte(stream[:cut])); err != nil {
			t.Fatal(err)
		}
		l.Sent(len(l.Output()))
		l.Tick()
		// What has been applied and passed on is what is acknowledged.
		want := command("REPLCONF", "ACK", fmt.Sprint(5000+len(r.received)))
		if have := string(l.Output()); have != want {
			t.Errorf("after %d bytes: %q, want %q", cut, have, want)
		}
		if before, _, _ := strings.Cut(stream[:cut], command("EXEC")); strings.Contains(before, command("MULTI")) && before == stream[:cut] {
			if len(r.received) > strings.Index(stream, command("MULTI")) {
				t.Errorf("after %d bytes: a part of a transaction was passed on", cut)
			}
		}
	}
}

// TestLinkSaysWhatIsOnDisk: with each acknowledgement, and never more than what was applied when the disk was behind.
func TestLinkSaysWhatIsOnDisk(t *testing.T) {
	r := &recorder{}
	o := replication.Options{Known: true, Origin: replication.Origin{Offset: 100}}
	copy(o.Origin.ReplID[:], replid)
	replica := r.replica()
	written, onDisk := uint64(7), uint64(6)
	replica.Written = func() uint64 { return written }
	replica.IsOnDisk = func(n uint64) bool { return n <= onDisk }
	l := replication.NewLink(o, replica)
	if _, err := l.Feed([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+CONTINUE\r\n")); err != nil {
		t.Fatal(err)
	}
	l.Sent(len(l.Output()))
	const size = 27 // of a SET
	for i, step := range []struct {
		written, onDisk uint64
		set             bool
		says            string
	}{
		{7, 6, false, "100"}, {9, 6, true, "127"}, {9, 7, false, "127 FACK 100"}, {11, 8, true, "154 FACK 100"}, {11, 9, false, "154 FACK 127"},
		{13, 11, true, "181 FACK 154"}, {13, 12, false, "181 FACK 154"}, {13, 13, false, "181 FACK 181"}, {13, 13, false, "181 FACK 181"}, {15, 15, true, "208 FACK 208"},
	} {
		written, onDisk = step.written, step.onDisk
		if step.set {
			if in := command("SET", "a", "1"); len(in) != size {
				t.Fatal(len(in))
			} else if _, err := l.Feed([]byte(in)); err != nil {
				t.Fatal(err)
			}
		}
		l.Tick()
		if have, want := string(l.Output()), command(append([]string{"REPLCONF", "ACK"}, strings.Fields(step.says)...)...); have != want {
			t.Errorf("step %d: %q, want %q", i, have, want)
		}
		l.Sent(len(l.Output()))
	}
}

// TestLinkStops: an error of the replica ends the link, which stays where it was.
func TestLinkStops(t *testing.T) {
	r := &recorder{fail: errors.New("no")}
	l := linkAt(r, 10)
	if _, err := l.Feed([]byte(command("SET", "a", "1"))); !errors.Is(err, r.fail) {
		t.Errorf("got %v", err)
	}
	if p := l.Position(); p.Offset != 10 {
		t.Errorf("at %d", p.Offset)
	}
}

// TestLinkIntroduces: what is said before the stream, and what a master may refuse.
func TestLinkIntroduces(t *testing.T) {
	hello := command("PING")
	port := command("REPLCONF", "listening-port", "7000")
	capabilities := command("REPLCONF", "capa", "eof", "capa", "psync2") + command("REPLCONF", "version", "9.0.0")
	anew := command("PSYNC", "?", "-1")
	secret := replication.Options{ListeningPort: "7000", User: "u", Password: "p"}
	known := replication.Options{ListeningPort: "7000", Known: true, Origin: replication.Origin{Offset: 9}}
	copy(known.Origin.ReplID[:], replid)
	for _, tt := range []struct {
		o       replication.Options
		replies string
		says    string
		fails   string
	}{
		{replication.Options{ListeningPort: "7000"}, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n", hello + port + capabilities + anew, ""},
		{secret, "-NOAUTH Authentication required.\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n", hello + command("AUTH", "u", "p") + port + capabilities + anew, ""},
		{known, "+PONG\r\n+OK\r\n+OK\r\n-ERR Unrecognized REPLCONF option: version\r\n$0\r\n\r\n", hello + port + capabilities + command("INFO", "replication") + command("PSYNC", replid, "10"), ""},
		{known, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+CONTINUE " + marker + "\r\n", hello + port + capabilities + command("INFO", "replication") + command("PSYNC", replid, "10") + command("REPLCONF", "ACK", "9"), ""},
		{replication.Options{}, "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n", "", "set masterauth"},
		{secret, "-NOAUTH Authentication required.\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n", "", "WRONGPASS"},
		{secret, "-NOAUTH Authentication required.\r\n-ERR unknown command 'AUTH', with args beginning with: 'u' 'p' \r\n", "", "unknown command 'AUTH'"},
		{replication.Options{}, "-LOADING Redis is loading the dataset in memory\r\n", "", "LOADING"},
		{replication.Options{}, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n-NOMASTERLINK Can't SYNC while not connected with my master\r\n", "", "NOMASTERLINK"},
		{replication.Options{}, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+CONTINUE\r\n", "", "nothing of"},
		{replication.Options{}, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC short 1\r\n", "", "id of its replication"},
		{replication.Options{}, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " + replid + " -1\r\n", "", "offset"},
		{replication.Options{}, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " + replid + " 1\r\n$x\r\n", "", "announced"},
		{replication.Options{}, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " + replid + " 1\r\n$EOF:short\r\n", "", "announced"},
		{replication.Options{}, strings.Repeat("x", 5000), "", "no end"},
		{known, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+CONTINUE\r\n*1\r\n$x\r\n", "", "stream"},
		{known, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+CONTINUE\r\n" + command("SELECT", "x"), "", "database"},
	} {
		l := replication.NewLink(tt.o, (&recorder{}).replica())
		var err error
		for _, b := range []byte(tt.replies) {
			if _, err = l.Feed([]byte{b}); err != nil {
				break
			}
		}
		if tt.fails == "" && (err != nil || string(l.Output()) != tt.says) {
			t.Errorf("%q: says %q, %v; want %q", tt.replies, l.Output(), err, tt.says)
		}
		if tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%.100q: %v, want %q", tt.replies, err, tt.fails)
		}
		if err != nil && strings.Contains(err.Error(), "'p'") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
}

// TestLinkFileCut: a file that is cut, or does not end as it should, is none.
func TestLinkFileCut(t *testing.T) {
	greeting := "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " + replid + " 1000\r\n"
	for _, file := range []string{"$EOF:" + marker + "\r\nRDB!" + replid, "$EOF:" + marker + "\r\nRDB!" + marker[:39], "$5\r\nRDB!x", "$9\r\nRD"} {
		r := &recorder{}
		if err := drive(replication.NewLink(replication.Options{}, r.replica()), greeting+file, 1<<20, false); err == nil || len(r.did) > 0 {
			t.Errorf("%q: %v, did %q", file, err, r.did)
		}
	}
}

// FuzzLink: a master may send anything, in any pieces: no panic, and nothing that was not applied is acknowledged.
func FuzzLink(f *testing.F) {
	for _, seed := range []string{stream, command("MULTI") + stream, "\n\n", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$9999999999\r\n"} {
		f.Add([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+CONTINUE\r\n"+seed), uint8(7))
		f.Add([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+FULLRESYNC "+replid+" 7\r\n$EOF:"+marker+"\r\nRDB!"+marker+seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, n uint8) {
		r := &recorder{}
		o := replication.Options{Known: true}
		copy(o.Origin.ReplID[:], replid)
		l := replication.NewLink(o, r.replica())
		for piece := range slices.Chunk(in, int(n)+1) {
			rest, err := l.Feed(piece)
			if err == nil && l.Phase() == replication.Loading {
				err = l.Load(rest, bytes.NewReader(nil))
			}
			if err != nil {
				return
			}
			if p := l.Position(); r.at.Offset > p.Offset {
				t.Fatalf("kept %d, and stands at %d", r.at.Offset, p.Offset)
			}
		}
		l.Tick()
	})
}
