package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	trialTime    = 2 * time.Second  // for opening, reading and closing
	startTime    = 30 * time.Second // for the process to begin
	trialsEach   = 50               // of one process; engines that do not open may leak
	failuresEach = 10
	trialSpace   = 32 << 30 // bytes of addresses: a damaged length must not take the machine's memory
)

// Messages of a process besides outcomes.
const (
	trialReady = "ready"
	trialDone  = "done"
)

// trials opens damaged stores in processes of their own.
type trials struct {
	name   string // of the workload
	root   string
	victim *victim

	cmd      *exec.Cmd // nil: none runs
	in       io.WriteCloser
	replies  chan string
	made     int // trials of this process
	failures int // stores that it could not open
	dirs     int
}

// all makes every fault, after a look whether the store is sound without one.
func (t *trials) all(stride int) (counts [faultKinds][outcomes]int, err error) {
	out, err := t.verdict(nil)
	if err == nil && out != asItWas {
		err = fmt.Errorf("a copy without damage: %s", outcomeNames[out])
	}
	if err != nil {
		return counts, err
	}
	for f := range t.victim.faults(stride) {
		out, err := t.verdict(&f)
		if err != nil {
			return counts, err
		}
		counts[f.kind][out]++
	}
	return counts, nil
}

// verdict makes one fault. What seems to crash is tried once more, by a fresh
// process: it may have been left over from another store, or the machine busy.
func (t *trials) verdict(f *fault) (outcome, error) {
	out, err := t.once(f)
	if err == nil && out == crashed {
		out, err = t.once(f)
	}
	return out, err
}

// once writes the store, has it read, and removes it.
func (t *trials) once(f *fault) (outcome, error) {
	if t.made >= trialsEach || t.failures >= failuresEach {
		t.kill()
	}
	if t.cmd == nil {
		if err := t.start(); err != nil {
			return 0, err
		}
	}
	t.dirs++
	t.made++
	dir := filepath.Join(t.root, strconv.Itoa(t.dirs))
	if err := t.victim.write(dir, f); err != nil {
		return 0, err
	}
	out := t.ask(dir)
	if out == notOpened {
		t.failures++
	}
	return out, os.RemoveAll(dir)
}

// ask has the process read a store. If it ends or hangs when everything is read,
// in the close, what it read counts if that was wrong.
func (t *trials) ask(dir string) outcome {
	out := crashed
	if _, err := fmt.Fprintln(t.in, dir); err != nil {
		t.kill()
		return out
	}
	late := time.After(trialTime)
	for {
		select {
		case line, ok := <-t.replies:
			if ok && line == trialDone {
				return out
			}
			n, err := strconv.Atoi(line)
			if ok && err == nil {
				out = outcome(n)
				continue
			}
		case <-late:
		}
		t.kill()
		if out != wrong && out != old && out != missing {
			out = crashed
		}
		return out
	}
}

// start begins a process, and waits for it.
func (t *trials) start() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, "-child", t.name, "-step", "1", "-dir", t.root)
	cmd.ExtraFiles = []*os.File{to} // engines may print
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	err = errors.Join(err, to.Close())
	if err != nil {
		return errors.Join(err, from.Close())
	}
	replies := make(chan string, 3) // of one trial and the greeting
	go func() {
		defer close(replies)
		defer from.Close()
		for s := bufio.NewScanner(from); s.Scan(); {
			replies <- s.Text()
		}
	}()
	t.cmd, t.in, t.replies, t.made, t.failures = cmd, in, replies, 0, 0
	select {
	case line := <-replies:
		if line == trialReady {
			return nil
		}
	case <-time.After(startTime):
	}
	t.kill()
	return errors.New("the process that reads damaged stores does not start")
}

// kill ends the process.
func (t *trials) kill() {
	if t.cmd == nil {
		return
	}
	_ = t.cmd.Process.Kill() // it may have ended by itself
	_ = t.cmd.Wait()         // it was killed
	t.cmd = nil
}

// serveTrials is that process: it opens the stores that it is given, reads and closes them. If its
// parent is gone it removes them all.
func serveTrials(c *child) error {
	limit := syscall.Rlimit{Cur: trialSpace, Max: trialSpace}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	replies := os.NewFile(3, "replies")
	say := func(what any) {
		if _, err := fmt.Fprintln(replies, what); err != nil {
			os.Exit(1)
		}
	}
	say(trialReady)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		hangs := time.AfterFunc(2*trialTime, func() { os.Exit(1) })
		s, err := c.engine.open(in.Text(), victimOptions)
		if err != nil {
			say(int(notOpened))
		} else {
			say(int(lookAtVictim(s)))
			_ = s.close() // only the read values count
		}
		say(trialDone)
		hangs.Stop()
	}
	return os.RemoveAll(c.dir)
}
