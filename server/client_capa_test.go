package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// CLIENT CAPA came with Valkey 8.0: a case for each sentence of its documents.
func TestClientCapa(t *testing.T) {
	const (
		sent     = "-REDIRECT 127.0.0.1:1\r\n"
		readonly = "-READONLY You can't write against a read only replica.\r\n"
		alone    = "-ERR This instance has cluster support disabled\r\n"
	)
	v := newServer(t, openStore(t), nil)
	able, unable, admin := v.NewSession(), v.NewSession(), v.NewSession()
	expect := func(s *server.Session, in, want string) {
		t.Helper()
		if got := ask(s, in+"\r\n"); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
	expect(able, "READONLY", alone)
	expect(able, "CLIENT CAPA later REDIRECT", okLine) // a capability that is not known has no effect
	expect(unable, "CLIENT CAPA later", okLine)
	expect(able, "CLIENT CAPA", arityLine("client|capa"))
	expect(able, "SET k v", okLine) // it is a master
	expect(admin, "CLIENT LIST CAPA x", "-ERR Unknown capa found in the provided filter: x\r\n")

	expect(admin, "REPLICAOF 127.0.0.1 1", okLine)
	expect(able, "SET k w", sent)
	expect(able, "GET k", sent)
	expect(able, "PING", "+PONG\r\n") // only what accesses data
	expect(unable, "SET k w", readonly)
	expect(unable, "GET k", "$1\r\nv\r\n")
	expect(unable, "READONLY", alone)
	expect(able, "READONLY", okLine) // reads are executed then
	expect(able, "GET k", "$1\r\nv\r\n")
	expect(able, "SET k w", sent)
	expect(able, "READWRITE", okLine)
	expect(able, "GET k\r\nGET k", sent+sent)
	expect(able, "MULTI\r\nGET k\r\nEXEC", okLine+sent+"-EXECABORT Transaction discarded because of previous errors.\r\n")
	expect(able, "RESET", "+RESET\r\n")
	expect(able, "SET k w", readonly)
	expect(able, "CLIENT CAPA redirect", okLine)
	expect(admin, "REPLICAOF NO ONE", okLine)
	expect(able, "SET k w", okLine)
}

// TestClientCapaOfAWait: a client that waits is redirected as well when its server becomes a replica.
func TestClientCapaOfAWait(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		able, unable := dial(t, address), dial(t, address)
		able.send("CLIENT CAPA redirect\r\nBLPOP none 0\r\n")
		unable.send("CLIENT CAPA later\r\nBLPOP none 0\r\n")
		for began := time.Now(); !strings.Contains(v.Info("clients"), "blocked_clients:2\r\n"); time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal("they do not wait")
			}
		}
		admin := v.NewSession()
		for filter, want := range map[string]string{"CAPA": able.LocalAddr().String(), "NOT-CAPA": unable.LocalAddr().String()} {
			if got := ask(admin, "CLIENT LIST "+filter+" r\r\n"); !strings.Contains(got, "addr="+want) || strings.Count(got, " cmd=blpop ") != 1 {
				t.Errorf("CLIENT LIST %s: %q", filter, got)
			}
		}
		if got := ask(admin, "REPLICAOF 127.0.0.1 1\r\n"); got != okLine {
			t.Fatal(got)
		}
		if got := able.line() + able.line(); got != "+OK-REDIRECT 127.0.0.1:1" {
			t.Errorf("one that can be redirected: %q", got)
		}
		if got := unable.line() + unable.line(); !strings.HasPrefix(got, "+OK-UNBLOCKED") {
			t.Errorf("one that cannot: %q", got)
		}
	})
}
