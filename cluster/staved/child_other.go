//go:build !linux

package main

import "os/exec"

func setChild(*exec.Cmd) {}

func runChild(cmd *exec.Cmd) error { return cmd.Run() }
