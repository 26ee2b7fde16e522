//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watched is a file that is watched.
type watched struct {
	name     string
	reported chan struct{}
	stop     func()
}

func watchNew(t *testing.T, w *watcher) *watched {
	f := &watched{name: filepath.Join(t.TempDir(), "LOCK"), reported: make(chan struct{}, 1)}
	must(t, os.WriteFile(f.name, nil, 0o600))
	f.stop = w.add(f.name, f.notify)
	return f
}

func (f *watched) notify() {
	select {
	case f.reported <- struct{}{}:
	default:
	}
}

func (f *watched) want(t *testing.T) {
	t.Helper()
	select {
	case <-f.reported:
	case <-time.After(time.Minute):
		t.Error("nothing is reported")
	}
}

func TestWatchReports(t *testing.T) {
	w := &watcher{notify: map[string][]*func(){}, newWatch: fsnotify.NewWatcher}
	for what, do := range map[string]func(name string) error{
		"removed": os.Remove,
		"renamed": func(name string) error { return os.Rename(name, name+".moved") },
		"replaced": func(name string) error {
			return errors.Join(os.WriteFile(name+".new", nil, 0o600), os.Rename(name+".new", name))
		},
		"with all":  func(name string) error { return os.RemoveAll(filepath.Dir(name)) },
		"two names": func(name string) error { return errors.Join(os.Link(name, name+".other"), os.Remove(name)) },
	} {
		t.Run(what, func(t *testing.T) {
			f, other := watchNew(t, w), watchNew(t, w)
			open, err := os.Open(f.name) // as a store has LOCK
			must(t, err)
			defer open.Close()
			must(t, do(f.name))
			f.want(t)
			f.stop()
			f.stop()
			must(t, os.Remove(other.name))
			other.want(t)
			other.stop()
			if w.system != nil || len(w.notify) > 0 {
				t.Error("the watcher does not end with the last file")
			}
		})
	}
}

// Two stores in one process may watch the same name: one in a directory that was moved, one in what took its place.
func TestWatchOfOneNameForTwo(t *testing.T) {
	w := &watcher{notify: map[string][]*func(){}, newWatch: fsnotify.NewWatcher}
	f := watchNew(t, w)
	must(t, os.Rename(f.name, f.name+".moved"))
	f.want(t)
	must(t, os.WriteFile(f.name, nil, 0o600))
	second := &watched{name: f.name, reported: make(chan struct{}, 1)}
	second.stop = w.add(f.name, second.notify)
	f.stop()
	must(t, os.Remove(f.name))
	second.want(t)
	second.stop()
}

// Where the system gives no watch nothing is reported, and nothing fails.
func TestWatchIsAbsent(t *testing.T) {
	w := &watcher{notify: map[string][]*func(){}, newWatch: func() (*fsnotify.Watcher, error) { return nil, errors.New("too many") }}
	f := watchNew(t, w)
	must(t, os.Remove(f.name))
	f.stop()
	w.newWatch = fsnotify.NewWatcher
	w.add(f.name, f.notify)() // missing
	if w.system != nil {
		t.Error("a watcher of nothing is left")
	}
}

// In a bubble no goroutine may wait for the kernel: its time would stand still.
func TestWatchInABubble(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		held, err := Hold(OS(), dir)
		must(t, err)
		defer held.Close()
		must(t, os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o600))
		stop := held.Watch(filepath.Join(dir, "LOCK"), func() { t.Error("reported") })
		defer stop()
		time.Sleep(time.Hour)
	})
	if ownTime() {
		t.Error("the time outside of a bubble is taken for that of one")
	}
}
