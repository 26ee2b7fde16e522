package main

import (
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// caller is a client of a group, which asks another member when one does not answer, or is not the primary.
type caller struct {
	r    *rig
	rng  *rand.Rand
	at   *process
	conn net.Conn
	in   *resp.Decoder
}

// patience is how long a caller waits for the replies to what it has sent. A member that is stopped gives none: some callers are to go on
// elsewhere, while others wait for what it says when it goes on.
func (c *caller) patience() time.Duration {
	if c.rng.IntN(2) == 0 {
		return 5 * time.Second
	}
	return 100*time.Millisecond + time.Duration(c.rng.Int64N(int64(time.Second)))
}

func newCaller(r *rig, seed uint64) *caller {
	c := &caller{r: r, rng: rand.New(rand.NewPCG(seed, 2))}
	c.at = r.members[c.rng.IntN(len(r.members))]
	return c
}

var errNotConnected = errors.New("not connected")

// connect connects to its member. What has failed there was not done.
func (c *caller) connect() (err error) {
	if c.conn != nil {
		return nil
	}
	if c.conn, err = net.DialTimeout("tcp", c.at.address, time.Second); err != nil {
		c.conn = nil
		c.next()
		return errors.Join(errNotConnected, err)
	}
	c.in = resp.NewDecoder(c.conn)
	if c.at.password == "" {
		return nil
	}
	_ = c.conn.SetDeadline(time.Now().Add(time.Second))
	if _, err = c.conn.Write(resp.AppendCommandStrings(nil, "AUTH", c.at.password)); err == nil {
		_, err = c.in.Read()
	}
	if err != nil {
		c.next()
		return errors.Join(errNotConnected, err)
	}
	return nil
}

// next asks another member from here on.
func (c *caller) next() {
	c.close()
	c.at = c.r.members[c.rng.IntN(len(c.r.members))]
	time.Sleep(time.Duration(c.rng.IntN(10)) * time.Millisecond)
}

func (c *caller) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// do sends commands, and returns the replies that have come, errors of the server among them. An error says that there are
// fewer than commands; errNotConnected that nothing was sent.
func (c *caller) do(commands ...[]string) (replies []resp.Reply, err error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	var out []byte
	for _, words := range commands {
		out = resp.AppendCommandStrings(out, words...)
	}
	_ = c.conn.SetDeadline(time.Now().Add(c.patience()))
	if _, err := c.conn.Write(out); err != nil {
		c.next()
		return nil, err
	}
	for range commands {
		reply, err := c.in.Read()
		if err != nil {
			c.next()
			return replies, err
		}
		replies = append(replies, reply)
	}
	for _, reply := range replies {
		if reply.Err() != nil {
			c.next()
			break
		}
	}
	return replies, nil
}

// does does a command, and returns its reply as text; an error begins with "-".
func (c *caller) does(words ...string) string {
	replies, err := c.do(words)
	switch {
	case err != nil:
		return "-" + err.Error()
	case replies[0].Err() != nil:
		return "-" + replies[0].Err().Error()
	}
	return string(replies[0].Text)
}
