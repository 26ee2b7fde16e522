package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// describeMachine says in one line what the figures were measured on.
func describeMachine(dir string) string {
	return fmt.Sprintf("%d cores (%s), %s, %s, %s", runtime.NumCPU(), cpuModel(), kernel(), fileSystem(dir), runtime.Version())
}

func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	_, rest, _ := bytes.Cut(info, []byte("model name"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.Trim(line, ": \t"))
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	return "Linux " + version
}

// fileSystem names the file system of a directory by its magic number.
func fileSystem(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "unknown file system"
	}
	if name, ok := map[int64]string{0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x01021994: "tmpfs", 0x794C7630: "overlayfs"}[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", st.Type)
}

// cpuTime is what all threads of the process have used, in user and kernel
// mode. On a machine that others use too it says more than the clock does.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
