package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// A reply that is longer than the screen goes to a pager. It has the terminal until it ends, and Ctrl-C is a key of its
// own.

// defaultPager is the command line that $STAVE_PAGER or $PAGER names, or less if it is there; "" for none. An empty
// variable means none.
func defaultPager() string {
	for _, name := range []string{"STAVE_PAGER", "PAGER"} {
		if command, set := os.LookupEnv(name); set {
			return strings.TrimSpace(command)
		}
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}

// paged says whether the replies to a command are collected, and shown when all have come: not those that come one
// after another until Ctrl-C, and not those that a program reads. Without a command it is about text of the shell
// itself.
func (s *session) paged(args [][]byte) bool {
	_, isFile := s.Out.(*os.File)
	return s.pager != "" && s.editor != nil && s.OutTTY && isFile && !s.Dumb() && (len(args) == 0 || !listens(args))
}

// page shows a text by the pager if it is longer than the screen, and prints it otherwise, or if there is no pager. No
// text at all prints nothing.
func (s *session) page(text []byte) {
	if len(text) == 0 || s.paged(nil) && s.isLong(text) && s.runPager(text) {
		return
	}
	s.Out.Write(text)
}

// isLong says whether a text has more lines than the screen shows with a prompt below them. Characters of several bytes
// count as so many, and so do colours: a text that just fits may go to the pager, which shows it and ends.
func (s *session) isLong(text []byte) bool {
	left, width := s.Height()-1, s.Width()
	if left <= 0 {
		return false
	}
	for line := range bytes.Lines(text) {
		if left -= max(1, (len(line)-1+width-1)/width); left < 0 {
			return true
		}
	}
	return false
}

// runPager shows a text by the pager, and returns false if that could not be started. less ends by itself if the text
// fits the screen, lets colours through, and leaves the text on the screen, unless $LESS says otherwise. It waits for
// the pager, which has the terminal meanwhile: two readers of one keyboard would each get some of the keys. The pager
// is a line for the system's shell, so one that is not there shows only by the shell's status, 127.
func (s *session) runPager(text []byte) bool {
	// The pager's Ctrl-C reaches this process too, where it must do nothing.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	pager := systemCommand(context.Background(), s.pager)
	pager.Stdin, pager.Stdout, pager.Stderr = bytes.NewReader(text), s.Out, s.Err
	if _, set := os.LookupEnv("LESS"); !set {
		pager.Env = append(os.Environ(), "LESS=FRX")
	}
	err := pager.Start()
	if err != nil {
		return false
	}
	err = pager.Wait() // a pager that ends before it has read all is how people leave it
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 127 {
		fmt.Fprintf(s.Out, "(%s: there is no such pager; :set nopager prints everything)\n", s.pager)
		return false
	}
	return true
}
