package server_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/db"
)

// TestBackupOverHTTP: a server that writes and merges sends all of its store as of one moment, to who may have all of it.
func TestBackupOverHTTP(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	for i := range 200 {
		ask(s, fmt.Sprintf("MULTI\r\nSET a:%d %d\r\nSET b:%d %d\r\nEXEC\r\n", i, i, i, i))
	}
	ask(s, "ACL SETUSER some on >pw ~a:* +@all\r\nACL SETUSER reader on >pw ~* +@read +ping\r\nACL SETUSER all on >pw %R~* +@all\r\n")
	base := serveHTTP(t, v)
	fetch := func(user string) (status int, dir string) {
		t.Helper()
		r, err := http.NewRequest("GET", base+"/backup", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Close = true; user != "" {
			r.SetBasicAuth(user, "pw")
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		if reply.StatusCode == http.StatusOK {
			dir = extract(t, reply.Body)
		}
		return reply.StatusCode, dir
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		other := v.NewSession()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				ask(other, fmt.Sprintf("MULTI\r\nSET a:%d x%d\r\nSET b:%d x%d\r\nEXEC\r\n", n%200, n, n%200, n))
			}
		}
	}()
	for _, who := range []string{"", "all"} {
		status, dir := fetch(who)
		if status != http.StatusOK {
			t.Fatalf("%q: %d", who, status)
		}
		store, err := db.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			a, err1 := store.String(fmt.Sprint("a:", i)).Get()
			b, err2 := store.String(fmt.Sprint("b:", i)).Get()
			if err := errors.Join(err1, err2); err != nil || string(a) != string(b) {
				t.Fatalf("half a transaction: %q, %q, %v", a, b, err)
			}
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-done
	for who, want := range map[string]int{"some": http.StatusForbidden, "reader": http.StatusForbidden} {
		if status, _ := fetch(who); status != want {
			t.Errorf("%s: %d", who, status)
		}
	}
	ask(s, "CONFIG SET requirepass secret\r\n")
	if status, _ := fetch(""); status != http.StatusUnauthorized {
		t.Errorf("without the password: %d", status)
	}
}

// extract puts the files of an archive into a new directory.
func extract(t *testing.T, r io.Reader) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(archive)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
