package bitcask

import (
	"context"
	"errors"
	"testing"

	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestWaitingForMaintenanceEnds: what waits for a merge, which may take hours, or for a backup, ends with its context.
func TestWaitingForMaintenanceEnds(t *testing.T) {
	mem := vfs.NewMem()
	s, err := Open("d", &Options{seam: seam.Options{FS: mem}})
	must(t, err)
	for name, wait := range map[string]func(ctx context.Context) error{
		"Check":       func(ctx context.Context) error { _, err := s.Check(ctx, func(Finding) {}); return err },
		"CheckReplay": func(ctx context.Context) error { _, err := s.CheckReplay(ctx, func(Finding) {}); return err },
		"Rewrite":     func(ctx context.Context) error { _, err := s.Rewrite(ctx, nil, RewriteOptions{}); return err },
		"Backup":      func(ctx context.Context) error { _, err := s.Backup(ctx, "copy"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s.maintenanceMu.Lock()
			s.backups.Lock()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- wait(ctx) }()
			select {
			case err := <-ended:
				t.Errorf("it has not waited: %v", err)
			default:
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			s.backups.Unlock()
			s.maintenanceMu.Unlock()
			must(t, wait(t.Context()))
		})
	}
	must(t, s.Close())
}
