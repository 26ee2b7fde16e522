package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestHealthDoesNotWaitForTheDashboard: requests of the dashboard that wait for a lock leave /healthz and /metrics
// answered.
func TestHealthDoesNotWaitForTheDashboard(t *testing.T) {
	store := openStore(t)
	v := newServer(t, store, nil)
	if got := do(v.NewSession(), "SET", "k", "v"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	base := serveHTTP(t, v)
	tx, err := store.Begin(true, "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	ended := make(chan int, 20)
	for range cap(ended) {
		asking.Go(func() {
			r, err := http.NewRequestWithContext(ctx, "GET", base+"/api/key?key=aw", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if reply, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, reply.Body)
				_ = reply.Body.Close()
				ended <- reply.StatusCode
			}
		})
	}
	if status := <-ended; status != http.StatusServiceUnavailable { // more than may wait at a time
		t.Errorf("one of %d requests: %d", cap(ended), status)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		reply, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, reply.Status)
		}
	}
	if _, err := tx.End(nil); err != nil {
		t.Error(err)
	}
	stop()
	asking.Wait()
}

// TestDashboardFillsNoACLLog: a page for a user who may see some keys only does not drive other denials out of ACL LOG.
func TestDashboardFillsNoACLLog(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	for i := range 300 {
		do(s, "SET", fmt.Sprint("other:", i), "v")
	}
	do(s, "SET", "own:1", "v")
	if got := do(s, "ACL", "SETUSER", "limited", "on", ">secret", "~own:*", "+@all"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	p := page{t: t, base: serveHTTP(t, v), user: "limited", password: "secret"}
	if got := p.keys(map[string][]string{}); len(got) != 1 || got[0] != "own:1" {
		t.Errorf("keys: %q", got)
	}
	if status, body, _ := p.get("/api/types", nil); status != http.StatusOK {
		t.Errorf("types: %d %s", status, body)
	}
	if got := do(s, "ACL", "LOG"); got != "*0\r\n" {
		t.Errorf("ACL LOG has %d entries", strings.Count(got, "reason"))
	}
}

// TestDashboardLongKeys: the browser finds keys of which one step of SCAN would be too long a reply.
func TestDashboardLongKeys(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	long := strings.Repeat("k", 50_000)
	for i := range 200 {
		if got := do(s, "SET", fmt.Sprint(long, i), "v"); got != "+OK\r\n" {
			t.Fatal(got)
		}
	}
	p := page{t: t, base: serveHTTP(t, v)}
	for _, match := range []string{"", "k*"} {
		if got := p.keys(map[string][]string{"match": {match}}); len(got) != 200 {
			t.Errorf("MATCH %q: %d keys", match, len(got))
		}
	}
}
