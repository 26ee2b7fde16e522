//go:build linux || darwin

package cli

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/cli/internal/humanize"
)

// examineLimits looks at the limits of a process as it would be started from here; a server that systemd starts has
// those of its unit. A limit of file sizes would refuse writes before a segment is full.
func examineLimits() []diagnosis {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return []diagnosis{{"descriptors", stateWarning, err.Error(), ""}}
	}
	// The Go runtime raises the soft limit to the hard one, so the latter counts.
	found := []diagnosis{judgeFiles(uint64(limit.Max))}
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil && uint64(limit.Cur) < 2<<30 {
		found = append(found, diagnosis{"file size", stateFailure, fmt.Sprintf("files of at most %s allowed", humanize.Size(int64(limit.Cur))), "lift it (ulimit -f unlimited): a segment has up to 2 GiB"})
	}
	return found
}

// examineDisk looks at the file system of a directory. Bavail leaves out the blocks that only root may fill. A file
// system without a fixed number of inodes, such as btrfs, says 0 of them.
func examineDisk(dir string) []diagnosis {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return []diagnosis{{"file system", stateWarning, err.Error(), ""}}
	}
	free, total := int64(st.Bavail)*int64(st.Bsize), int64(st.Blocks)*int64(st.Bsize)
	found := []diagnosis{judgeFileSystem(fileSystemName(&st)), judgeRoom(free, total, bytesIn(dir), 256<<20)}
	if st.Files > 0 && st.Ffree < 1000 {
		found = append(found, diagnosis{"inodes", stateFailure, fmt.Sprintf("%d left", st.Ffree), "delete files: new segments need them"})
	}
	return found
}
