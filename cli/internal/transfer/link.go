package transfer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// A connection to a running Redis (or Stave, Valkey ...) that keys are taken from or brought to: commands are
// pipelined, a page of keys at a time. Values travel as DUMP payloads, so that a key is one command each way, whatever
// it holds.

// A link is such a connection. Its methods work on the database that the caller has selected.
type link struct{ *remote.Conn }

// databases lists the databases that hold keys, in ascending order, and says which run of a server it is: a cursor
// means nothing to another one. The keyspace section of INFO has a field for each of them and for no others.
func (l link) databases(ctx context.Context) (list []int, run string, err error) {
	r, err := l.Call(ctx, "INFO")
	if err != nil {
		return nil, "", err
	}
	info := remote.ParseInfo(r.Text)
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

// scan asks for one page, which may be empty though more follow. A key may come more than once, as SCAN has it. The
// server must know TYPE (Redis 6) if a type is given.
func (l link) scan(ctx context.Context, cursor, match, typ string, count int) (p scanPage, err error) {
	args := []string{"SCAN", cursor, "COUNT", strconv.Itoa(count)}
	if match != "" {
		args = append(args, "MATCH", match)
	}
	if typ != "" {
		args = append(args, "TYPE", typ)
	}
	r, err := l.Call(ctx, args...)
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

// A dumped key is what a Redis has of it. The payload is nil if it has gone meanwhile. refused is why the server would
// not give it, or this one not take it.
type dumped struct {
	payload  []byte
	deadline int64 // Unix milliseconds; 0: none
	refused  error
}

// dump gets keys of the database that is selected. exact tells whether the server knows PEXPIRETIME (Redis 7): without
// it a deadline is as exact as the two clocks and the connection. The two commands for a key are not one moment: a key
// that is set anew in between has the old value and the new deadline, until the next import.
func (l link) dump(ctx context.Context, keys [][]byte, exact bool, now func() int64) ([]dumped, error) {
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
	err := l.Pipeline(ctx, 2*len(keys), command, func(i int, r resp.Reply) error {
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

// knowsExactDeadlines asks whether the server has PEXPIRETIME, by the key of the empty name, which need not be there.
func (l link) knowsExactDeadlines(ctx context.Context) (bool, error) {
	r, err := l.Ask(ctx, "PEXPIRETIME", "")
	if err != nil {
		return false, &remote.LostError{Err: err}
	}
	return !r.IsError(), nil
}

// libraries gets the libraries of functions, text by name. A server that does not know them (Redis before 7) has none.
// One that knows them and refuses to list them is an error: the import would lack them unnoticed.
func (l link) libraries(ctx context.Context) (map[string]string, error) {
	r, err := l.Ask(ctx, "FUNCTION", "LIST", "WITHCODE")
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &remote.LostError{Err: err}
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

// missing says which of the keys the server does not have, in the database that is selected. A key that expires in
// between is one of them.
func (l link) missing(ctx context.Context, keys []db.KeyInfo) (gone []string, err error) {
	command := func(dst []byte, i int) ([]byte, error) {
		return resp.AppendCommandStrings(dst, "EXISTS", keys[i].Key), nil
	}
	err = l.Pipeline(ctx, len(keys), command, func(i int, r resp.Reply) error {
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
