package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// A connection to a running Redis (or Stave, Valkey ...) that keys are taken from or brought to: commands are pipelined, a page of keys at a
// time. Values travel as DUMP payloads, so that a key is one command each way, whatever it holds.

// A redisLink is such a connection.
type redisLink struct {
	*remote
	out []byte // commands that have not been sent
}

// redisURL reads redis://[user[:password]@]host[:port][/db], rediss:// for TLS, or unix:///path. A password in it can be seen by every
// user of the machine: the variables serve better.
func redisURL(text string) (*remote, int, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return nil, 0, usagef("%q is no URL of a Redis: redis://HOST:PORT/DB, rediss:// with TLS, or unix:///PATH", text)
	}
	r := &remote{password: cmp.Or(os.Getenv("STAVE_PASSWORD"), os.Getenv("REDISCLI_AUTH"))}
	if u.User != nil {
		r.user = u.User.Username()
		if password, set := u.User.Password(); set {
			r.password = password
		}
	}
	if u.Scheme == "unix" {
		r.addr = u.Path
		return r, -1, nil
	}
	r.addr = net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "6379"))
	if u.Scheme == "rediss" {
		if r.tls, err = (tlsFiles{on: true}).config(r.addr); err != nil {
			return nil, 0, usagef("%w", err)
		}
	}
	path := strings.Trim(u.Path, "/")
	if path == "" {
		return r, -1, nil
	}
	database, err := strconv.Atoi(path)
	if err != nil || database < 0 {
		return nil, 0, usagef("%q: the path of a Redis's URL is the number of a database", text)
	}
	return r, database, nil
}

// openLink connects to a Redis. The database is -1 if the URL names none.
func openLink(ctx context.Context, text string) (*redisLink, int, error) {
	r, database, err := redisURL(text)
	if err != nil {
		return nil, 0, err
	}
	if err := r.connect(ctx); err != nil {
		return nil, 0, failed(exitOpen, fmt.Errorf("connect: %w", err))
	}
	return &redisLink{remote: r}, database, nil
}

// maxUnsent is how many bytes of commands are collected before they are sent.
const maxUnsent = 1 << 20

// pipeline sends n commands, and calls reply with the reply to each, in order. Replies are read while commands are sent: neither side waits for
// a buffer of the other one.
func (l *redisLink) pipeline(ctx context.Context, n int, command func(dst []byte, i int) ([]byte, error), reply func(i int, r resp.Reply) error) error {
	release := l.guard(ctx)
	defer release()
	sent := make(chan error, 1)
	go func() {
		buf := l.out[:0]
		var err error
		for i := 0; i < n && err == nil; i++ {
			if buf, err = command(buf, i); err == nil && (len(buf) >= maxUnsent || i == n-1) {
				_, err = l.conn.Write(buf)
				buf = buf[:0]
			}
		}
		if err != nil {
			err = errors.Join(err, l.conn.Close()) // nobody answers what was not sent
		}
		l.out = buf[:0]
		if cap(l.out) > 8*maxUnsent { // one long value is no reason to keep so much
			l.out = nil
		}
		sent <- err
	}()
	var failure error
	for i := range n {
		r, err := l.dec.Read()
		if err == nil {
			err = reply(i, r)
		}
		if err != nil {
			failure = err
			l.conn.Close() // ends the sender; its error is the same
			break
		}
	}
	if err := <-sent; err != nil && (failure == nil || !errors.Is(err, net.ErrClosed)) {
		failure = errors.Join(err, failure)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(failure, io.EOF):
		return &lostError{errors.New("the server closed the connection")}
	}
	return failure
}

// call runs one command; an error reply is an error.
func (l *redisLink) call(ctx context.Context, args ...string) (resp.Reply, error) {
	r, err := l.ask(ctx, args...)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		return r, &lostError{err}
	case r.IsError():
		return r, fmt.Errorf("%s: %w", args[0], r.Err())
	}
	return r, nil
}

// databases lists the databases that hold keys, and says which run of a server it is.
func (l *redisLink) databases(ctx context.Context) (list []int, run string, err error) {
	r, err := l.call(ctx, "INFO")
	if err != nil {
		return nil, "", err
	}
	info := parseInfo(r.Text)
	for n := range 65536 {
		if _, ok := info["db"+strconv.Itoa(n)]; ok {
			list = append(list, n)
		}
	}
	return list, info["run_id"], nil
}

// A scanPage is a page of keys of a scan.
type scanPage struct {
	keys [][]byte
	next string // cursor; "0" at the end
}

// scan asks for one page. A key may come more than once, as SCAN has it.
func (l *redisLink) scan(ctx context.Context, cursor, match, typ string, count int) (p scanPage, err error) {
	args := []string{"SCAN", cursor, "COUNT", strconv.Itoa(count)}
	if match != "" {
		args = append(args, "MATCH", match)
	}
	if typ != "" {
		args = append(args, "TYPE", typ)
	}
	r, err := l.call(ctx, args...)
	if err != nil {
		return p, err
	}
	if len(r.Items) != 2 {
		return p, errors.New("SCAN: the reply is none of SCAN")
	}
	p.next = string(r.Items[0].Text)
	for _, item := range r.Items[1].Items {
		p.keys = append(p.keys, item.Text)
	}
	return p, nil
}

// A dumped key is what a Redis has of it. The payload is nil if it has gone meanwhile.
type dumped struct {
	payload  []byte
	deadline int64 // Unix milliseconds; 0: none
	refused  error
}

// dump gets keys of the database that is selected. exact tells whether the server knows PEXPIRETIME (Redis 7): without it a deadline is
// as exact as the two clocks and the connection.
func (l *redisLink) dump(ctx context.Context, keys [][]byte, exact bool, now func() int64) ([]dumped, error) {
	found := make([]dumped, len(keys))
	life := []byte("PTTL")
	if exact {
		life = []byte("PEXPIRETIME")
	}
	command := func(dst []byte, i int) ([]byte, error) {
		if i%2 == 0 {
			return resp.AppendCommand(dst, []byte("DUMP"), keys[i/2]), nil
		}
		return resp.AppendCommand(dst, life, keys[i/2]), nil
	}
	err := l.pipeline(ctx, 2*len(keys), command, func(i int, r resp.Reply) error {
		d := &found[i/2]
		switch {
		case r.IsError():
			d.refused = errors.Join(d.refused, r.Err())
		case i%2 == 0 && !r.Null:
			d.payload = r.Text
		case i%2 == 1 && r.Int == -2:
			d.payload = nil // it has expired meanwhile
		case i%2 == 1 && r.Int >= 0:
			if d.deadline = r.Int; !exact {
				d.deadline += now()
			}
		}
		return nil
	})
	return found, err
}

// knowsExactDeadlines asks whether the server has PEXPIRETIME.
func (l *redisLink) knowsExactDeadlines(ctx context.Context) (bool, error) {
	r, err := l.ask(ctx, "PEXPIRETIME", "")
	if err != nil {
		return false, &lostError{err}
	}
	return !r.IsError(), nil
}

// libraries gets the libraries of functions, text by name. A server that does not know them (Redis before 7) has none.
func (l *redisLink) libraries(ctx context.Context) (map[string]string, error) {
	r, err := l.ask(ctx, "FUNCTION", "LIST", "WITHCODE")
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &lostError{err}
	case r.IsError() && strings.HasPrefix(string(r.Text), "ERR unknown"):
		return nil, nil
	case r.IsError():
		return nil, fmt.Errorf("FUNCTION LIST: %w", r.Err())
	}
	list := map[string]string{}
	for _, library := range r.Items {
		var name, text string
		for i := 0; i+1 < len(library.Items); i += 2 {
			switch value := string(library.Items[i+1].Text); string(library.Items[i].Text) {
			case "library_name":
				name = value
			case "library_code":
				text = value
			}
		}
		if name == "" || text == "" {
			return nil, errors.New("FUNCTION LIST: the reply is none of FUNCTION LIST")
		}
		list[name] = text
	}
	return list, nil
}

// missing says which of the keys the server does not have, in the database that is selected.
func (l *redisLink) missing(ctx context.Context, keys []db.KeyInfo) (gone []string, err error) {
	command := func(dst []byte, i int) ([]byte, error) {
		return resp.AppendCommandStrings(dst, "EXISTS", keys[i].Key), nil
	}
	err = l.pipeline(ctx, len(keys), command, func(i int, r resp.Reply) error {
		switch {
		case r.IsError():
			return fmt.Errorf("EXISTS: %w", r.Err())
		case r.Int == 0:
			gone = append(gone, keys[i].Key)
		}
		return nil
	})
	return gone, err
}
