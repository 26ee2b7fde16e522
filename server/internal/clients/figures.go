package clients

import (
	"time"

	"github.com/stavedb/stave/server/internal/stats"
)

// Figures are the bytes that a client's buffers take, and what they lead to.
type Figures struct {
	stats.Client

	TooMuch *time.Timer // ends the connection unless it is stopped; for the session's driver only
}

// Forgive stops the timer of the soft limit, when the output is below it or the client is of another class by now. A
// timer that has fired already ends the connection all the same: the limit was exceeded for its whole time.
func (f *Figures) Forgive() {
	if f.TooMuch != nil {
		f.TooMuch.Stop()
		f.TooMuch = nil
	}
}
