package db_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
)

// TestFullTmpfsIsFreedByDeletes is TestFullDiskIsFreedByDeletes on file systems of the kernel.
func TestFullTmpfsIsFreedByDeletes(t *testing.T) {
	seed := chance.Seed(t)
	for i := range max(*fullDisks/8, 1) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			d := &filledDisk{T: t, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
			d.draw()
			d.dir = mountTmpfs(t, d.size)
			d.freed()
		})
	}
}

// mountTmpfs mounts a file system of some bytes for a test.
func mountTmpfs(t *testing.T, bytes int64) (dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	dir = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprint("size=", bytes), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount: %s", out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}
