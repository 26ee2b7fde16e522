package replication_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/orphans"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// orphanFile is a file of what a demoted master alone had.
type orphanFile struct {
	orphans.Header
	commands [][]string
}

// orphansIn are the files of a store, by name.
func orphansIn(t *testing.T, dir string) map[string]orphanFile {
	t.Helper()
	files := map[string]orphanFile{}
	dir = filepath.Join(dir, "orphans")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !orphans.IsName(entry.Name()) {
			continue
		}
		f, err := os.Open(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := orphans.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		o := orphanFile{Header: r.Header}
		for {
			args, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			words := make([]string, len(args))
			for i, arg := range args {
				words[i] = string(arg)
			}
			o.commands = append(o.commands, words)
		}
		files[entry.Name()] = o
	}
	return files
}

// onlyOrphans is the one file of a store.
func onlyOrphans(t *testing.T, dir string) orphanFile {
	t.Helper()
	files := orphansIn(t, dir)
	if len(files) != 1 {
		t.Fatalf("%d files of orphans, want one", len(files))
	}
	for _, o := range files {
		return o
	}
	panic("unreachable")
}

// serveIn serves a store in a directory. It sends no PING, with which a master would be ahead of a replica that is promoted.
func serveIn(t *testing.T, dir string) instance {
	t.Helper()
	store, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	address, _ := serve(t, store, nil)
	_, port, _ := net.SplitHostPort(address)
	c := dial(t, address)
	c.must("CONFIG", "SET", "repl-ping-replica-period", "1000")
	return instance{c, address, port}
}

// parting is up to where a promoted server has the stream of its former master.
func parting(t *testing.T, promoted *client) int64 {
	t.Helper()
	first, err := strconv.ParseInt(promoted.info("replication", "second_repl_offset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return first - 1
}

// wantSpan compares what a file says of the bytes in it, and of those before, with all that a server alone had.
func wantSpan(t *testing.T, o *orphanFile, from, to int64) {
	t.Helper()
	if o.From-o.Before != from || o.To != to || o.Before < 0 {
		t.Errorf("it has the bytes from %d to %d, and %d before; alone were those from %d to %d", o.From, o.To, o.Before, from, to)
	}
}

// TestOrphans: a master that is cut off goes on acknowledging, and its replica is promoted. When it becomes the replica of that
// one, all that is lost is in a file: on a third server, which has what the two had in common, the commands in it make what the
// master had, key by key.
func TestOrphans(t *testing.T) {
	for _, kind := range []string{"stave", "redis"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			first, second, third := serveIn(t, dir), startInstance(t, kind), startInstance(t, "stave")
			prepare(first.client)
			first.pipeline(everything("shared_")...)
			second.follow(first)
			third.follow(first)
			expireAll(first.client)
			first.must("SELECT", "3")
			first.must("SET", "shared", "1") // so that the stream has selected this one where they part
			awaitCaughtUp(t, first.client, second.client)
			awaitCaughtUp(t, first.client, third.client)
			second.must("REPLICAOF", "NO", "ONE")
			third.must("REPLICAOF", "NO", "ONE")
			second.must("SET", "of the successor", "1")
			await(t, "it is alone", func() bool { return first.info("replication", "connected_slaves") == "0" })
			first.must("SELECT", "3")
			first.must("SET", "alone", "1")
			first.must("SELECT", "0")
			first.pipeline(everything("alone_")...)
			first.pipeline(everything("shared_")...)
			expireAll(first.client)
			lost, to := contents{idleConsumers: true}.of(first.client), offset(t, first.client)
			first.follow(second)
			awaitCaughtUp(t, second.client, first.client)
			wantSame(t, second.client, first.client)
			o := onlyOrphans(t, dir)
			wantSpan(t, &o, parting(t, second.client), to)
			if o.Before != 0 || o.Commands < 80 {
				t.Errorf("it says %+v", o.Header)
			}
			third.pipeline(o.commands...)
			have := contents{idleConsumers: true}.of(third.client)
			for key, value := range lost {
				if have[key] != value {
					t.Errorf("%s: in the file it becomes %.200q, and was %.200q", key, have[key], value)
				}
			}
			for key := range have {
				if _, was := lost[key]; !was {
					t.Errorf("%s is made by the file, and was not there", key)
				}
			}
			// A replica that comes back has nothing alone.
			first.must("REPLICAOF", "127.0.0.1", "1")
			second.must("INCR", "later")
			first.follow(second)
			awaitCaughtUp(t, second.client, first.client)
			onlyOrphans(t, dir)
		})
	}
}

// TestOrphansBeyondBacklog: what the backlog has no longer is counted, and the rest is there.
func TestOrphansBeyondBacklog(t *testing.T) {
	dir := t.TempDir()
	first, second := serveIn(t, dir), startInstance(t, "redis")
	first.must("CONFIG", "SET", "repl-backlog-size", "20000")
	second.follow(first)
	first.must("SET", "shared", "1")
	awaitCaughtUp(t, first.client, second.client)
	second.must("REPLICAOF", "NO", "ONE")
	await(t, "it is alone", func() bool { return first.info("replication", "connected_slaves") == "0" })
	first.must("SELECT", "4")
	for i := range 300 {
		first.must("SET", "alone", strconv.Itoa(i)+strings.Repeat("x", 1000))
	}
	to := offset(t, first.client)
	first.follow(second)
	awaitCaughtUp(t, second.client, first.client)
	wantSame(t, second.client, first.client)
	o := onlyOrphans(t, dir)
	wantSpan(t, &o, parting(t, second.client), to)
	if n := o.To - o.From; n < 20_000 || n > 60_000 || o.Before < 240_000 {
		t.Errorf("%d bytes are kept, and %d were not known", n, o.Before)
	}
	if words := strings.Join(o.commands[0], " "); words != "SELECT 4" {
		t.Errorf("it begins with %.100s", words)
	}
	if last := o.commands[len(o.commands)-1]; last[0] != "SET" || !strings.HasPrefix(last[2], "299x") {
		t.Errorf("it ends with %.100s", strings.Join(last, " "))
	}
	await(t, "INFO shows it", func() bool { return first.info("replication", "orphan_files") == "1" }) // as of a second ago
	if err := os.RemoveAll(filepath.Join(dir, "orphans")); err != nil {
		t.Fatal(err)
	}
	await(t, "INFO shows that it was deleted", func() bool { return first.info("replication", "orphan_files") == "0" })
}

// TestOrphansAfterRestart: of an old master that was ended in order, and started again, the bytes are counted, whether a command or
// a setting makes it a replica.
func TestOrphansAfterRestart(t *testing.T) {
	for _, how := range []string{"command", "setting"} {
		t.Run(how, func(t *testing.T) { orphansAfterRestart(t, how == "setting") })
	}
}

func orphansAfterRestart(t *testing.T, bySetting bool) {
	m := &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	first, second := m.start(), startInstance(t, "redis")
	defer func() { m.end() }()
	_, port, _ := net.SplitHostPort(m.address)
	second.must("REPLICAOF", "127.0.0.1", port)
	awaitCaughtUp(t, first, second.client)
	first.must("SET", "shared", "1")
	awaitCaughtUp(t, first, second.client)
	second.must("REPLICAOF", "NO", "ONE")
	await(t, "it is alone", func() bool { return first.info("replication", "connected_slaves") == "0" })
	first.must("SET", "alone", "1")
	to := offset(t, first)
	m.end()
	if bySetting {
		m.settings = []string{"replicaof", "127.0.0.1:" + second.port}
		first = m.start()
	} else {
		first = m.start()
		want(t, first, "1", "GET", "alone")
		first.must("REPLICAOF", "127.0.0.1", second.port)
	}
	awaitCaughtUp(t, second.client, first)
	wantSame(t, second.client, first)
	o := onlyOrphans(t, m.dir)
	wantSpan(t, &o, parting(t, second.client), to)
	if o.Commands != 0 || o.Before == 0 {
		t.Errorf("it says %+v", o.Header)
	}
}

// TestOrphansWithoutInfo: a master that does not tell where the histories parted is followed all the same, and all is kept that is
// known.
func TestOrphansWithoutInfo(t *testing.T) {
	dir := t.TempDir()
	first, second := serveIn(t, dir), startInstance(t, "redis")
	second.follow(first)
	awaitCaughtUp(t, first.client, second.client)
	first.must("SET", "shared", "1")
	awaitCaughtUp(t, first.client, second.client)
	second.must("REPLICAOF", "NO", "ONE")
	second.must("ACL", "SETUSER", "replicator", "on", ">p4ss", "+psync", "+replconf", "+ping")
	await(t, "it is alone", func() bool { return first.info("replication", "connected_slaves") == "0" })
	first.must("SET", "alone", "1")
	first.must("CONFIG", "SET", "masteruser", "replicator", "masterauth", "p4ss")
	first.follow(second)
	awaitCaughtUp(t, second.client, first.client)
	wantSame(t, second.client, first.client)
	o := onlyOrphans(t, dir)
	if o.Before != orphans.Unknown || o.From != 0 || o.Commands != 2 {
		t.Errorf("it says %+v, with %q", o.Header, o.commands)
	}
}

// TestOrphansKilled: a demoted master is killed at any moment until it has the data of its successor. All that it alone had is in
// one file then, or was counted there if it was killed before its successor had said where they parted.
func TestOrphansKilled(t *testing.T) {
	rng := chance.Rand(t)
	first := startChild(t)
	second := startInstance(t, "redis")
	kept, counted := 0, 0
	for round := range 8 {
		c := dial(t, first.address)
		_, port, _ := net.SplitHostPort(first.address)
		c.must("REPLICAOF", "NO", "ONE")
		second.must("REPLICAOF", "127.0.0.1", port)
		c.must("INCR", "shared")
		awaitCaughtUp(t, c, second.client)
		second.must("REPLICAOF", "NO", "ONE")
		await(t, "it is alone", func() bool { return c.info("replication", "connected_slaves") == "0" })
		for i := range 20 {
			c.must("SET", "alone "+strconv.Itoa(round), strconv.Itoa(i))
		}
		before, to := orphansIn(t, first.dir), offset(t, c)
		c.must("REPLICAOF", "127.0.0.1", second.port)
		time.Sleep(time.Duration(rng.IntN([]int{1, 2_000, 30_000}[rng.IntN(3)])) * time.Microsecond)
		first.kill()
		first.start()
		awaitCaughtUp(t, second.client, dial(t, first.address))
		wantSame(t, second.client, dial(t, first.address))
		after := orphansIn(t, first.dir)
		maps.DeleteFunc(after, func(name string, _ orphanFile) bool { _, was := before[name]; return was })
		if len(after) != 1 {
			t.Fatalf("round %d: %d new files of orphans", round, len(after))
		}
		for _, o := range after {
			wantSpan(t, &o, parting(t, second.client), to)
			if n := len(o.commands); n > 0 {
				kept++
				if o.commands[n-1][2] != "19" || o.Commands != 20 {
					t.Errorf("round %d: %+v, %q", round, o.Header, o.commands)
				}
			} else {
				counted++
			}
		}
	}
	t.Logf("%d times the commands are kept, %d times their bytes were counted", kept, counted)
}

// TestOrphansKilledWhileLoading: what is kept is on the disk before anything of the successor is loaded, and stays.
func TestOrphansKilledWhileLoading(t *testing.T) {
	r := redisserver.StartMaster(t, "", "--repl-ping-replica-period", "1000")
	second := dial(t, r.Socket)
	first := startChild(t)
	c := dial(t, first.address)
	_, port, _ := net.SplitHostPort(first.address)
	second.must("REPLICAOF", "127.0.0.1", port)
	c.must("SET", "shared", "1")
	awaitCaughtUp(t, c, second)
	second.must("REPLICAOF", "NO", "ONE")
	await(t, "it is alone", func() bool { return c.info("replication", "connected_slaves") == "0" })
	c.must("SET", "alone", "1")
	to := offset(t, c)
	second.must("CONFIG", "SET", "rdb-key-save-delay", "2000")
	second.must("DEBUG", "POPULATE", "20000", "key", "100") // 40 s
	c.must("REPLICAOF", "127.0.0.1", r.Port)
	await(t, "it loads", func() bool { return c.info("replication", "master_sync_in_progress") == "1" })
	await(t, "the orphans are kept", func() bool { return len(orphansIn(t, first.dir)) == 1 })
	want(t, c, "1", "GET", "alone")
	first.kill()
	first.start()
	second.must("CONFIG", "SET", "rdb-key-save-delay", "0")
	second.must("CLIENT", "KILL", "TYPE", "replica")
	c = dial(t, first.address)
	awaitCaughtUp(t, second, c)
	wantSame(t, second, c)
	o := onlyOrphans(t, first.dir)
	wantSpan(t, &o, parting(t, second), to)
	if o.Commands != 1 || o.commands[len(o.commands)-1][1] != "alone" {
		t.Errorf("%+v, %q", o.Header, o.commands)
	}
}
