package cli

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

// A connection is made late, and again after a failure: a shell that is left open over lunch finds
// its server restarted. greeting repeats what the connection had set and the server forgot; an open
// transaction is lost, and the prompt says so (session.lostState). A command whose connection broke
// is not sent twice, for it may have run.

// dialTimeout bounds connecting to a server.
const dialTimeout = 10 * time.Second

// A remote is a connection to a server of ours or to Redis. It is made when a
// command needs it and made again after it was lost.
type remote struct {
	addr     string
	user     string
	password string
	tls      *tls.Config // nil: plain text
	resp3    bool
	db       int // selected again after a reconnect

	conn net.Conn
	dec  *resp.Decoder
}

// connect dials, authenticates and selects the database. A connection that cannot be greeted is
// closed at once, so that the next command tries from the start.
func (r *remote) connect(ctx context.Context) error {
	network := "tcp"
	if strings.HasPrefix(r.addr, "/") {
		network = "unix"
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, network, r.addr)
	if err != nil {
		return &lostError{err}
	}
	if r.tls != nil {
		encrypted := tls.Client(conn, r.tls)
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return &lostError{errors.Join(fmt.Errorf("%s: TLS: %w", r.addr, err), conn.Close())}
		}
		conn = encrypted
	}
	r.conn, r.dec = conn, resp.NewDecoder(conn)
	for _, command := range r.greeting() {
		reply, err := r.ask(ctx, command...)
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			r.close()
			return &lostError{fmt.Errorf("%s: %w", r.addr, err)}
		}
	}
	return nil
}

// greeting lists what a fresh connection has to say. HELLO authenticates and chooses the protocol
// in one round trip. Without RESP3 it is not sent at all, because servers before Redis 6 do not
// know it.
func (r *remote) greeting() (commands [][]string) {
	switch {
	case r.resp3 && r.password != "":
		commands = append(commands, []string{"HELLO", "3", "AUTH", cmp.Or(r.user, "default"), r.password})
	case r.resp3:
		commands = append(commands, []string{"HELLO", "3"})
	case r.password != "" && r.user != "":
		commands = append(commands, []string{"AUTH", r.user, r.password})
	case r.password != "":
		commands = append(commands, []string{"AUTH", r.password})
	}
	if r.db != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(r.db)})
	}
	return commands
}

// ask runs one command that has exactly one reply.
func (r *remote) ask(ctx context.Context, args ...string) (resp.Reply, error) {
	defer r.guard(ctx)()
	if _, err := r.conn.Write(resp.AppendCommandStrings(nil, args...)); err != nil {
		return resp.Reply{}, err
	}
	return r.dec.Read()
}

// guard makes the end of the context wake whatever waits for the connection. A deadline in the past
// makes reads and writes return at once.
func (r *remote) guard(ctx context.Context) (release func()) {
	conn := r.conn
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	return func() { stop() }
}

// do sends one command, over a new connection if there is none. When anything goes wrong the
// connection is closed: replies still on their way would pass for those to the next command.
func (r *remote) do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error {
	if r.conn == nil {
		if err := r.connect(ctx); err != nil {
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
	r.close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the server closed the connection")
	}
	return &lostError{err}
}

// receive reads the replies to one command. Pushes that arrive in between are passed on and do not
// count, except as the answers of subscribing commands. A command that subscribes is answered by
// pushes in RESP3 and by arrays in RESP2; one that ends subscriptions has one answer for each name,
// and one if there is none. QUIT and SHUTDOWN may be answered by the end of the connection.
func (r *remote) receive(args [][]byte, reply func(resp.Reply)) error {
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
				r.close()
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

// close ends the connection; the next command makes another one. Closing twice
// is no error.
func (r *remote) close() error {
	if r.conn == nil {
		return nil
	}
	err := r.conn.Close()
	r.conn, r.dec = nil, nil
	return err
}
