//go:build unix

package replication_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// member is a server in a process of its own: a Stave, or a Redis.
type member struct {
	t       *testing.T
	isRedis bool
	dir     string
	port    string
	group   *group
	cmd     *exec.Cmd
}

// config is the file of settings that both servers take, and rewrite.
func (n *member) config() string { return filepath.Join(n.dir, "conf") }

// start starts the node, or starts it again after kill, and waits until it answers.
func (n *member) start() {
	n.t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	n.cmd = exec.Command("redis-server", n.config())
	if !n.isRedis {
		n.cmd = exec.Command(os.Args[0])
		n.cmd.Env = append(os.Environ(), childConfig+"="+n.config())
	}
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	await(n.t, n.name()+" answers", func() bool { return n.ask("PING").String() == "PONG" })
}

func (n *member) name() string {
	if n.isRedis {
		return "redis:" + n.port
	}
	return "stave:" + n.port
}

// signal sends the process a signal. SIGKILL is waited for.
func (n *member) signal(s syscall.Signal) {
	_ = n.cmd.Process.Signal(s)
	if s == syscall.SIGKILL {
		_ = n.cmd.Wait()
	}
}

// ask executes a command on a connection of its own; a node that does not answer replies an empty error.
func (n *member) ask(args ...string) resp.Reply {
	return n.group.askAt(n.port, n.group.password, args...)
}

// dial connects to it, as a user who may do everything.
func (n *member) dial() *client {
	n.t.Helper()
	c, err := connect(n.port, n.group.password, n.group.secure)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Time{})
	return &client{n.t, c.Conn, c.decoder}
}

// info is a field of INFO replication.
func (n *member) info(field string) string {
	for line := range strings.Lines(n.ask("INFO", "replication").String()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value
		}
	}
	return ""
}

// connect returns a connection that gives up after a second, encrypted unless secure is nil.
func connect(port, password string, secure *tls.Config) (*caller, error) {
	conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
	if err != nil {
		return nil, err
	}
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	c := &caller{conn, resp.NewDecoder(conn)}
	if password != "" {
		if _, err := c.call([]string{"AUTH", password}); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return c, nil
}

// caller is a connection whose errors are a part of the test.
type caller struct {
	net.Conn
	decoder *resp.Decoder
}

// call executes commands that are sent together.
func (c *caller) call(commands ...[]string) (replies []resp.Reply, err error) {
	var in []byte
	for _, args := range commands {
		in = resp.AppendCommandStrings(in, args...)
	}
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, err
	}
	if _, err := c.Write(in); err != nil {
		return nil, err
	}
	for range commands {
		r, err := c.decoder.Read()
		if err != nil {
			return nil, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

func (g *group) askAt(port, password string, args ...string) resp.Reply {
	c, err := connect(port, password, g.secure)
	if err == nil {
		defer c.Close()
		var replies []resp.Reply
		if replies, err = c.call(args); err == nil {
			return replies[0]
		}
	}
	return resp.Reply{Kind: resp.Error}
}

// group is a master, its replicas, and three Sentinels that watch them.
type group struct {
	t         *testing.T
	password  string      // of the default user; "" for none
	secure    *tls.Config // of clients; nil: nothing is encrypted
	listens   string      // the lines of a server or a Sentinel about that, with PORT; "": port PORT
	nodes     []*member
	sentinels []string // their ports
}

// masterName is how the Sentinels call it.
const masterName = "main"

// options of a group.
type groupOptions struct {
	kinds    string // a word for each node, the first of which is the master
	settings string // lines of all nodes
	password string
	secure   bool // servers and Sentinels speak TLS alone
	patient  bool // the Sentinels have their own periods, and not such as shorten a test
	// sentinelFile is the file of a Sentinel, for its port and directory and the port of the master; nil for a short one.
	sentinelFile func(port, dir, master string) string
}

// downAfter is when a Sentinel takes a node for down.
const downAfter = 1500 * time.Millisecond

// startGroup starts one.
func startGroup(t *testing.T, o groupOptions) *group {
	t.Helper()
	for _, program := range []string{"redis-server", "redis-sentinel"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	g := &group{t: t, password: o.password}
	if o.secure {
		g.encrypt()
	}
	for _, kind := range strings.Fields(o.kinds) {
		g.add(kind == "redis", o.settings)
	}
	for i := range 3 {
		g.addSentinel(i, o)
	}
	g.awaitHealthy()
	return g
}

// encrypt lets what is added speak TLS alone, as contrib/sentinel/tls.conf has it.
func (g *group) encrypt() {
	g.t.Helper()
	cert, key := certificate(g.t)
	const at = "/etc/stave/"
	sample := contributed(g.t, "tls.conf", "tls-port 6380\n", at+"cert.pem\n", at+"key.pem\n", at+"ca.pem\n")
	g.secure = &tls.Config{InsecureSkipVerify: true} // it is a test's own
	g.listens = strings.NewReplacer("tls-port 6380", "tls-port PORT", at+"cert.pem", cert, at+"key.pem", key, at+"ca.pem", cert).Replace(sample)
}

// listensOn are the lines about a port.
func (g *group) listensOn(port string) string {
	return "bind 127.0.0.1\n" + strings.ReplaceAll(cmp.Or(g.listens, "port PORT\n"), "PORT", port)
}

// add adds a node, which is a replica of the first one.
func (g *group) add(isRedis bool, settings string) {
	n := &member{t: g.t, isRedis: isRedis, dir: g.t.TempDir(), port: redisserver.FreePort(g.t), group: g}
	text := g.listensOn(n.port) + "dir " + filepath.Join(n.dir, "data") + "\nrepl-diskless-sync-delay 0\nrepl-diskless-load swapdb\nmin-replicas-max-lag 5\n" + settings
	if isRedis {
		text += "save \"\"\nappendonly yes\n" // what it has acknowledged survives that it is killed, as here
	}
	if len(g.nodes) > 0 {
		text += "replicaof 127.0.0.1 " + g.nodes[0].port + "\n"
	}
	if err := os.Mkdir(filepath.Join(n.dir, "data"), 0o700); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(n.config(), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		n.signal(syscall.SIGKILL)
		if g.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(n.dir, "log"))
			g.t.Logf("the log of %s ends with\n%s", n.name(), log[max(0, len(log)-4000):])
		}
	})
	n.start()
	g.nodes = append(g.nodes, n)
}

// addSentinel adds a Sentinel.
func (g *group) addSentinel(i int, o groupOptions) {
	dir, port := g.t.TempDir(), redisserver.FreePort(g.t)
	text := g.listensOn(port) + fmt.Sprintf("dir %s\nsentinel monitor %s 127.0.0.1 %s 2\nsentinel down-after-milliseconds %[2]s %[4]d\nsentinel failover-timeout %[2]s 6000\n",
		dir, masterName, g.nodes[0].port, downAfter.Milliseconds())
	if o.sentinelFile != nil {
		text = o.sentinelFile(port, dir, g.nodes[0].port)
	}
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.Command("redis-sentinel", filepath.Join(dir, "conf"), "--logfile", filepath.Join(dir, "log"))
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if g.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			g.t.Logf("the log of Sentinel %d ends with\n%s", i, log[max(0, len(log)-4000):])
		}
	})
	await(g.t, "a Sentinel answers", func() bool { return g.askAt(port, "", "PING").String() == "PONG" })
	if !o.patient {
		if r := g.askAt(port, "", "SENTINEL", "DEBUG", "INFO-PERIOD", "1000", "PUBLISH-PERIOD", "500", "ASK-PERIOD", "300"); r.IsError() {
			g.t.Fatal(r.String())
		}
	}
	g.sentinels = append(g.sentinels, port)
}

// masterPort is the port of the master, as a Sentinel says; "" without an answer.
func (g *group) masterPort(sentinel string) string {
	r := g.askAt(sentinel, "", "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
	if len(r.Items) != 2 {
		return ""
	}
	return string(r.Items[1].Text)
}

// master is the node that all Sentinels call the master; nil if they do not agree.
func (g *group) master() *member {
	port := g.masterPort(g.sentinels[0])
	for _, sentinel := range g.sentinels[1:] {
		if g.masterPort(sentinel) != port {
			return nil
		}
	}
	for _, n := range g.nodes {
		if n.port == port {
			return n
		}
	}
	return nil
}

// awaitHealthy waits until the Sentinels agree on a master, it is one, and all others are its replicas, in sync.
func (g *group) awaitHealthy() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	why := ""
	for ; ; time.Sleep(50 * time.Millisecond) {
		if why = g.unhealthy(); why == "" {
			return
		}
		if ctx.Err() != nil {
			g.t.Fatalf("the group does not become healthy: %s", why)
		}
	}
}

// unhealthy says what is missing; "" if nothing is.
func (g *group) unhealthy() string {
	m := g.master()
	if m == nil {
		return "the Sentinels do not agree"
	}
	if role := m.info("role"); role != "master" {
		return m.name() + " is the master, and has the role " + role
	}
	for _, n := range g.nodes {
		if n == m {
			continue
		}
		if n.info("role") != "slave" || n.info("master_port") != m.port || n.info("master_link_status") != "up" {
			return fmt.Sprintf("%s is %s of %s, its link is %s %s", n.name(), n.info("role"), n.info("master_port"), n.info("master_link_status"), n.info("master_link_error"))
		}
	}
	if replicas := m.ask("INFO", "replication").String(); strings.Count(replicas, "state=online") != len(g.nodes)-1 {
		return "replicas of " + m.name() + ": " + replicas
	}
	for _, sentinel := range g.sentinels {
		r := g.askAt(sentinel, "", "SENTINEL", "CKQUORUM", masterName)
		if r.IsError() || !strings.HasPrefix(r.String(), "OK 3 usable Sentinels") {
			return "the Sentinel of port " + sentinel + ": " + r.String()
		}
		if have := g.sentinelField(sentinel, "num-slaves"); have != strconv.Itoa(len(g.nodes)-1) {
			return "the Sentinel of port " + sentinel + " knows " + have + " replicas"
		}
	}
	return ""
}

// sentinelField is what a Sentinel says of the master.
func (g *group) sentinelField(sentinel, name string) string {
	items := g.askAt(sentinel, "", "SENTINEL", "MASTER", masterName).Items
	for i := 0; i+1 < len(items); i += 2 {
		if string(items[i].Text) == name {
			return string(items[i+1].Text)
		}
	}
	return ""
}
