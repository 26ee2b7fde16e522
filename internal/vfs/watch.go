//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// watcher passes on what the operating system reports about files: one for all stores of the process, for a user has
// few of what the system watches with (128 on Linux, by default).
//
// A single file is watched, not its directory: of a directory every write to a file in it would be reported.
type watcher struct {
	mu       sync.Mutex
	notify   map[string][]*func() // By absolute path.
	system   *fsnotify.Watcher    // nil: no directory is watched.
	newWatch func() (*fsnotify.Watcher, error)
}

var theWatcher = watcher{notify: map[string][]*func(){}, newWatch: fsnotify.NewWatcher}

// add has fn called when something has happened to the file. If the system cannot watch it, nothing will be reported.
func (w *watcher) add(path string, fn func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.system == nil {
		system, err := w.newWatch()
		if err != nil {
			return func() {}
		}
		w.system = system
		go w.run(system)
	}
	if err := w.system.Add(path); err != nil {
		w.endLocked()
		return func() {}
	}
	w.notify[path] = append(w.notify[path], &fn)
	return sync.OnceFunc(func() { w.remove(path, &fn) })
}

func (w *watcher) remove(path string, fn *func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notify[path] = slices.DeleteFunc(w.notify[path], func(f *func()) bool { return f == fn }); len(w.notify[path]) > 0 {
		return
	}
	delete(w.notify, path)
	_ = w.system.Remove(path) // It may be watched no more: the file is gone.
	w.endLocked()
}

// endLocked has the watching end if there is nothing to watch.
func (w *watcher) endLocked() {
	if len(w.notify) > 0 {
		return
	}
	// In the background: Linux takes 10 to 30 ms to close an inotify instance, more than opening and closing a store
	// does. Its reports in that time are dropped.
	go func(system *fsnotify.Watcher) { _ = system.Close() }(w.system)
	w.system = nil
}

// run ends when system is closed.
func (w *watcher) run(system *fsnotify.Watcher) {
	events, errs := system.Events, system.Errors
	for events != nil || errs != nil {
		select {
		case e, more := <-events:
			if !more {
				events = nil
				continue
			}
			w.report(filepath.Clean(e.Name))
		case err, more := <-errs:
			if !more {
				errs = nil
			} else if err != nil {
				w.report("") // Events may be lost.
			}
		}
	}
}

// report calls the watchers of the file, or all if path is empty.
func (w *watcher) report(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, list := range w.notify {
		if path != "" && name != path {
			continue
		}
		for _, fn := range list {
			(*fn)()
		}
	}
}

func (o osHeld) Watch(name string, notify func()) (stop func()) {
	at, err := o.at("watch", name)
	if err != nil || at.dir == nil || ownTime() {
		return func() {}
	}
	// By its path, for lack of another way: if that leads elsewhere by now, its reports are of no use, and do no harm.
	return theWatcher.add(filepath.Join(at.dir.path, at.rel), notify)
}

// ownTime reports whether the caller has a clock of its own, as tests in a bubble of testing/synctest do. Their time
// advances only when all goroutines wait for each other: one that waits for the kernel would stop it.
func ownTime() bool {
	var now unix.Timeval
	if unix.Gettimeofday(&now) != nil {
		return true
	}
	return time.Since(time.Unix(now.Unix())).Abs() > time.Hour
}
