package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// runFirst has all threads of the process, and what it will start, run before all else, until end.
func runFirst() (end func() error, err error) {
	end = func() error { return schedule(unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}) }
	if err := schedule(unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// schedule has the kernel schedule all threads like that.
func schedule(a unix.SchedAttr) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err == nil {
			err = unix.SchedSetAttr(id, &a, 0)
		}
		if err != nil && err != unix.ESRCH { // one that has ended
			return fmt.Errorf("scheduling thread %s: %w", task.Name(), err)
		}
	}
	return nil
}
