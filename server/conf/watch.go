package conf

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long the files must be left alone before they are read: an editor writes a file in
// several steps.
const settleTime = 200 * time.Millisecond

// Watch calls changed when a file of settings changes, until ctx ends. files returns those to watch, and is asked again
// after each change: a file may include others. Their directories are watched, not the files, because an editor and
// CONFIG REWRITE replace a file by renaming another one. It returns at once if there is nothing to watch. Directories
// that cannot be watched, and errors of the system, are logged.
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
			settled.Reset(settleTime)
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
			if !event.Has(fsnotify.Chmod) || event.Op != fsnotify.Chmod {
				settled.Reset(settleTime)
			}
		case err, open := <-watcher.Errors:
			if !open {
				return nil
			}
			logger.Warn("watching the files of settings", "error", err)
		case <-settled.C:
			changed()
			add()
		}
	}
}
