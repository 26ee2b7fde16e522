package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// An interrupt has a status of its own and no text, but what went wrong besides is told: a store that did not close may
// lack what was written.
func TestErrorsBesideAnInterrupt(t *testing.T) {
	canceled := failed(exitCommand, fmt.Errorf("merge: %w", context.Canceled))
	notClosed := fmt.Errorf("close: %w", fs.ErrClosed)
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.Canceled, ""},
		{canceled, ""},
		{errors.Join(canceled, context.Canceled), ""},
		{errors.Join(canceled, notClosed), "stave: close: file already closed\n"},
		{failed(exitOpen, errors.Join(notClosed, canceled)), "stave: close: file already closed\n"},
		{fmt.Errorf("%w, and %w", canceled, notClosed), "stave: close: file already closed\n"},
	} {
		var errs bytes.Buffer
		streams := terminal.Open(nil, nil, &errs)
		if status := exitStatus(streams, new(Program).newApp(streams), c.err); status != exitInterrupted || errs.String() != c.want {
			t.Errorf("%v: status %d, %q", c.err, status, errs.String())
		}
	}
}
