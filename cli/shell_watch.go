package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// :watch runs a command again and again, and shows the reply in the place of the one before, until Ctrl-C. WATCH
// without the colon is Redis's.

// watchEvery is the time between two runs if none is given.
const watchEvery = 2 * time.Second

// watchInterval reads the seconds that may stand before the command of :watch. ok is false for what is no number, or
// one out of bounds: 50 ms at least, so that a slip does not load a server. It is then taken for the command.
func watchInterval(word string) (every time.Duration, ok bool) {
	seconds, err := strconv.ParseFloat(word, 64)
	if err != nil || !(seconds >= 0.05 && seconds <= maxInterval) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// afterPrefix leaves out of the words of a line what stands before the command: a count, or :watch and its seconds. At
// least one word is left, so a number alone is a command, as it is for runTyped.
func afterPrefix[W string | []byte](words []W) []W {
	if len(words) < 2 {
		return words
	}
	if string(words[0]) == ":watch" {
		if _, ok := watchInterval(string(words[1])); ok && len(words) > 2 {
			return words[2:]
		}
		return words[1:]
	}
	if n, ok := resp.ParseInt([]byte(words[0])); ok && n > 0 {
		return words[1:]
	}
	return words
}

// watchCommand is :watch [SECONDS] COMMAND. What removes everything, or never ends, is not watched, and nothing is
// within MULTI, where the replies would say QUEUED. An error reply is a picture like any other and does not end it. A
// lost connection does, and so does a command that ends the session. What does not fit the screen is left out, so that
// the picture stays in its place.
func (s *session) watchCommand(ctx context.Context, words [][]byte) {
	args, every := afterPrefix(words), watchEvery
	if len(words) > 2 {
		if given, ok := watchInterval(string(words[1])); ok {
			every = given
		}
	}
	switch {
	case len(words) < 2:
		fmt.Fprintln(s.Out, ":watch takes a command: :watch 2 LLEN jobs runs it every two seconds, until Ctrl-C")
		return
	case listens(args) || destroys(args) != "" || s.inMulti:
		fmt.Fprintf(s.Out, ":watch does not run %s again and again\n", strings.ToUpper(string(args[0])))
		return
	}
	// The title repeats what was typed, which may have been pasted: it is made safe for the terminal.
	title := fmt.Sprintf("every %v: %s\n", every, terminal.Safe(bytes.Join(args, []byte(" "))))
	// A reply is shown whole when all of it is there, so a picture is never half of the old and half of the new one.
	err := watch(ctx, s.Streams, true, every, 0, func() ([]byte, error) {
		shown := []byte(title)
		err := s.backend.Do(ctx, args, func(r resp.Reply) {
			s.track(args, r)
			shown = append(shown, s.render(args, r)...)
		})
		if err == nil && s.closed {
			err = errors.New("the command ended the session")
		}
		return firstLines(shown, s.Height()-1), err
	})
	// An interrupt in the middle of a command closes the connection, and with it what only that knew.
	if ctx.Err() != nil {
		s.lostState()
	}
	if err != nil {
		fmt.Fprintf(s.Out, "Error: %v\n", err)
	}
}

// firstLines is what fits a screen of n lines; all of it if n is not the height of one. Lines that the terminal would
// wrap count once.
func firstLines(text []byte, n int) []byte {
	if n <= 0 {
		return text
	}
	end := 0
	for line := range bytes.Lines(text) {
		if n--; n < 0 {
			break
		}
		end += len(line)
	}
	return text[:end]
}
