package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// TestTimeToAuthAndReset: RESET gives a client that had authenticated all the time that it likes, and no more to one that
// had not.
func TestTimeToAuthAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := db.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ln := newPipeListener()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, ln, store, &server.Options{RequirePass: "secret"}) }()

		pooled := ln.dial(t)
		pooled.sendArray("AUTH", "secret")
		pooled.expect("+OK\r\n")
		for range 3 {
			pooled.sendArray("RESET")
			pooled.expect("+RESET\r\n")
			time.Sleep(time.Hour)
			pooled.sendArray("PING")
			pooled.expect("-NOAUTH Authentication required.\r\n")
		}
		pooled.sendArray("AUTH", "secret")
		pooled.expect("+OK\r\n")

		began, unknown := time.Now(), ln.dial(t)
		for time.Since(began) < 9*time.Second {
			unknown.sendArray("RESET")
			unknown.expect("+RESET\r\n")
			time.Sleep(time.Second)
		}
		if _, err := unknown.in.ReadByte(); err == nil || time.Since(began) > 12*time.Second {
			t.Errorf("a client that sends RESET has stayed for %v, %v", time.Since(began), err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
