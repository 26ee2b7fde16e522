package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program runs staved in this process, and returns what it says.
func program(args ...string) (status int, out string) {
	var both bytes.Buffer
	status = run(append([]string{"staved"}, args...), strings.NewReader(""), &both, &both)
	return status, both.String()
}

// TestMistakes: wrong options are refused before any file is made, by an error that names them.
func TestMistakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	peers := "--peers=a=127.0.0.1:1,b=127.0.0.1:2,c=127.0.0.1:3"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--id is missing", []string{"--etcd", "http://127.0.0.1:1"}},
		{`--id must be up to 64 letters, digits or any of "._-", not "a b"`, []string{"--id", "a b", "--etcd", "http://127.0.0.1:1"}},
		{"where is etcd?", []string{"--id", "a"}},
		{"--etcd names one that runs, and --peers has the members run their own: leave one out", []string{"--id", "a", "--etcd", "http://127.0.0.1:1", peers}},
		{`--etcd must be URLs such as http://10.0.0.1:2379, with commas between them, and has "127.0.0.1:1"`, []string{"--id", "a", "--etcd", "127.0.0.1:1"}},
		{"--etcd-dir is for an etcd in the members", []string{"--id", "a", "--etcd", "http://127.0.0.1:1", "--etcd-dir", "e"}},
		{`--peers must be such as a=10.0.0.1,b=10.0.0.2,c=10.0.0.3, and has "10.0.0.1"`, []string{"--id", "a", "--peers", "10.0.0.1"}},
		{`--peers names all members, and this one is not among them: --id is "d"`, []string{"--id", "d", peers}},
		{"--peers must name three members, or another odd number, not 2", []string{"--id", "a", "--peers", "a=127.0.0.1,b=127.0.0.1"}},
		{"--peers names a member twice", []string{"--id", "a", "--peers", "a=127.0.0.1,a=127.0.0.1,b=127.0.0.1"}},
		{"whoever reaches an etcd without TLS decides who is the primary", []string{"--id", "a", "--peers", "a=10.0.0.1,b=10.0.0.2,c=10.0.0.3"}},
		{"whoever reaches an etcd without TLS decides who is the primary", []string{"--id", "a", peers, "--etcd-client", "0.0.0.0:2379"}},
		{"--etcd-client must be HOST:PORT", []string{"--id", "a", peers, "--etcd-client", "2379"}},
		{"--etcd-dir must not be within the store's directory", []string{"--id", "a", peers, "--etcd-dir", filepath.Join(dir, "etcd")}},
		{"--etcd-cacert, --etcd-cert and --etcd-key go together", []string{"--id", "a", peers, "--etcd-cert", "/dev/null"}},
		{"a file of etcd's TLS: stat none", []string{"--id", "a", peers, "--etcd-cert", "none", "--etcd-key", "/dev/null", "--etcd-cacert", "/dev/null"}},
		{`--announce must be HOST:PORT, not "here"`, []string{"--id", "a", peers, "--announce", "here"}},
		{"--slots: slots are ranges of 0 to 16383 such as 0-8191,9000, and not \"1-\"", []string{"--id", "a", peers, "--slots", "1-"}},
		{"--slots 0-5 is a part of a cluster, whose clients find the other slots in cluster mode only: set cluster-enabled yes", []string{"--id", "a", peers, "--slots", "0-5"}},
		{"--min-in-sync must be positive, not 0", []string{"--id", "a", peers, "--min-in-sync", "0"}},
		{"--insync-timeout must be 50ms or more, not 1ms", []string{"--id", "a", peers, "--insync-timeout", "1ms"}},
		{"the group says whom a member follows: leave replicaof out", []string{"--id", "a", peers, "--replicaof", "127.0.0.1:1"}},
		{"leave --follow and --read-damaged out", []string{"--id", "a", peers, "--follow"}},
	} {
		status, out := program(append([]string{"serve", "--dir", dir}, c.args...)...)
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q: a store was made", c.args)
		}
		if status != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%q: status %d, %q, want %q", c.args, status, out, c.want)
		}
	}
	t.Setenv("STAVE_REQUIREPASS", "secret")
	if status, out := program("serve", "--id", "a", "--etcd", "http://127.0.0.1:1", "--dir", dir, "--addr", "0.0.0.0:0", "--protected-mode", "no"); status == 0 || !strings.Contains(out, "say by --announce HOST:PORT where other members reach it") {
		t.Errorf("of a member that listens everywhere: status %d, %q", status, out)
	}
}

// TestWithoutEtcd: a server starts without etcd, says that it is no primary, and becomes one when there is an etcd.
func TestWithoutEtcd(t *testing.T) {
	base, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, apartURL: "http://" + local4(base+29), apartDir: t.TempDir()}
	dir := t.TempDir()
	p := &process{id: "a", address: local4(base), dir: dir, args: []string{
		"serve", "--dir", filepath.Join(dir, "data"), "--id", "a", "--addr", local4(base), "--etcd", r.apartURL, "--bootstrap", "--min-in-sync", "1",
	}}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	r.members = []*process{p}
	c := newCaller(r, 1)
	defer c.close()
	answers := func(words ...string) func() bool {
		return func() bool { return strings.HasPrefix(c.does(words...), "-CLUSTERDOWN") }
	}
	r.eventuallyOr("a write is refused", answers("SET", "k", "v"), func() string { return c.does("SET", "k", "v") })
	r.eventuallyOr("a read is refused", answers("GET", "k"), func() string { return c.does("GET", "k") })
	time.Sleep(500 * time.Millisecond)
	r.startEtcd()
	t.Cleanup(func() { r.apart.Close() })
	r.eventuallyOr("a write is acknowledged", func() bool { return c.does("SET", "k", "v") == "OK" }, func() string { return c.does("SET", "k", "v") })
}

// TestLocal: staved local runs a group, starts a killed member again, and ends all members when it ends.
func TestLocal(t *testing.T) {
	dir := t.TempDir()
	group := filepath.Join(dir, "group")
	p := &process{id: "local", dir: dir, args: []string{"local", "--port", "0", group}}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	r := &rig{t: t}
	said := func() string {
		text, _ := os.ReadFile(p.log())
		return string(text)
	}
	r.eventuallyOr("the group is ready", func() bool { return strings.Contains(said(), "staved local: the group listens on ") }, said)
	l := &local{dir: group}
	if err := l.prepare(0, false, 1, false); err != nil {
		t.Fatal(err)
	}
	for i, id := range localIDs {
		r.members = append(r.members, &process{id: id, address: local4(l.base + i)})
	}
	c := newCaller(r, 1)
	defer c.close()
	for i := range localIDs {
		r.eventuallyOr("a write is acknowledged", func() bool { return c.does("SET", "k", "v") == "OK" }, said)
		one := newCaller(&rig{t: t, members: r.members[i : i+1]}, 1)
		r.eventuallyOr("a member is one of a cluster", func() bool { return strings.Contains(one.does("CLUSTER", "INFO"), "cluster_known_nodes:3") }, said)
		pid := ""
		r.eventuallyOr("a member says who it is", func() bool {
			_, rest, ok := strings.Cut(one.does("INFO", "server"), "process_id:")
			pid, _, _ = strings.Cut(rest, "\r\n")
			return ok
		}, said)
		kill(t, pid)
		r.eventuallyOr("the member is there again", func() bool {
			_, rest, ok := strings.Cut(one.does("INFO", "server"), "process_id:")
			again, _, _ := strings.Cut(rest, "\r\n")
			return ok && again != pid
		}, said)
		one.close()
	}
	r.eventuallyOr("what was written is read", func() bool { return c.does("GETEX", "k") == "v" }, said)
	p.signal(terminate)
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	for _, m := range r.members {
		one := newCaller(&rig{t: t, members: []*process{m}}, 1)
		if got := one.does("PING"); !strings.Contains(got, "refused") {
			t.Errorf("%s is still there: %s", m.id, got)
		}
	}
}
