package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/cluster/etcd"
	"github.com/stavedb/stave/internal/group"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// asStaved has the binary of the tests be staved: so a seeded defect is in it, and the race detector.
const asStaved = "STAVED_IS_THE_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asStaved) != "" {
		os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// process is a member of a group, in a process of its own.
type process struct {
	id, address, dir, etcd string
	args, env              []string
	via                    []string // the program that starts it, with its arguments
	password               string   // "": none

	mu    sync.Mutex // guards the rest
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has
}

func (p *process) start(more ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := slices.Concat(p.via, []string{os.Args[0]}, p.args, more)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), asStaved+"=1"), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	setChild(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() { _ = cmd.Wait(); close(ended) }()
	return nil
}

func (p *process) log() string { return filepath.Join(p.dir, "log") }

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill kills it at once, and waits until it is dead.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// rig is a group of three processes.
type rig struct {
	t        *testing.T
	rng      *rand.Rand
	sync     string
	members  []*process
	own      bool // each has an etcd of its own
	apart    *embed.Etcd
	apartURL string
	apartDir string
	records  group.Service
	silence  time.Duration
}

// startRig starts a group, whose etcd is in the members or in this process.
func startRig(t *testing.T, rng *rand.Rand, own bool, sync string, silence time.Duration, env ...string) *rig {
	t.Helper()
	r := &rig{t: t, rng: rng, sync: sync, own: own, silence: silence}
	base, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	r.apartURL = "http://" + local4(base+29)
	l := &local{dir: t.TempDir(), sync: sync, base: base, groups: 1}
	for i, id := range localIDs {
		p := &process{env: env, id: id, address: local4(base + i), dir: filepath.Join(l.dir, id), etcd: "http://" + local4(ports(base, i)[2])}
		if p.args = l.args(i); !own {
			p.args = r.serves(p)
		}
		r.members = append(r.members, p)
	}
	r.start()
	return r
}

// serves are the arguments of a member, but for those of an etcd of its own.
func (r *rig) serves(p *process) []string {
	args := []string{"serve", "--dir", filepath.Join(p.dir, "data"), "--sync", r.sync, "--id", p.id, "--addr", p.address}
	if r.own {
		return args
	}
	return append(args, "--etcd", r.apartURL)
}

// start starts the members, and before them the etcd if that is in this process.
func (r *rig) start() {
	t := r.t
	t.Helper()
	endpoints := []string{r.apartURL}
	if r.own {
		endpoints = nil
	} else {
		r.apartDir = t.TempDir()
		r.startEtcd()
		t.Cleanup(func() { r.apart.Close() })
	}
	more := []string{"--bootstrap"}
	for _, p := range r.members {
		if r.own {
			endpoints = append(endpoints, p.etcd)
		}
		p.args = append(p.args, "--insync-timeout", r.silence.String())
		if err := os.MkdirAll(p.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := p.start(more...); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.end(t) })
		more = nil
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	r.records = etcd.New(client, "/stave/default/groups/main")
}

// end ends a member, and looks at its log, which it shows the end of if the test has failed.
func (p *process) end(t *testing.T) {
	p.signal(syscall.SIGCONT)
	p.kill()
	text, err := os.ReadFile(p.log())
	if err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"DATA RACE", "panic: ", "fatal error: "} {
		if bytes.Contains(text, []byte(bad)) {
			t.Errorf("the log of %s has %q", p.id, bad)
		}
	}
	if t.Failed() {
		lines := bytes.Split(text, []byte("\n"))
		t.Logf("log of %s:\n%s", p.id, bytes.Join(lines[max(0, len(lines)-40):], []byte("\n")))
	}
}

// startEtcd starts the etcd in this process, also after it was closed.
func (r *rig) startEtcd() {
	r.t.Helper()
	u, err := url.Parse(r.apartURL)
	if err != nil {
		r.t.Fatal(err)
	}
	conf := embed.NewConfig()
	conf.Dir, conf.LogLevel = r.apartDir, "fatal"
	conf.ListenClientUrls, conf.AdvertiseClientUrls = []url.URL{*u}, []url.URL{*u}
	conf.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	if r.apart, err = embed.StartEtcd(conf); err != nil {
		r.t.Fatal(err)
	}
}

// record is what the group has, or the zero one if etcd does not say so at once.
func (r *rig) record() group.Versioned {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	v, err := r.records.Read(ctx)
	if err != nil {
		return group.Versioned{}
	}
	return v
}

// primary is the member that the record names; nil for none.
func (r *rig) primary() *process {
	name := r.record().Primary
	for _, p := range r.members {
		if p.id == name {
			return p
		}
	}
	return nil
}

// awaitAll waits until all members are in sync.
func (r *rig) awaitAll() {
	r.t.Helper()
	r.eventually("all are in sync", func() bool { return len(r.record().InSync) == len(r.members) })
}

// eventually wants a condition to hold within two minutes.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	r.eventuallyOr(what, holds, func() string { return fmt.Sprintf("the record is %+v", r.record()) })
}

// eventuallyOr says more if it does not.
func (r *rig) eventuallyOr(what string, holds func() bool, more func() string) {
	r.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within two minutes: %s; %s", what, more())
		}
	}
}

// TestKillOfThePrimary kills the primary once, with its etcd: another one takes over with all that was acknowledged, and the first one
// comes back.
func TestKillOfThePrimary(t *testing.T) {
	r := startRig(t, rand.New(rand.NewPCG(1, 1)), true, "interval", 300*time.Millisecond)
	r.awaitAll()
	c := newCaller(r, 1)
	for i := range 100 {
		r.eventually("a write is acknowledged", func() bool { return c.does("SET", fmt.Sprint("k", i), "v") == "OK" })
	}
	killed := r.primary()
	killed.kill()
	r.eventually("another one takes over", func() bool { p := r.primary(); return p != nil && p != killed })
	for i := range 100 {
		got := ""
		r.eventually("a read is answered", func() bool {
			got = c.does("GETEX", fmt.Sprint("k", i))
			return !strings.HasPrefix(got, "-")
		})
		if got != "v" {
			t.Fatalf("k%d was acknowledged, and is %q", i, got)
		}
	}
	if err := killed.start(); err != nil {
		t.Fatal(err)
	}
	r.awaitAll()
}

const terminate = syscall.SIGTERM

// kill kills another process, by SIGKILL.
func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err == nil {
		err = syscall.Kill(n, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}
