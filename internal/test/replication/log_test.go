package replication_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/redisserver"
	"github.com/stavedb/stave/server"
)

// lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestRefusalsAreLoggedRarely: a replica that is refused for now asks again and again, and few lines of the log say so; none of them is
// an error.
func TestRefusalsAreLoggedRarely(t *testing.T) {
	var log lockedBuffer
	address, _ := serve(t, dbtest.New(t), &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := dial(t, address)
	r := redisserver.StartMaster(t, "")
	c.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, dial(t, r.Socket), c)
	id := c.info("replication", "master_replid")
	ahead := strconv.FormatInt(offset(t, c)+1_000_000, 10)
	for range 40 {
		replica := dial(t, address)
		replica.must("REPLCONF", "listening-port", "7777", "capa", "eof", "capa", "psync2")
		want(t, replica, "(error) NOMASTERLINK...", "PSYNC", id, ahead)
		_ = replica.conn.Close()
	}
	await(t, "they are counted", func() bool { return strings.Contains(log.String(), "visits=32") })
	if n := strings.Count(log.String(), "NOMASTERLINK"); n != 6 || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// TestUnknownIDIsNotKept: what a replica says is the id that it knows may be anything: it gets everything, and the text is neither kept
// nor logged.
func TestUnknownIDIsNotKept(t *testing.T) {
	var log lockedBuffer
	address, _ := serve(t, dbtest.New(t), &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, id := range []string{strings.Repeat("x", 1<<20), "", strings.Repeat("g", 40), strings.Repeat("a", 40)} {
		replica := dial(t, address)
		replica.must("REPLCONF", "capa", "eof", "capa", "psync2")
		want(t, replica, "FULLRESYNC ...", "PSYNC", id, "1")
		_ = replica.conn.Close()
	}
	if text := log.String(); strings.Contains(text, "xxx") || strings.Contains(text, "ggg") || !strings.Contains(text, "aaa") {
		t.Errorf("%.2000s", text)
	}
}
