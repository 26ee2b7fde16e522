package server

import (
	"time"

	"github.com/stavedb/stave/server/internal/stats"
)

// figures are the bytes that a client's buffers take, and what they lead to.
type figures struct {
	stats.Client

	tooMuch *time.Timer // ends the connection unless it is stopped; for the session's driver only
}

// forgive stops the timer of the soft limit, when the output is below it or the client is of another class by now. A
// timer that has fired already ends the connection all the same: the limit was exceeded for its whole time.
func (f *figures) forgive() {
	if f.tooMuch != nil {
		f.tooMuch.Stop()
		f.tooMuch = nil
	}
}
