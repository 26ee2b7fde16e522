package dashboard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// anyone is a client who may do everything.
type anyone struct{}

func (anyone) Do(context.Context, ...string) (resp.Reply, error) { return resp.Reply{}, nil }
func (anyone) May(...string) bool                                { return true }
func (anyone) MayReadAllKeys(...string) bool                     { return true }

// reader is a client who may not read every key.
type reader struct{ anyone }

func (reader) MayReadAllKeys(...string) bool { return false }

func serveBackup(t *testing.T, backupTo func(ctx context.Context, w io.Writer) error) *httptest.Server {
	t.Helper()
	return serveBackupTo(t, func() Client { return anyone{} }, backupTo)
}

func serveBackupTo(t *testing.T, client func() Client, backupTo func(ctx context.Context, w io.Writer) error) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(Handler(Backend{Connect: func(string) Client { return client() }, BackupTo: backupTo}))
	s.Config.ReadTimeout, s.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// A reader of a backup who takes none of it any more is given up, and the next one is served.
func TestBackupOfASlowReader(t *testing.T) {
	defer func(d time.Duration) { backupStall = d }(backupStall)
	backupStall = 200 * time.Millisecond
	ended := make(chan error, 1)
	s := serveBackup(t, func(_ context.Context, w io.Writer) (err error) {
		for b := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(b)
		}
		ended <- err
		return err
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a write that nobody reads succeeds")
	}
}

// A backup takes longer than other requests may, is one at a time, and one that fails is no whole reply.
func TestBackupIsWholeOrCutOff(t *testing.T) {
	fails := []error{nil, errors.New("the disk"), io.ErrUnexpectedEOF} // of the backups, one after the other
	var calls atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := serveBackup(t, func(ctx context.Context, w io.Writer) error {
		fail := fails[calls.Add(1)-1]
		if errors.Is(fail, io.ErrUnexpectedEOF) {
			return fail // before the first byte
		}
		if _, err := io.WriteString(w, "half "); err != nil {
			return err
		}
		begun <- struct{}{}
		<-goOn
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fail == nil {
			_, err := io.WriteString(w, "whole")
			return err
		}
		return fail
	})
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // with it a request on an old connection would be repeated
	get := func(want int) (string, error) {
		t.Helper()
		reply, err := client.Get(s.URL + "/backup")
		if err != nil {
			return "", err
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		if reply.StatusCode != want {
			t.Errorf("status %d, want %d: %s", reply.StatusCode, want, body)
		}
		return string(body), err
	}
	during := func() {
		<-begun
		get(http.StatusServiceUnavailable)
		time.Sleep(300 * time.Millisecond) // beyond the limits of other requests
		goOn <- struct{}{}
	}
	go during()
	if body, err := get(http.StatusOK); body != "half whole" || err != nil {
		t.Errorf("a backup is %q, %v", body, err)
	}
	go during()
	if body, err := get(http.StatusOK); err == nil {
		t.Errorf("half a backup is a whole reply: %q", body)
	}
	if body, err := get(http.StatusInternalServerError); err != nil || !strings.Contains(body, "unexpected EOF") {
		t.Errorf("a backup that cannot begin: %q, %v", body, err)
	}
}

// Who may not read a backup is told so also while another one is being read, and does not take its place.
func TestBackupChecksRightsFirst(t *testing.T) {
	var strangers atomic.Bool
	begun, goOn := make(chan struct{}), make(chan struct{})
	client := func() Client {
		if strangers.Load() {
			return reader{}
		}
		return anyone{}
	}
	s := serveBackupTo(t, client, func(_ context.Context, w io.Writer) error {
		close(begun)
		<-goOn
		_, err := io.WriteString(w, "whole")
		return err
	})
	first := make(chan error, 1)
	go func() {
		r, err := http.Get(s.URL + "/backup")
		if err == nil {
			err = r.Body.Close()
		}
		first <- err
	}()
	<-begun
	strangers.Store(true)
	r, err := http.Get(s.URL + "/backup")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil || r.StatusCode != http.StatusForbidden {
		t.Errorf("status %d, %v", r.StatusCode, err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
