package server_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// TestOptionalStoreLocksAsReader: what would write only with STORE does not wait for readers of its key without it, and
// does with it.
func TestOptionalStoreLocksAsReader(t *testing.T) {
	store := openStore(t)
	s := newSession(t, store, nil)
	ask(s, "RPUSH l 2 1\r\nGEOADD g 1 1 m\r\n")
	for _, tt := range []struct {
		cmd   string
		waits bool
	}{
		{"SORT l", false},
		{"SORT l BY nosort GET #", false}, // locks the whole store, as a reader
		{"SORT l STORE d", true},
		{"GEORADIUS g 1 1 5 km", false},
		{"GEORADIUSBYMEMBER g m 5 km ASC", false},
		{"GEORADIUS g 1 1 5 km STORE d", true},
		{"GEORADIUS g 1 1 5 km STOREDIST d", true},
	} {
		t.Run(tt.cmd, func(t *testing.T) {
			if got := waitsForReaders(t, store, s, tt.cmd, tt.waits); got != tt.waits {
				t.Errorf("waits for readers of the keys: %v, want %v", got, tt.waits)
			}
		})
	}
}

// waitsForReaders reports whether a command is answered only after a reader of the keys has ended. One that should not
// wait has time, on a busy machine.
func waitsForReaders(t *testing.T, store *db.Store, s *server.Session, cmd string, expected bool) bool {
	t.Helper()
	patience := time.Minute
	if expected {
		patience = 200 * time.Millisecond
	}
	tx, err := store.Begin(false, "l", "g", "d")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() { answered <- ask(s, cmd+"\r\n") }()
	waited := false
	var reply string
	select {
	case reply = <-answered:
	case <-time.After(patience):
		waited = true
	}
	if _, err := tx.End(nil); err != nil {
		t.Fatal(err)
	}
	if waited {
		reply = <-answered
	}
	if reply == "" || reply[0] == '-' {
		t.Errorf("the reply is %q", reply)
	}
	return waited
}
