//go:build unix

package cli

import (
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"unicode/utf8"
	_ "unsafe" // for linkname

	"golang.org/x/sys/unix"

	"github.com/reeflective/readline/inputrc"
)

// editorInput is where the line editor reads keys. The library has no way to say it but this variable, which it keeps
// to itself. Were it gone, TestTypedAheadByPieces would fail.
//
//go:linkname editorInput github.com/reeflective/readline/internal/core.Stdin
var editorInput io.ReadCloser

// keepTypedAhead makes the editor read one key at a time, and never ask the terminal where the cursor is. The library
// reads that answer from the keyboard, and drops the keys that come in one piece with it; it drops half a letter at the
// end of a piece; and Ctrl-C or Ctrl-V drops what came in one piece with them. What it has not read stays with the
// terminal, for the next line or for the pager.
func keepTypedAhead(config *inputrc.Config) {
	config.Vars["cursor-position-probe"] = false
	editorInput = keyReader{os.Stdin}
}

// asksForCursor says whether the library asks the terminal where the cursor is. Without that it knows the column by the
// prompt's width, and does not know how much room is below: see room and display.
const asksForCursor = false

// promptRow is where the library keeps the line of the screen, from 1, that the prompt is on. It keeps that to itself,
// too; with a nil pointer menus would be two lines too high, which TestScreens shows.
func promptRow(library any) *int {
	if field := reflect.ValueOf(library).Elem().FieldByName("startRows"); field.IsValid() && field.Kind() == reflect.Int {
		return (*int)(field.Addr().UnsafePointer())
	}
	return nil
}

// A keyReader reads a key at a time: a whole letter in UTF-8, or ESC with the sequence that follows it at once.
type keyReader struct{ *os.File }

// Read reads one key, which p is long enough for unless it is none of a keyboard. Shift-F3 is left out, for it looks
// like the answer to a question that nobody asked, and the library would wait for whoever did.
func (k keyReader) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if n, err = k.key(p); cursorPosition.Match(p[:n]) {
			n = 0
		}
	}
	return n, err
}

// cursorPosition is what a terminal says of where its cursor is.
var cursorPosition = regexp.MustCompile(`^\x1b\[[0-9]+;[0-9]+R$`)

// key reads one key. A sequence ends where no more of it is there, since ESC is a key, too.
func (k keyReader) key(p []byte) (n int, err error) {
	for n < len(p) && !isKey(p[:n]) {
		if n > 0 && p[0] == '\x1b' && !k.ready() {
			break
		}
		read, err := k.File.Read(p[n : n+1])
		if n += read; err != nil || read == 0 {
			return n, err
		}
	}
	return n, nil
}

// ready says whether there is something to read.
func (k keyReader) ready() bool {
	for {
		fds := []unix.PollFd{{Fd: int32(k.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// isKey says whether a key is whole: ESC [ and all up to a letter, ESC O and one character more, ESC and a letter, or
// a letter. A byte that begins no letter is one, as far as keys go.
func isKey(p []byte) bool {
	switch {
	case len(p) == 0:
		return false
	case p[0] != '\x1b':
		return utf8.FullRune(p)
	case len(p) == 1:
		return false
	case p[1] == '[':
		return len(p) > 2 && p[len(p)-1] >= '@' && p[len(p)-1] <= '~'
	case p[1] == 'O':
		return len(p) > 2
	}
	return utf8.FullRune(p[1:])
}
