package bitcask_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
)

// TestCloseWaits: Close waits for each kind of transaction that is open, and what it reads until its end is there.
func TestCloseWaits(t *testing.T) {
	for name, begin := range map[string]func(s *bitcask.Store) (*bitcask.Tx, error){
		"a read of a key":  func(s *bitcask.Store) (*bitcask.Tx, error) { return s.Begin(false, "key") },
		"a write of a key": func(s *bitcask.Store) (*bitcask.Tx, error) { return s.Begin(true, "key") },
		"a read of all":    func(s *bitcask.Store) (*bitcask.Tx, error) { return s.BeginAll(false) },
		"a write of all":   func(s *bitcask.Store) (*bitcask.Tx, error) { return s.BeginAll(true) },
		"a hold":           func(s *bitcask.Store) (*bitcask.Tx, error) { return s.BeginHold() },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), &bitcask.Options{Sync: bitcask.SyncNone})
			put(t, s, "key", "value")
			tx, err := begin(s)
			if err != nil {
				t.Fatal(err)
			}
			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			select {
			case err := <-closed:
				t.Fatalf("Close returns beside it: %v", err)
			case <-time.After(200 * time.Millisecond):
			}
			tx.End()
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}
