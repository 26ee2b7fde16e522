package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// dialTimeout bounds connecting to a server.
const dialTimeout = 10 * time.Second

// A Conn is a connection to a server of ours or to Redis. It is made when a command needs it and made again after it
// was lost. Its exported fields are set before that, but for DB, which may change.
type Conn struct {
	Addr     string // HOST:PORT, or the path of a socket
	User     string
	Password string
	TLS      *tls.Config // nil: plain text
	RESP3    bool
	DB       int // selected again after a reconnect

	conn net.Conn
	dec  *resp.Decoder
	out  []byte // commands that have not been sent
}

// Connect dials, authenticates and selects the database. A connection that cannot be greeted is
// closed at once, so that the next command tries from the start.
func (r *Conn) Connect(ctx context.Context) error {
	network := "tcp"
	if strings.HasPrefix(r.Addr, "/") {
		network = "unix"
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, network, r.Addr)
	if err != nil {
		return &LostError{err}
	}
	if r.TLS != nil {
		encrypted := tls.Client(conn, r.TLS)
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return &LostError{errors.Join(fmt.Errorf("%s: TLS: %w", r.Addr, err), conn.Close())}
		}
		conn = encrypted
	}
	r.conn, r.dec = conn, resp.NewDecoder(conn)
	for _, command := range r.greeting() {
		reply, err := r.Ask(ctx, command...)
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			r.Close()
			return &LostError{fmt.Errorf("%s: %w", r.Addr, err)}
		}
	}
	return nil
}

// greeting lists what a fresh connection has to say. HELLO authenticates and chooses the protocol
// in one round trip. Without RESP3 it is not sent at all, because servers before Redis 6 do not
// know it.
func (r *Conn) greeting() (commands [][]string) {
	switch {
	case r.RESP3 && r.Password != "":
		commands = append(commands, []string{"HELLO", "3", "AUTH", cmp.Or(r.User, "default"), r.Password})
	case r.RESP3:
		commands = append(commands, []string{"HELLO", "3"})
	case r.Password != "" && r.User != "":
		commands = append(commands, []string{"AUTH", r.User, r.Password})
	case r.Password != "":
		commands = append(commands, []string{"AUTH", r.Password})
	}
	if r.DB != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(r.DB)})
	}
	return commands
}

// Ask runs one command that has exactly one reply. There must be a connection, which it neither makes nor closes: after
// an error the caller must close it, for the reply may still come. An error reply is a reply.
func (r *Conn) Ask(ctx context.Context, args ...string) (resp.Reply, error) {
	defer r.guard(ctx)()
	if _, err := r.conn.Write(resp.AppendCommandStrings(nil, args...)); err != nil {
		return resp.Reply{}, err
	}
	return r.dec.Read()
}

// guard makes the end of the context wake whatever waits for the connection. A deadline in the past
// makes reads and writes return at once. It stays on the connection, which is of no use after that: a
// reply was left unread.
func (r *Conn) guard(ctx context.Context) (release func()) {
	conn := r.conn
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	return func() { stop() }
}

// Do sends one command, over a new connection if there is none. When anything goes wrong the
// connection is closed: replies still on their way would pass for those to the next command.
func (r *Conn) Do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error {
	if r.conn == nil {
		if err := r.Connect(ctx); err != nil {
			return err
		}
	}
	defer r.guard(ctx)()
	_, err := r.conn.Write(resp.AppendCommand(nil, args...))
	if err == nil {
		err = r.receive(args, reply)
	}
	if err == nil {
		return nil
	}
	r.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the server closed the connection")
	}
	return &LostError{err}
}

// receive reads the replies to one command. Pushes that arrive in between are passed on and do not
// count, except as the answers of subscribing commands. A command that subscribes is answered by
// pushes in RESP3 and by arrays in RESP2; one that ends subscriptions has one answer for each name,
// and one if there is none. QUIT and SHUTDOWN may be answered by the end of the connection.
func (r *Conn) receive(args [][]byte, reply func(resp.Reply)) error {
	name := strings.ToLower(string(args[0]))
	left, pushes := 1, false
	switch name {
	case "subscribe", "psubscribe", "ssubscribe", "monitor":
		left = -1 // until interrupted
	case "unsubscribe", "punsubscribe", "sunsubscribe":
		left, pushes = max(1, len(args)-1), true
	}
	for left != 0 {
		got, err := r.dec.Read()
		if err != nil {
			if errors.Is(err, io.EOF) && (name == "quit" || name == "shutdown") {
				r.Close()
				return nil
			}
			return err
		}
		reply(got)
		switch {
		case got.IsError():
			return nil
		case got.Kind != resp.Push || pushes:
			left--
		}
	}
	return nil
}

// Close ends the connection; the next command makes another one. Closing twice
// is no error.
func (r *Conn) Close() error {
	if r.conn == nil {
		return nil
	}
	err := r.conn.Close()
	r.conn, r.dec = nil, nil
	return err
}

// A LostError is an error of the connection, not of a command. It has the text of what it wraps, without a word of its
// own.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// IsLost reports whether an error is one of the connection: then it is unknown whether the command
// ran.
func IsLost(err error) bool {
	_, ok := errors.AsType[*LostError](err)
	return ok
}
