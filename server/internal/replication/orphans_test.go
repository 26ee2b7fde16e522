package replication

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/orphans"
	"github.com/stavedb/stave/internal/serverside"
)

// loses is a server that is about to lose what it alone has.
type loses struct {
	*testing.T
	*Stream
	store *db.Store
	dir   string
	now   time.Time
}

func newLoses(t *testing.T) *loses {
	l := &loses{T: t, Stream: NewStream(1 << 20), dir: t.TempDir(), now: time.Now()}
	store, err := db.Open(l.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	l.store = store
	return l
}

// write adds a commit in a database.
func (l *loses) write(database int, words ...string) {
	l.Written(serverside.Commit{RESP: commandOf(words...), First: database, Last: database, Next: 1})
}

// keep keeps what is alone, and compares the commands in the file; "" for none.
func (l *loses) keep(what string, theirs History, before int64, want string) {
	l.Helper()
	o, err := KeepOrphans(l.store, l.Stream, theirs, l.now) // the same moment for a file that is there already
	if err != nil {
		l.Fatal(err)
	}
	if o.Name == "" {
		if want != "" || before != 0 {
			l.Errorf("%s: nothing is kept, want %q, %d before", what, want, before)
		}
		return
	}
	f, err := os.Open(filepath.Join(l.dir, serverside.OrphansDir, o.Name))
	if err != nil {
		l.Fatal(err)
	}
	defer f.Close()
	r, err := orphans.NewReader(f)
	if err != nil {
		l.Fatal(err)
	}
	have, n := "", int64(0)
	for {
		args, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			l.Fatal(err)
		}
		if orphans.Changes(args) {
			n++
		}
		have += strings.Trim(fmt.Sprintf("%s", args), "[]") + ";"
	}
	if have != want || r.Header != o.Header || o.Before != before || o.Commands != n || o.To != l.offset {
		l.Errorf("%s: %q, %+v, want %q, %d before", what, have, o, want, before)
	}
}

// TestKeepOrphans: what is kept is what the master says that it has not, in the database that was selected, and no more; and all
// that there is of a server that was the master, if the master says nothing.
func TestKeepOrphans(t *testing.T) {
	l := newLoses(t)
	l.Begin()
	l.write(0, "SET", "shared", "1")
	l.write(3, "SET", "shared", "3")
	parted := History{ID: id["b"], Offset: 5000, Former: l.id, FormerEnd: l.offset}
	l.send("PING")
	l.demote()
	l.keep("a PING alone", parted, 0, "")
	l.lead()
	l.write(3, "SET", "alone", "3")
	l.write(0, "SET", "alone", "0")
	l.demote()
	l.keep("of a demoted master", parted, 0, "SELECT 3;PING;SET alone 3;SELECT 0;SET alone 0;")
	l.keep("once more", parted, 0, "SELECT 3;PING;SET alone 3;SELECT 0;SET alone 0;")
	l.keep("if the master has all", History{ID: id["b"], Offset: 5000, Former: l.id, FormerEnd: l.offset}, 0, "")
	l.keep("if the master has more", History{ID: l.id, Offset: l.offset + 100}, 0, "")
	other := History{ID: id["b"], Offset: 5000, Former: id["c"], FormerEnd: 4}
	all := "SELECT 0;SET shared 1;SELECT 3;SET shared 3;PING;SET alone 3;SELECT 0;SET alone 0;"
	l.keep("if it is not known where they parted", other, orphans.Unknown, all)
	l.keep("if the master says nothing", History{ID: id["b"], Offset: 5000}, orphans.Unknown, all)
	l.Receive(at("b", 5000, 0))
	l.keep("when it is replaced", parted, 0, "")
	l.keep("when it is replaced", other, 0, "")
}

// TestKeepOrphansOfReplica: a replica that had more than the one that was promoted keeps that; one whose master is another one has
// nothing alone.
func TestKeepOrphansOfReplica(t *testing.T) {
	l := newLoses(t)
	l.Receive(at("a", 1000, 7))
	pass := func(words ...string) {
		l.Helper()
		b := commandOf(words...)
		after := at("a", l.offset+int64(len(b)), 7)
		if err := l.Pass(b, after, func() (bool, error) { return true, nil }); err != nil {
			l.Fatal(err)
		}
	}
	pass("SET", "shared", "7")
	had := l.offset
	pass("SET", "more", "7")
	l.keep("of another master", History{ID: id["c"], Offset: 9}, 0, "")
	l.keep("of its promoted sibling", History{ID: id["b"], Offset: 9999, Former: id["a"], FormerEnd: had}, 0, "SELECT 7;SET more 7;")
}

// TestKeepOrphansCountsWhatIsGone: bytes before the backlog are counted.
func TestKeepOrphansCountsWhatIsGone(t *testing.T) {
	l := newLoses(t)
	l.Begin()
	l.SetLimit(1)
	l.write(0, "SET", "shared", "1")
	had := l.offset
	for range 3 {
		l.write(5, "SET", "gone", strings.Repeat("x", 2*blockSize))
	}
	l.write(5, "SET", "kept", "1")
	first := l.blocks[0].start
	l.demote()
	parted := History{ID: id["b"], Offset: 9, Former: l.id, FormerEnd: had}
	l.keep("the last bytes", parted, first-had, "SELECT 5;SET kept 1;")
	l.lead()
	l.write(5, "SET", "gone", strings.Repeat("x", 2*blockSize))
	l.demote()
	l.keep("if nothing is known and nothing is left", History{ID: id["b"], Offset: 9}, orphans.Unknown, "")
	again := newLoses(t)
	o, _ := l.Origin()
	again.Receive(o) // as after a restart
	again.keep("after a restart", parted, l.offset-had, "")
	if names, err := os.ReadDir(filepath.Join(again.dir, serverside.OrphansDir)); err != nil || len(names) != 1 {
		t.Errorf("after a restart the bytes are counted in no file: %v, %v", names, err)
	}
}

// TestHistoryInCommon: histories have in common what has the same id, up to the smaller offset.
func TestHistoryInCommon(t *testing.T) {
	for _, tt := range []struct {
		mine, its History
		offset    int64
		ok        bool
	}{
		{History{"a", 10, "", -1}, History{"a", 7, "", -1}, 7, true},
		{History{"a", 10, "", -1}, History{"b", 20, "a", 6}, 6, true},
		{History{"a", 10, "", -1}, History{"b", 20, "a", 12}, 10, true},
		{History{"c", 10, "a", 8}, History{"b", 20, "a", 6}, 6, true},
		{History{"c", 10, "a", 8}, History{"a", 20, "x", 3}, 8, true},
		{History{"c", 10, "a", 8}, History{"c", 9, "a", 8}, 9, true},
		{History{"a", 10, "", -1}, History{"b", 20, "", -1}, 0, false},
		{History{"a", 10, "b", 3}, History{"c", 20, "d", 3}, 0, false},
	} {
		if offset, ok := tt.mine.common(tt.its); offset != tt.offset || ok != tt.ok {
			t.Errorf("%v and %v: %d, %v, want %d, %v", tt.mine, tt.its, offset, ok, tt.offset, tt.ok)
		}
	}
}

// TestLinkAsksForHistory: before the stream, in any pieces; a master that does not tell is followed none the less.
func TestLinkAsksForHistory(t *testing.T) {
	info := func(lines ...string) string {
		text := strings.Join(lines, "\r\n") + "\r\n"
		return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	}
	none := strings.Repeat("0", replIDSize)
	full := "+FULLRESYNC " + id["b"] + " 77\r\n$EOF:" + id["c"] + "\r\n"
	for name, tt := range map[string]struct {
		reply string
		want  History
	}{
		"all":            {info("# Replication", "role:master", "master_replid:"+id["b"], "master_replid2:"+id["a"], "master_repl_offset:50", "second_repl_offset:31"), History{id["b"], 77, id["a"], 30}},
		"no former":      {info("master_replid:"+id["b"], "master_replid2:"+none, "master_repl_offset:50", "second_repl_offset:-1"), History{id["b"], 77, "", 0}},
		"nothing common": {info("master_replid:"+id["b"], "master_replid2:"+id["a"], "master_repl_offset:50", "second_repl_offset:1"), History{id["b"], 77, id["a"], 0}},
		"another server": {info("master_replid:"+id["c"], "master_replid2:"+id["a"], "master_repl_offset:50", "second_repl_offset:31"), History{id["b"], 77, "", 0}},
		"nonsense":       {info("master_replid:x", "", "second_repl_offset:y"), History{id["b"], 77, "", 0}},
		"nothing":        {"$0\r\n\r\n", History{id["b"], 77, "", 0}},
		"refused":        {"-NOPERM this user has no permissions to run the 'info' command\r\n", History{id["b"], 77, "", 0}},
	} {
		for _, size := range []int{1, 7, 1000} {
			l := NewLink(Options{Known: true, Origin: at("a", 40, 0)}, Replica{})
			text := "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n" + tt.reply + full
			for len(text) > 0 {
				n := min(size, len(text))
				if _, err := l.Feed([]byte(text[:n])); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				text = text[n:]
			}
			if l.Phase() != Loading || l.History() != tt.want {
				t.Errorf("%s, in pieces of %d: phase %d, %+v, want %+v", name, size, l.Phase(), l.History(), tt.want)
			}
			if out := string(l.Output()); !strings.HasSuffix(out, string(commandOf("INFO", "replication"))+string(commandOf("PSYNC", id["a"], "41"))) {
				t.Errorf("%s: it says %q", name, out)
			}
		}
	}
	// One that was asked to become the master may have got more of this server's stream until then.
	heir := NewLink(Options{Known: true, Origin: at("a", 40, 0), TakeOver: true}, Replica{})
	if _, err := heir.Feed([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n" + info("role:slave", "master_replid:"+id["a"], "master_replid2:"+none, "master_repl_offset:35", "second_repl_offset:-1") + full)); err != nil {
		t.Fatal(err)
	}
	if !heir.TookOver() || !heir.AskedEarly() {
		t.Errorf("of one that has become the master: took over %v, asked early %v", heir.TookOver(), heir.AskedEarly())
	}
	// One that was asked before, and whose reply was lost, is the master already.
	again := NewLink(Options{Known: true, Origin: at("a", 40, 0), TakeOver: true}, Replica{})
	if _, err := again.Feed([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n" + info("role:master", "master_replid:"+id["b"], "master_replid2:"+id["a"], "master_repl_offset:77", "second_repl_offset:36") +
		"-ERR " + isMaster + ".\r\n" + full)); err != nil {
		t.Fatal(err)
	}
	if h := again.History(); !again.TookOver() || again.AskedEarly() || h != (History{id["b"], 77, id["a"], 35}) {
		t.Errorf("of one that had become the master: asked early %v, %+v", again.AskedEarly(), h)
	}
	l := NewLink(Options{Known: true}, Replica{})
	if _, err := l.Feed([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$99999999\r\n")); err == nil {
		t.Error("a reply of 100 MB is waited for")
	}
}
