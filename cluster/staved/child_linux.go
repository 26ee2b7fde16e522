package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// setChild has a child end when this process does, also by SIGKILL. A signal of the terminal is for this process alone.
func setChild(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}

// runChild keeps the thread that starts it: the child would end with that.
func runChild(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}
