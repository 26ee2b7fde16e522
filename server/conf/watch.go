package conf

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long the files must be left alone before they are read: an editor writes a file in
// several steps.
const settleTime = 200 * time.Millisecond

// state tells one content of a file from another.
type state struct {
	name, target string // what its links lead to
	info         os.FileInfo
}

// statesOf looks at files. One that is not there has no info.
func statesOf(files []string) []state {
	list := make([]state, 0, len(files))
	for _, name := range files {
		target, _ := filepath.EvalSymlinks(name)
		info, err := os.Stat(name)
		if err != nil {
			info = nil
		}
		list = append(list, state{name, target, info})
	}
	return list
}

// equal says whether a file has not changed between two looks at it.
func (a state) equal(b state) bool {
	if a.name != b.name || a.target != b.target || a.info == nil || b.info == nil {
		return a.name == b.name && a.target == b.target && a.info == nil && b.info == nil
	}
	return os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime())
}

// Watch calls changed when a file of settings changes, until ctx ends. files returns those to watch, and is asked again
// after each change: a file may include others. Their directories are watched, not the files, because an editor and
// CONFIG REWRITE replace a file by renaming another one; changes of other files there are ignored. It returns at once if
// there is nothing to watch. Directories that cannot be watched, and errors of the system, are logged.
//
// A notification is a hint: a change that the system does not report is read at the next one. changed is also called
// once after a directory has begun to be watched, for a file may have changed between being read and being watched.
func Watch(ctx context.Context, files func() []string, changed func(), logger *slog.Logger) error {
	if len(files()) == 0 {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the files of settings: %w", err)
	}
	defer watcher.Close()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	var read, seen []state // what has been read by changed, and what the last look has found
	waiting := false       // for the files to be left alone
	look := func() {
		seen, waiting = statesOf(files()), true
		settled.Reset(settleTime)
	}
	watched := map[string]bool{}
	add := func() {
		for _, file := range files() {
			dir := filepath.Dir(file)
			if watched[dir] {
				continue
			}
			if err := watcher.Add(dir); err != nil {
				logger.Warn("a directory with settings cannot be watched; use SIGHUP", "error", err)
				continue
			}
			watched[dir] = true
			look()
		}
	}
	add()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watcher.Events:
			if !open {
				return nil
			}
			if event.Op != fsnotify.Chmod && !waiting {
				look()
			}
		case err, open := <-watcher.Errors:
			if !open {
				return nil
			}
			logger.Warn("watching the files of settings", "error", err)
		case <-settled.C:
			now := statesOf(files())
			if !slices.EqualFunc(now, seen, state.equal) {
				seen = now
				settled.Reset(settleTime)
				continue
			}
			waiting = false
			if !slices.EqualFunc(now, read, state.equal) {
				read = now
				changed()
				add()
			}
		}
	}
}
