package server_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// TestAppendfsyncBesideEverything: appendfsync changes all the time while clients write, the store is merged and
// copied, and another one follows it. No write that was acknowledged is missing, in the store, in a backup that was
// begun after it, or in the follower, and nothing waits for ever.
func TestAppendfsyncBesideEverything(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		dir := t.TempDir()
		store, err := db.Open(dir, &db.Options{SegmentSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }() // a second time, if nothing has failed
		connect := serveStoreBy(t, store, server.Options{Transport: transport})
		follower, err := db.Open(dir, &db.Options{ReadOnly: true, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = follower.Close() }()
		const clients = 4
		var acked [clients]atomic.Int64
		for n := range acked { // so that there is something to be counted from the beginning
			if _, err := store.String(fmt.Sprint("k", n)).Set([]byte("0")); err != nil {
				t.Fatal(err)
			}
		}
		// judge wants no less than was acknowledged.
		judge := func(what string, s *db.Store, least [clients]int64) {
			for n, want := range least {
				value, err := s.String(fmt.Sprint("k", n)).Get()
				if have, _ := strconv.ParseInt(string(value), 10, 64); err != nil || have < want {
					t.Errorf("%s: client %d has %d, and %d was acknowledged: %v", what, n, have, want, err)
				}
			}
		}
		soFar := func() (least [clients]int64) {
			for n := range acked {
				least[n] = acked[n].Load()
			}
			return least
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var work sync.WaitGroup
		for n := range clients {
			c := connect()
			work.Go(func() {
				for i := int64(1); ctx.Err() == nil; i++ {
					c.send(fmt.Sprintf("INCR k%d\r\nSETRANGE v%d %d x\r\n", n, n, i%5000))
					if got := c.line(); got != fmt.Sprintf(":%d", i) {
						t.Errorf("client %d: %q, want %d", n, got, i)
						return
					}
					acked[n].Store(i)
					if got := c.line(); got[0] != ':' {
						t.Errorf("client %d: %q", n, got)
					}
				}
			})
		}
		every := func(do func(i int) error) {
			work.Go(func() {
				i := 0
				for ; ctx.Err() == nil; i++ {
					if err := do(i); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
				if i == 0 {
					t.Error("nothing was done")
				}
			})
		}
		admin, merger := connect(), connect()
		every(func(i int) error {
			admin.send("CONFIG SET appendfsync " + []string{"always", "no", "everysec"}[i%3] + "\r\n")
			if got := admin.line(); got != "+OK" {
				return fmt.Errorf("CONFIG SET: %q", got)
			}
			return nil
		})
		every(func(int) error {
			merger.send("MERGE ALL\r\nPING\r\n")
			for line := ""; line != "+PONG"; {
				if line = merger.line(); line[0] == '-' && !strings.Contains(line, "another merge is running") {
					return fmt.Errorf("MERGE: %q", line)
				}
			}
			return nil
		})
		backups := t.TempDir()
		every(func(i int) error {
			least, to := soFar(), filepath.Join(backups, strconv.Itoa(i))
			if _, err := store.Backup(ctx, to); err != nil {
				return fmt.Errorf("a backup: %w", err)
			}
			s, err := db.Open(to, &db.Options{ReadOnly: true})
			if err != nil {
				return fmt.Errorf("opening a backup: %w", err)
			}
			judge("a backup", s, least)
			return s.Close()
		})
		work.Wait()
		for deadline := time.Now().Add(time.Minute); follower.FollowState().Sequence < store.Stats().Sequence && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		judge("the follower", follower, soFar())
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if store, err = db.Open(dir, nil); err != nil {
			t.Fatal(err)
		}
		judge("opened again", store, soFar())
	})
}
