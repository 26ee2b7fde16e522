package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/cluster/etcd"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/group/grouptest"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// server is an etcd of one member, in this process.
type server struct {
	t    *testing.T
	conf *embed.Config
	run  *embed.Etcd
}

func startEtcd(t *testing.T) *server {
	conf := embed.NewConfig()
	conf.Dir, conf.LogLevel = t.TempDir(), "fatal"
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	conf.ListenClientUrls, conf.ListenPeerUrls = free, free
	v := &server{t: t, conf: conf}
	v.start()
	v.conf.ListenClientUrls = []url.URL{{Scheme: "http", Host: v.address()}} // the same one after a restart
	t.Cleanup(func() { v.run.Close() })
	return v
}

func (v *server) address() string { return v.run.Clients[0].Addr().String() }

func (v *server) start() {
	v.t.Helper()
	run, err := embed.StartEtcd(v.conf)
	if err != nil {
		v.t.Fatal(err)
	}
	v.run = run
	select {
	case <-run.Server.ReadyNotify():
	case <-time.After(time.Minute):
		v.t.Fatal("etcd does not start")
	}
}

func (v *server) client() *clientv3.Client { return v.clientBy(v.address()) }

func (v *server) clientBy(address string) *clientv3.Client {
	v.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = c.Close() })
	return c
}

func record(term uint64) group.Record {
	return group.Record{Term: term, Primary: "a", InSync: []group.Member{{ID: "a", Incarnation: 7}, {ID: "b"}}}
}

func same(a, b group.Versioned) bool {
	return a.Version == b.Version && a.Term == b.Term && a.Primary == b.Primary && slices.Equal(a.InSync, b.InSync)
}

// TestSwap: a record changes by swaps that know its version, and each answer is what is there then.
func TestSwap(t *testing.T) {
	client := startEtcd(t).client()
	s := etcd.New(client, "/stave/test")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want := func(got group.Versioned, err error, version int64, term uint64) {
		t.Helper()
		wanted := group.Versioned{Version: version}
		if version > 0 {
			wanted.Record = record(term)
		}
		if err != nil || !same(got, wanted) {
			t.Errorf("got %+v, %v, want %+v", got, err, wanted)
		}
	}
	got, err := s.Read(ctx)
	want(got, err, 0, 0)
	for _, c := range []struct {
		about         int64
		term          uint64
		version, left int64
	}{{1, 9, 0, 0}, {0, 1, 1, 1}, {0, 9, 1, 1}, {1, 2, 2, 2}, {1, 9, 2, 2}, {3, 9, 2, 2}, {2, 3, 3, 3}} {
		got, err := s.Swap(ctx, group.Swap{If: c.about, Record: record(c.term)})
		want(got, err, c.version, uint64(c.left))
		got, err = s.Read(ctx)
		want(got, err, c.version, uint64(c.left))
	}
	for _, text := range []string{"no record", "null", "{}", `{"term":0,"primary":"a","in_sync":[{"id":"a"}]}`, `{"term":1,"primary":"b","in_sync":[{"id":"a"}]}`} {
		if _, err := client.Put(ctx, "/stave/test", text); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(ctx); err == nil || !strings.Contains(err.Error(), "/stave/test is no record of a group") {
			t.Errorf("of a key that holds %s: %v", text, err)
		}
	}
	ctx, cancel = context.WithCancel(ctx)
	cancel()
	if _, err := s.Swap(ctx, group.Swap{If: 4, Record: record(4)}); err == nil {
		t.Error("a swap without an answer is no error")
	}
}

// seen is what a watch has told.
type seen struct {
	mu   sync.Mutex // guards the rest
	list []group.Versioned
}

func (s *seen) add(v group.Versioned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, v)
}

func (s *seen) await(t *testing.T, version int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		n := len(s.list)
		is := n > 0 && s.list[n-1].Version == version
		s.mu.Unlock()
		if is {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("version %d is not seen, but %+v", version, s.list)
		}
	}
}

// relay passes connections on to a server, unless it is cut.
type relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex // guards the rest
	isCut bool
	conns []net.Conn
}

func startRelay(t *testing.T, to string) *relay {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, to: to}
	var accepting sync.WaitGroup
	accepting.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut(true)
		accepting.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		r.mu.Lock()
		if err != nil || r.isCut {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
		} else {
			r.conns = append(r.conns, in, out)
			go pass(in, out)
			go pass(out, in)
		}
		r.mu.Unlock()
	}
}

// pass copies until one of the connections is closed, and closes both.
func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = from.Close(), to.Close()
}

// cut closes all connections and refuses others, or takes some again.
func (r *relay) cut(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = is
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// TestWatch: a watch tells the record as it is and all changes in order, also after etcd was away and has compacted them.
func TestWatch(t *testing.T) {
	v := startEtcd(t)
	client := v.client()
	s := etcd.New(client, "/stave/test")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	swap := func(about int64) {
		t.Helper()
		if got, err := s.Swap(ctx, group.Swap{If: about, Record: record(uint64(about) + 1)}); err != nil || got.Version != about+1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	var told seen
	var watching sync.WaitGroup
	watched, stop := context.WithCancel(ctx)
	defer watching.Wait()
	defer stop()
	way := startRelay(t, v.address())
	watcher := etcd.New(v.clientBy(way.address()), "/stave/test")
	watching.Go(func() { watcher.Watch(watched, told.add) })
	told.await(t, 0)
	for about := range int64(20) {
		swap(about)
	}
	told.await(t, 20)
	told.mu.Lock()
	for i, got := range told.list {
		if want := (group.Versioned{Version: int64(i), Record: record(uint64(i))}); i > 0 && !same(got, want) {
			t.Errorf("the %d-th is %+v", i, got)
		}
	}
	told.mu.Unlock()
	v.run.Close()
	time.Sleep(500 * time.Millisecond)
	v.start()
	swap(20)
	told.await(t, 21)

	way.cut(true)
	for about := int64(21); about < 30; about++ {
		swap(about)
	}
	r, err := client.Get(ctx, "/stave/test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(ctx, r.Header.Revision); err != nil {
		t.Fatal(err)
	}
	way.cut(false)
	told.await(t, 30)
	swap(30)
	told.await(t, 31)
}

// TestBegin: of groups that would have the same slots one can be begun, also if they are at the same time.
func TestBegin(t *testing.T) {
	client := startEtcd(t).client()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	of := func(slots string) group.Swap {
		r := record(1)
		r.Slots = slots
		return group.Swap{Record: r}
	}
	for round := range 20 {
		prefix := fmt.Sprintf("/stave/c%d/groups/", round)
		var begun atomic.Int32
		var work sync.WaitGroup
		for i := range 8 {
			work.Go(func() {
				s := etcd.New(client, fmt.Sprint(prefix, "g", i))
				for ctx.Err() == nil {
					v, err := s.Swap(ctx, of(fmt.Sprintf("%d-1000", i*100)))
					if taken := new(group.SlotsTakenError); errors.As(err, &taken) {
						return
					}
					if err == nil {
						begun.Add(1)
						if v.Version != 1 {
							t.Errorf("%+v", v)
						}
						return
					}
				}
			})
		}
		work.Wait()
		if n := begun.Load(); n != 1 {
			t.Fatalf("round %d: %d groups have the slot 1000", round, n)
		}
		if v, err := etcd.New(client, prefix+"h").Swap(ctx, of("1001-16383")); err != nil || v.Version != 1 {
			t.Fatal(v, err)
		}
		if v, err := etcd.New(client, prefix+"h").Swap(ctx, of("0")); err != nil || v.Version != 1 || v.Slots != "1001-16383" {
			t.Fatalf("of a group that was begun: %+v, %v", v, err)
		}
	}
}

// TestBeginBesideUnreadable: no group is begun beside one whose record cannot be read, for nobody knows its slots; a key that is none of a group does
// not count.
func TestBeginBesideUnreadable(t *testing.T) {
	client := startEtcd(t).client()
	const prefix = "/stave/unreadable/groups/"
	for key, value := range map[string]string{"a": `{"term":`, "no group/": "x"} {
		if _, err := client.Put(t.Context(), prefix+key, value); err != nil {
			t.Fatal(err)
		}
	}
	b := etcd.New(client, prefix+"b")
	if v, err := b.Swap(t.Context(), group.Swap{Record: record(1)}); err == nil || !strings.Contains(err.Error(), prefix+"a") {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err := client.Delete(t.Context(), prefix+"a"); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Swap(t.Context(), group.Swap{Record: record(1)}); err != nil || v.Version != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
}

// TestWatchOthers: the records of the other groups of a cluster are told as they are and after each change, also after etcd was away.
func TestWatchOthers(t *testing.T) {
	v := startEtcd(t)
	client := v.client()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	way := startRelay(t, v.address())
	var mu sync.Mutex // guards told
	var told string
	var watching sync.WaitGroup
	watched, stop := context.WithCancel(ctx)
	defer watching.Wait()
	defer stop()
	watcher := etcd.New(v.clientBy(way.address()), "/stave/c/groups/own")
	watching.Go(func() {
		watcher.WatchOthers(watched, func(others map[string]group.Record) {
			mu.Lock()
			defer mu.Unlock()
			told = "told:"
			for _, name := range slices.Sorted(maps.Keys(others)) {
				told += fmt.Sprintf(" %s %d %s", name, others[name].Term, others[name].Slots)
			}
		})
	})
	await := func(want string) {
		t.Helper()
		for ; ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			got := told
			mu.Unlock()
			if got == want {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%q is told, and not %q", got, want)
			}
		}
	}
	swap := func(key, slots string, about int64) {
		t.Helper()
		r := record(uint64(about + 1))
		r.Slots = slots
		if got, err := etcd.New(client, key).Swap(ctx, group.Swap{If: about, Record: r}); err != nil || got.Version != about+1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	await("told:")
	swap("/stave/c/groups/own", "0-9", 0)
	swap("/stave/c/groups/g", "10-19", 0)
	await("told: g 1 10-19")
	swap("/stave/other/groups/g", "", 0)
	swap("/stave/c/groups/h", "20-29", 0)
	swap("/stave/c/groups/g", "10-19", 1)
	await("told: g 2 10-19 h 1 20-29")
	way.cut(true)
	swap("/stave/c/groups/h", "20-29", 1)
	way.cut(false)
	await("told: g 2 10-19 h 2 20-29")
	for _, text := range []string{"no record", "{}"} {
		if _, err := client.Put(ctx, "/stave/c/groups/i", text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Put(ctx, "/stave/c/groups/a/b", `{"term":1,"primary":"a","in_sync":[{"id":"a"}]}`); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(ctx, "/stave/c/groups/g", "no record"); err != nil {
		t.Fatal(err)
	}
	await("told: h 2 20-29")
	if _, err := client.Delete(ctx, "/stave/c/groups/h"); err != nil {
		t.Fatal(err)
	}
	await("told:")
}

// TestGroup: a group that has its record in etcd loses nothing acknowledged when members are killed and when etcd is away.
func TestGroup(t *testing.T) {
	v := startEtcd(t)
	g := grouptest.Start(t, etcd.New(v.client(), "/stave/test"))
	g.KillSome(3 * time.Second)
	v.run.Close()
	for began := time.Now(); time.Since(began) < time.Second; {
		g.Write()
	}
	v.start()
	g.Check()
}
