package server_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// TestLatencySpikes: executions that take as long as the threshold, those of one second as one, the slowest.
func TestLatencySpikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, openStore(t), &server.Options{Debug: true}).NewSession()
		for _, tt := range [][2]string{
			{"LATENCY LATEST", "*0\r\n"},
			{"DEBUG SLEEP 0.3", "+OK\r\n"},
			{"LATENCY LATEST", "*0\r\n"},
			{"CONFIG SET latency-monitor-threshold 100", "+OK\r\n"},
			{"DEBUG SLEEP 0.3", "+OK\r\n"},
			{"DEBUG SLEEP 0.05", "+OK\r\n"},
			{"DEBUG SLEEP 1", "+OK\r\n"},
			{"DEBUG SLEEP 0.2", "+OK\r\n"},
			// The clock of a bubble starts at midnight UTC, 2000-01-01.
			{"LATENCY LATEST", "*1\r\n*4\r\n$7\r\ncommand\r\n:946684801\r\n:1000\r\n:1000\r\n"},
			{"LATENCY HISTORY command", "*2\r\n*2\r\n:946684800\r\n:300\r\n*2\r\n:946684801\r\n:1000\r\n"},
			{"LATENCY HISTORY nope", "*0\r\n"},
			{"LATENCY GRAPH nope", "-ERR No samples available for event 'nope'\r\n"},
			{"LATENCY RESET nope", ":0\r\n"},
			{"LATENCY RESET command", ":1\r\n"},
			{"LATENCY RESET", ":0\r\n"},
			{"LATENCY LATEST", "*0\r\n"},
		} {
			if got := ask(s, tt[0]+"\r\n"); got != tt[1] {
				t.Errorf("%s: %q, want %q", tt[0], got, tt[1])
			}
		}
		for i := range 200 {
			ask(s, fmt.Sprintf("DEBUG SLEEP %v\r\n", 1+float64(i%7)/10))
		}
		reply, _, err := resp.Decode([]byte(ask(s, "LATENCY HISTORY command\r\n")))
		if err != nil || len(reply.Items) != 160 {
			t.Errorf("%d spikes, %v", len(reply.Items), err)
		}
		graph := ask(s, "LATENCY GRAPH command\r\n")
		if !strings.Contains(graph, "command - high 1600 ms, low 1000 ms (all time high 1600 ms)\n") || !strings.Contains(graph, "_o|#") && !strings.Contains(graph, "#") {
			t.Error(graph)
		}
		if doctor := ask(s, "LATENCY DOCTOR\r\n"); !strings.Contains(doctor, "command: 160 spikes, ") {
			t.Error(doctor)
		}
	})
}

// TestLatencyHistogram: sums up to powers of two of microseconds, by Redis's bounds.
func TestLatencyHistogram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, openStore(t), &server.Options{Debug: true}).NewSession()
		for _, seconds := range []string{"0.001", "0.0015", "0.003", "0.0000329", "1"} {
			ask(s, "DEBUG SLEEP "+seconds+"\r\n")
		}
		const want = "*2\r\n$5\r\ndebug\r\n*4\r\n$5\r\ncalls\r\n:5\r\n$14\r\nhistogram_usec\r\n*10\r\n:66\r\n:1\r\n:1056\r\n:2\r\n:2113\r\n:3\r\n:4227\r\n:4\r\n:1082130\r\n:5\r\n"
		for _, names := range []string{" debug", " nope DEBUG"} {
			if got := ask(s, "LATENCY HISTOGRAM"+names+"\r\n"); got != want {
				t.Errorf("%q", got)
			}
		}
		if got := ask(s, "INFO latencystats\r\n"); !strings.Contains(got, "latency_percentiles_usec_debug:p50=1572.864,p99=1006632.960,p99.9=1006632.960\r\n") {
			t.Errorf("%q", got)
		}
		ask(s, "CONFIG GET port\r\nCLIENT ID\r\n")
		if got := ask(s, "LATENCY HISTOGRAM config client\r\n"); !strings.HasPrefix(got, "*4\r\n$10\r\nconfig|get\r\n") || !strings.Contains(got, "client|id") {
			t.Errorf("%q", got)
		}
		if got := ask(s, "HELLO 3\r\nLATENCY HISTOGRAM debug\r\n"); !strings.Contains(got, "%1\r\n$5\r\ndebug\r\n%2\r\n$5\r\ncalls\r\n:5\r\n$14\r\nhistogram_usec\r\n%5\r\n") {
			t.Errorf("%q", got)
		}
		ask(s, "HELLO 2\r\nCONFIG RESETSTAT\r\n")
		if got := ask(s, "LATENCY HISTOGRAM debug\r\n"); got != "*0\r\n" {
			t.Errorf("after CONFIG RESETSTAT: %q", got)
		}
	})
}

// TestBackgroundMergeOnRequest: BGREWRITEAOF merges what the policy picks, though nothing triggers it.
func TestBackgroundMergeOnRequest(t *testing.T) {
	store, err := db.Open(t.TempDir(), &db.Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v := newServer(t, store, nil)
	s := v.NewSession()
	for range 10 {
		s.Do([][]byte{[]byte("SET"), []byte("k"), []byte(strings.Repeat("x", 30_000))})
	}
	before := store.Merger().Status().Merges
	if got := ask(s, "BGREWRITEAOF\r\n"); got != "+Background append only file rewriting started\r\n" && !strings.Contains(got, "already in progress") {
		t.Errorf("%q", got)
	}
	for end := time.Now().Add(time.Minute); store.Merger().Status().Merges == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no merge")
		}
	}
	idle, err := db.Open(t.TempDir(), &db.Options{NoMerge: true})
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	s = newSession(t, idle, nil)
	if got := ask(s, "BGREWRITEAOF\r\n"); !strings.HasPrefix(got, "-ERR This store does not merge in the background.") {
		t.Errorf("%q", got)
	}
}
