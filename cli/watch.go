package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/stavedb/stave/cli/internal/terminal"
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

// endByKey returns a context that ends when q is typed, or Ctrl-C, which is a key like others meanwhile: keys come one
// at a time and are not shown, and lineEnd takes the place of a newline. restore gives the terminal back. Where the input is no terminal
// there are no keys. The goroutine stays in its read until the process ends, for that cannot be interrupted.
func endByKey(ctx context.Context, t *terminal.Streams) (ends context.Context, lineEnd string, restore func()) {
	in, ok := t.In.(*os.File)
	if !ok || !t.InTTY || !t.OutTTY || t.Dumb() {
		return ctx, "\n", func() {}
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return ctx, "\n", func() {}
	}
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer end()
		for keys := make([]byte, 64); ; {
			n, err := in.Read(keys)
			if err != nil || bytes.ContainsAny(keys[:n], "qQ\x03") {
				return
			}
		}
	}()
	return ctx, "\r\n", func() {
		end()
		term.Restore(int(in.Fd()), before)
	}
}
