package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/urfave/cli/v2"
)

// Commands that show something again and again: on a terminal in its place, otherwise one after another.

// watchFlags say how often. They are those of stats --watch and of top.
func watchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "every", Value: time.Second, Usage: "look again after `T`"},
		&cli.IntFlag{Name: "count", Usage: "end after `N` pictures", DefaultText: "never"},
	}
}

// readWatchFlags reads and checks them. A count of 0 is no end.
func readWatchFlags(c *cli.Context) (every time.Duration, count int, err error) {
	every, count = c.Duration("every"), c.Int("count")
	switch {
	case every < 50*time.Millisecond:
		err = usagef("--every must be at least 50ms")
	case count < 0:
		err = usagef("--count must not be negative")
	}
	return every, count, err
}

// watch draws until the context ends, which is no error, or count pictures have been shown. With inPlace a terminal
// shows only the last one. A picture of no bytes is not shown, and does not count.
//
// A terminal is left as it was, on every way out but a process that is killed: the pictures are on its other screen,
// and the cursor is shown again. The pause begins when a picture has been drawn, so slow ones come more rarely.
func watch(ctx context.Context, t *terminal.Streams, inPlace bool, every time.Duration, count int, draw func() ([]byte, error)) error {
	inPlace = inPlace && t.OutTTY && !t.Dumb()
	if inPlace {
		fmt.Fprint(t.Out, "\x1b[?1049h\x1b[?25l") // the other screen, without a cursor
		defer fmt.Fprint(t.Out, "\x1b[?25h\x1b[?1049l")
	}
	// An error of draw that came of the interrupt is none, so the context is asked first.
	for n := 0; ; {
		shown, err := draw()
		if ctx.Err() != nil {
			return nil // the way to end it
		}
		if err != nil {
			return failed(exitCommand, err)
		}
		if len(shown) > 0 {
			if inPlace {
				shown = append([]byte("\x1b[H\x1b[2J"), shown...)
			}
			if _, err := t.Out.Write(shown); err != nil {
				return failed(exitCommand, err)
			}
			if n++; n == count {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}
