package server_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// TestDeleteAwaitsRoomAlongsideAScript: a delete on a full disk waits for a merge, and is not told BUSY by a script that
// lasts and holds another key.
func TestDeleteAwaitsRoomAlongsideAScript(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		mem := vfs.NewMem()
		mem.SetLimit(16<<20, 4<<10)
		store, err := db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() }) // its disk is full
		n := 0
		for ; err == nil; n++ {
			err = store.String(fmt.Sprint("k", n)).Put(make([]byte, 1000))
		}
		if !errors.Is(err, db.ErrNoSpace) {
			t.Fatal(err)
		}
		store.Log().Attend() // by somebody whose merge lasts
		defer store.Log().Leave()
		next := 0
		for waits := false; !waits; next++ {
			if next == n {
				t.Fatal("no delete waits")
			}
			tx, ok, err := serverside.DB.TryBegin(store, true, nil, "k")
			if err != nil {
				t.Fatal(err)
			}
			if waits = !ok; waits {
				break
			}
			if _, err := tx.End(nil); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Key(fmt.Sprint("k", next)).Delete(); err != nil {
				t.Fatal(err)
			}
		}
		connect := serveStoreBy(t, store, server.Options{Transport: transport})
		script, c := connect(), connect()
		c.send("CONFIG SET busy-reply-threshold 1\r\n")
		c.expect("+OK\r\n")
		script.send(evalText("redis.call('EXISTS', KEYS[1]) while true do end", "1", "held"))
		time.Sleep(100 * time.Millisecond)
		c.send(wireText("DEL", fmt.Sprint("k", next)))
		var merging sync.WaitGroup
		defer merging.Wait()
		merging.Go(func() {
			time.Sleep(500 * time.Millisecond)
			for range 3 { // it has done what it could
				store.Log().Tried()
			}
		})
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if line := c.line(); strings.HasPrefix(line, "-BUSY") {
			t.Error(line)
		}
		c.until("SCRIPT KILL", "+OK")
	})
}
