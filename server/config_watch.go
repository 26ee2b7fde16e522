package server

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long the files must be left alone before they are read: an editor writes a file in
// several steps.
const settleTime = 200 * time.Millisecond

// WatchConfig calls Reload when the file of settings or one that it includes changes, until ctx ends. It
// watches their directories, not the files, because an editor and CONFIG REWRITE replace a file by renaming
// another one. further are paths whose change means a reload too, such as certificates. It returns at once if
// there is nothing to watch.
//
// A notification is a hint: a change that the system does not report is read at the next one, or when the
// program calls Reload, as stave does for SIGHUP.
func (v *Server) WatchConfig(ctx context.Context, further ...string) error {
	files := append(v.config.Watched(), further...)
	if len(files) == 0 {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the files of settings: %w", err)
	}
	defer watcher.Close()
	watched := map[string]bool{}
	add := func(files []string) {
		for _, file := range files {
			dir := filepath.Dir(file)
			if watched[dir] {
				continue
			}
			if err := watcher.Add(dir); err != nil {
				v.options.Logger.Warn("a directory with settings cannot be watched; use SIGHUP", "error", err)
				continue
			}
			watched[dir] = true
		}
	}
	add(files)
	settled := time.NewTimer(time.Hour)
	settled.Stop()
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
			v.options.Logger.Warn("watching the files of settings", "error", err)
		case <-settled.C:
			if err := v.Reload(); err != nil {
				v.options.Logger.Error("reload failed", "error", err)
			}
			add(v.config.Watched())
		}
	}
}
