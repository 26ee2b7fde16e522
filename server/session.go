package server

import (
	"context"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/session"
)

// Session is one client's conversation: bytes in, bytes out. It is a pure state machine, with no
// goroutine and no network, and is not safe for concurrent use.
//
// A driver feeds it the bytes that arrive, sends what Output returns, and confirms with Flushed.
// While more than 1 MiB of replies wait to be sent, or some after commands that took long, the session executes nothing
// (Paused) and the driver should not read more; Flushed resumes the work. Once Closed, the driver sends the rest of
// the output and ends the connection.
type Session struct{ inner *session.Session }

// NewSession returns a session of its own on store, with counters that no other session shares:
// what an embedded shell or a test needs. o may be nil.
func NewSession(store *db.Store, o *Options) (*Session, error) {
	v, err := New(store, o)
	if err != nil {
		return nil, err
	}
	return v.NewSession(), nil
}

// NewSession returns a new session of this server. It is in CLIENT LIST only while Serve drives it.
func (v *Server) NewSession() *Session { return &Session{v.newSession()} }

// newSession is NewSession for the rooms of the server.
func (v *Server) newSession() *session.Session { return session.New(v.state, &v.scripts) }

// ID returns the number that CLIENT ID shows.
func (s *Session) ID() int64 { return s.inner.ID() }

// Namespace returns the index that SELECT chose.
func (s *Session) Namespace() int { return s.inner.Namespace() }

// InTransaction reports whether MULTI has begun and neither EXEC nor DISCARD has ended it.
func (s *Session) InTransaction() bool { return s.inner.InTransaction() }

// Feed takes bytes that arrived, in any split, executes the commands they complete, and appends the
// replies to the output. It reports whether the session is closed now.
func (s *Session) Feed(in []byte) (closed bool) { return s.inner.Feed(in) }

// Output returns the replies that wait to be sent. It is valid until the next call of a method.
func (s *Session) Output() []byte { return s.inner.Output() }

// Flushed confirms that the first n bytes of the output have been sent, and executes what waited
// for that.
func (s *Session) Flushed(n int) { s.inner.Flushed(n) }

// Closed reports whether the connection is to be ended once the output has been sent.
func (s *Session) Closed() bool { return s.inner.Closed() }

// Paused reports whether the session waits for Flushed before it executes more.
func (s *Session) Paused() bool { return s.inner.Paused() }

// Partial reports whether the client has begun a command and not finished it.
func (s *Session) Partial() bool { return s.inner.Partial() }

// Held returns the memory of what the session holds in bytes: buffers, messages, what MULTI has queued, what a command
// that waits has kept, subscriptions, watched keys and names. The sum over all sessions is what Options.ClientMemory
// bounds.
func (s *Session) Held() int { return s.inner.Held() }

// Do executes one command, given as its arguments, and returns the reply in the protocol version
// that the session speaks. It must not be mixed with Feed.
func (s *Session) Do(args [][]byte) (reply []byte) { return s.inner.Do(args) }

// DoContext is Do that gives the command up when ctx ends: one that waits, such as BLPOP, as if its time
// were over, and one that takes long with the error of ctx, without any effect.
func (s *Session) DoContext(ctx context.Context, args [][]byte) (reply []byte) {
	return s.inner.DoContext(ctx, args)
}

// NeverWait makes commands that would wait, such as BLPOP, reply at once as if their time were over. It is for a session
// that executes a list of commands, which nobody fills a key for meanwhile.
func (s *Session) NeverWait() { s.inner.NeverWait() }

// Blocked reports whether the session waits in a command: it executes nothing until Resume finds
// that over. Bytes fed until then are kept.
func (s *Session) Blocked() bool { return s.inner.Blocked() }

// Resume ends the wait of a blocked session if there is something, its time is over, or another
// client has ended it, and executes what waited for it. It may be called at any time, also if
// nothing has happened: a wake-up is a hint and not a message.
func (s *Session) Resume() { s.inner.Resume() }

// Wait waits until a blocked session can continue, or ctx ends. It is for drivers that have nothing
// else to do. An embedded shell uses it: nothing arrives while it waits.
func (s *Session) Wait(ctx context.Context) { s.inner.Wait(ctx) }

// Close ends the session: it gives up its wait and its watches. A session that Serve drives is
// closed by it.
func (s *Session) Close() { s.inner.Close() }
