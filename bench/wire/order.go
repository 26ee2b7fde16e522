package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/stavedb/stave/bench/internal/servers"
	"github.com/stavedb/stave/internal/resp"
)

// Order of arrival: one connection sends a command and does not read its reply, then another sends
// one that can tell whether the first has been executed. Redis executes both in the order in which
// they arrived, but for the few that arrive while it is about to look.

// overtaking is such a pair of commands.
type overtaking struct {
	name          string
	first, second func(i int) []string
	inOrder       func(i int, reply resp.Reply) bool
	undo          []string // on the first connection; nil for nothing
}

var overtakings = []overtaking{
	{
		name:    "SET k i, then GET k",
		first:   func(i int) []string { return []string{"SET", "k", strconv.Itoa(i)} },
		second:  func(int) []string { return []string{"GET", "k"} },
		inOrder: func(i int, reply resp.Reply) bool { return string(reply.Text) == strconv.Itoa(i) },
	},
	{
		name: "SUBSCRIBE c, then PUBLISH c m", undo: []string{"UNSUBSCRIBE", "c"},
		first:   func(int) []string { return []string{"SUBSCRIBE", "c"} },
		second:  func(int) []string { return []string{"PUBLISH", "c", "m"} },
		inOrder: func(_ int, reply resp.Reply) bool { return reply.Int == 1 },
	},
	{
		name: "UNSUBSCRIBE c, then PUBLISH c m", undo: []string{"SUBSCRIBE", "c"},
		first:   func(int) []string { return []string{"UNSUBSCRIBE", "c"} },
		second:  func(int) []string { return []string{"PUBLISH", "c", "m"} },
		inOrder: func(_ int, reply resp.Reply) bool { return reply.Int == 0 },
	},
}

// compareOrder counts, for each server, how often the second command overtook the first.
func compareOrder(ctx context.Context, s settings, all []*servers.Server, out io.Writer) error {
	fmt.Fprintf(out, "\nThe second connection's command came first, of %d:\n\n| |", s.tries)
	for _, v := range all {
		fmt.Fprintf(out, " %s |", v.Name)
	}
	fmt.Fprint(out, "\n|---|")
	for range all {
		fmt.Fprint(out, "---|")
	}
	for _, what := range overtakings {
		counts := make([]int, len(all))
		for range 10 { // the servers take turns
			for i, v := range all {
				n, err := overtaken(ctx, v, what, s.tries/10)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", v.Name, what.name, err)
				}
				counts[i] += n
			}
		}
		fmt.Fprintf(out, "\n| %s |", what.name)
		for _, n := range counts {
			fmt.Fprintf(out, " %d |", n)
		}
	}
	fmt.Fprintln(out)
	return nil
}

// overtaken tries a pair so many times and counts how often the second command came first.
func overtaken(ctx context.Context, v *servers.Server, what overtaking, tries int) (times int, err error) {
	var conns [2]net.Conn
	var in [2]*resp.Decoder
	for i := range conns {
		if conns[i], err = (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+v.Port); err != nil {
			return 0, err
		}
		defer func() { _ = conns[i].Close() }()
		in[i] = resp.NewDecoder(conns[i])
	}
	send := func(conn int, args []string) error {
		_, err := conns[conn].Write(resp.AppendCommandStrings(nil, args...))
		return err
	}
	receive := func(conn int) (resp.Reply, error) {
		reply, err := in[conn].Read()
		if err == nil {
			err = reply.Err()
		}
		return reply, err
	}
	do := func(conn int, args []string) error {
		if err := send(conn, args); err != nil {
			return err
		}
		_, err := receive(conn)
		return err
	}
	if what.undo != nil {
		if err := do(0, what.undo); err != nil {
			return 0, err
		}
	}
	for i := range tries {
		if err := send(0, what.first(i)); err != nil {
			return times, err
		}
		if err := send(1, what.second(i)); err != nil {
			return times, err
		}
		reply, err := receive(1)
		if err != nil {
			return times, err
		}
		if !what.inOrder(i, reply) {
			times++
		}
		if _, err := receive(0); err != nil {
			return times, err
		}
		if reply.Int == 1 && what.undo != nil { // the message
			if _, err := receive(0); err != nil {
				return times, err
			}
		}
		if what.undo != nil {
			if err := do(0, what.undo); err != nil {
				return times, err
			}
		}
	}
	return times, nil
}
