//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/db"
)

// TestArchiveURL: a program takes archives at URLs that it has a driver for; of others it says which it takes, and with
// --check-config, too.
func TestArchiveURL(t *testing.T) {
	dir := t.TempDir()
	to, err := archive.OpenDirectory(filepath.Join(dir, "archive"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := db.Open(filepath.Join(dir, "data"), &db.Options{Archive: &archive.Options{To: to, Every: 10 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.String("key").Put([]byte("value")); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); store.Stats().Archive.Bases == 0 || store.Stats().Archive.Behind > 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("%+v", store.Stats().Archive)
		}
	}
	driven := &cli.Program{Archives: map[string]func(string) (archive.Store, error){
		"bucket": func(url string) (archive.Store, error) {
			return archive.OpenDirectory(filepath.Join(dir, strings.TrimPrefix(url, "bucket://")))
		},
	}}
	runs := func(p *cli.Program, want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if status := p.Run(append([]string{"stave"}, args...), nil, &stdout, &stderr); status != want {
			t.Errorf("%q: status %d, want %d: %s", args, status, want, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	runs(driven, 0, "restore", "--archive", "bucket://archive", filepath.Join(dir, "restored"))
	if out := runs(driven, 0, "exec", "--dir", filepath.Join(dir, "restored"), "GET", "key"); out != "value\n" {
		t.Errorf("%q", out)
	}
	if out := runs(driven, 0, "restore", "--archive", "bucket://archive", "--list"); strings.Count(out, "\n") != 1 {
		t.Errorf("%q", out)
	}
	if out := runs(driven, 2, "restore", "--archive", "other://key:hid/hidden@place", "--list"); strings.Contains(out, "hid") || !strings.Contains(out, "other://place") {
		t.Errorf("%s", out)
	}
	file := filepath.Join(dir, "stave.conf")
	if err := os.WriteFile(file, []byte("archive other://place\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"serve", "--dir", filepath.Join(dir, "new"), "--archive", "other://place"}, {"serve", "--config", file, "--dir", filepath.Join(dir, "new")},
		{"serve", "--check-config", file}, {"restore", "--archive", "other://place", "--list"}, {"restore", "--archive", "other://place", filepath.Join(dir, "x")},
	} {
		if out := runs(driven, 2, args...); !strings.Contains(out, "no driver for other:// here. An archive is a directory, or bucket://") {
			t.Errorf("%q: %s", args, out)
		}
		if out := runs(new(cli.Program), 2, args...); !strings.Contains(out, "stave-s3, the program in contrib/s3") {
			t.Errorf("%q: %s", args, out)
		}
	}
}

// refusing is an archive that takes nothing.
type refusing struct{ archive.Store }

func (refusing) Put(context.Context, string, io.Reader) error { return errors.New("no room") }

// TestArchive: stave archive brings an archive up to date with a store that no other process has open.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	data, place := filepath.Join(dir, "data"), filepath.Join(dir, "archive")
	for n := range 3 {
		want(t, "OK\n", "", 0, "", "exec", "--dir", data, "SET", fmt.Sprint("k", n), "1")
		out, stderr, status := run("", "archive", data, place)
		if says := fmt.Sprintf("archived all up to sequence %d in ", n+1); status != 0 || !strings.HasPrefix(out, says) {
			t.Fatalf("status %d, %s%s", status, out, stderr)
		}
	}
	out, stderr, status := run("", "archive", data, place, "--json")
	if status != 0 || !strings.Contains(out, `"sequence":3,`) || !strings.Contains(out, `"bases":1,`) {
		t.Errorf("status %d, %s%s", status, out, stderr)
	}
	for n := 1; n <= 3; n++ {
		to := filepath.Join(dir, fmt.Sprint("restored", n))
		if _, stderr, status := run("", "restore", "--archive", place, "--to", fmt.Sprint(n), to); status != 0 {
			t.Fatalf("status %d, %s", status, stderr)
		}
		want(t, fmt.Sprintln(n), "", 0, "", "exec", "--dir", to, "DBSIZE")
	}
	store, err := db.Open(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "", "locked by", 3, "", "archive", data, place)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, "", "outside", 2, "", "archive", data, filepath.Join(data, "archive"))
	want(t, "", "takes the place", 2, "", "archive")
	want(t, "", "no such file", 3, "", "archive", filepath.Join(dir, "nothing"), place)
	if _, err := os.Stat(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a store was made")
	}
}

// TestArchiveRefused: an archive that takes nothing is an error, after a while, and the store is closed.
func TestArchiveRefused(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	want(t, "OK\n", "", 0, "", "exec", "--dir", data, "SET", "k", "1")
	full := &cli.Program{Archives: map[string]func(string) (archive.Store, error){"full": func(string) (archive.Store, error) {
		to, err := archive.OpenDirectory(filepath.Join(dir, "full"))
		return refusing{to}, err
	}}}
	var errs bytes.Buffer
	if status := full.Run([]string{"stave", "archive", data, "full://x"}, nil, io.Discard, &errs); status != 1 || !strings.Contains(errs.String(), "no room") {
		t.Errorf("status %d, %s", status, &errs)
	}
	want(t, "1\n", "", 0, "", "exec", "--dir", data, "DBSIZE")
}
