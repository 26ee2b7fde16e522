package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// TestReadyWhileItFollows: a server that follows is ready until it meets what it cannot read, and says so.
func TestReadyWhileItFollows(t *testing.T) {
	dir := t.TempDir()
	writer, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }() // of what this test destroys
	if err := writer.String("k").Put([]byte("v")); err != nil {
		t.Fatal(err)
	}
	follower, err := db.Open(dir, &db.Options{Follow: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, follower, nil)
	ctx, stop := context.WithCancel(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- v.ServeHTTP(ctx, ln) }()
	defer func() {
		stop()
		if err := errors.Join(<-done, follower.Close()); err != nil {
			t.Error(err)
		}
	}()
	get := func(path string) (status int, body string) {
		t.Helper()
		reply, err := http.Get("http://" + ln.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reply.Body.Close() }()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	if status, body := get("/readyz"); status != 200 || body != "the store is ok\n" {
		t.Errorf("/readyz: %d, %q", status, body)
	}
	if _, body := get("/metrics"); !strings.Contains(body, "\nstave_follow_ok 1\n") || !strings.Contains(body, "\nstave_follow_reloads_total 0\n") {
		t.Errorf("/metrics: %s", body)
	}
	for i, deadline := 0, time.Now().Add(time.Minute); follower.FollowState().Err == nil; i++ {
		if time.Now().After(deadline) {
			t.Fatal("it follows through damage")
		}
		value := fmt.Appendf(nil, "damaged-%d-", i)
		if err := writer.String("bad").Put(value); err != nil {
			t.Fatal(err)
		}
		damage(t, dir, value)
		if err := writer.String("good").Put([]byte("v")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if status, body := get("/readyz"); status != 503 || !strings.Contains(body, "has not followed its writer since 20") {
		t.Errorf("/readyz: %d, %q", status, body)
	}
	if status, _ := get("/healthz"); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
	if _, body := get("/metrics"); !strings.Contains(body, "\nstave_follow_ok 0\n") {
		t.Errorf("/metrics: %s", body)
	}
	alone := newServer(t, openStore(t), nil)
	if strings.Contains(alone.Metrics(), "stave_follow") {
		t.Error("a server that does not follow has figures about it")
	}
}

// damage changes a byte of a value in the log.
func damage(t *testing.T, dir string, value []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(text, value)
		if at < 0 {
			continue
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte("X"), int64(at))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("the value is not in the log")
}
