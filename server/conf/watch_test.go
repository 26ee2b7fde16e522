package conf_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stavedb/stave/server/conf"
)

// TestWatchAmidOtherFiles: other files of the directory, such as a log that grows all the time, neither make the
// settings be read nor keep them from being read. A link that leads elsewhere is a change of the file.
func TestWatchAmidOtherFiles(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "stave.conf"), filepath.Join(dir, "cert.pem")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	relink := func(to string) {
		t.Helper()
		if err := os.Symlink(to, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	write("stave.conf", "port 1")
	write("one", "certificate 1")
	write("two", "certificate 2")
	relink("one")

	ctx, stop := context.WithCancel(context.Background())
	changed, done := make(chan struct{}, 100), make(chan error, 2)
	go func() {
		done <- conf.Watch(ctx, func() []string { return []string{file, link} }, func() { changed <- struct{}{} }, slog.New(slog.DiscardHandler))
	}()
	go func() {
		for ctx.Err() == nil {
			if err := os.WriteFile(filepath.Join(dir, "log"), []byte("line"), 0o600); err != nil {
				done <- err
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		done <- nil
	}()
	defer func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	wait := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatal("not noticed: ", what)
		}
	}
	wait("what may have changed before it was watched")
	time.Sleep(time.Second)
	if len(changed) > 0 {
		t.Fatal("read again because of another file")
	}
	write("stave.conf", "port 22")
	wait("a file that was written")
	write("stave.conf.new", "port 333")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	wait("a file that was replaced")
	relink("two")
	wait("a link that leads elsewhere")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wait("a file that was removed")
	time.Sleep(time.Second)
	for len(changed) > 0 { // of a file that was found half-written
		<-changed
	}
	time.Sleep(time.Second)
	if len(changed) > 0 {
		t.Error("read again because of another file")
	}
}
