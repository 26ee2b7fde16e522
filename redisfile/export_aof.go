package redisfile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/keypages"
)

// ExportAOF writes the keys and the libraries of functions of a store to w as the commands that make them, in RESP: a
// file that a Redis loads as its AOF, and what redis-cli --pipe takes. Collections are written 64 elements a command,
// as Redis does it; what a key held before stays, so the commands are for a Redis without these keys. Version is not
// used; nothing is left out. Deadlines of fields need Redis 7.4, libraries and streams that have lost entries Redis 7.
// A library replaces one of its name.
//
// An export whose context ends returns the context's error; the last command is whole.
func ExportAOF(ctx context.Context, store *db.Store, w io.Writer, o ExportOptions) (ExportResult, error) {
	e := &commands{out: bufio.NewWriterSize(w, 256<<10), o: o}
	pages := keypages.Options{Namespaces: o.Namespaces, Match: o.Match, Sort: o.Sort, Begin: func(store *db.Store) error {
		return e.write("SELECT", strconv.Itoa(store.Namespace()))
	}}
	libraries, broken := pages.Libraries(store)
	e.result.Broken = broken
	for _, library := range libraries {
		if err := e.write("FUNCTION", "LOAD", "REPLACE", library.Text); err != nil {
			return e.result, err
		}
		e.result.Libraries++
	}
	err := keypages.Visit(ctx, store, pages, e.key)
	if flushErr := e.out.Flush(); err == nil {
		err = flushErr
	}
	return e.result, err
}

const (
	commandElements = 64       // go into one command,
	commandBytes    = 64 << 10 // or so many bytes
)

// commands writes commands: begin, arguments, end.
type commands struct {
	o      ExportOptions
	out    *bufio.Writer
	result ExportResult
	err    error // of a write

	head  [2]string // the command and its first argument
	body  []byte    // further arguments
	args  int       // in body
	value []byte    // scratch
}

func (e *commands) begin(command, argument string) {
	e.head = [2]string{command, argument}
	e.body, e.args = e.body[:0], 0
}

// add adds an argument.
func (e *commands) add(arg []byte) {
	e.body = append(strconv.AppendInt(append(e.body, '$'), int64(len(arg)), 10), "\r\n"...)
	e.body = append(append(e.body, arg...), "\r\n"...)
	e.args++
}

func (e *commands) addText(args ...string) {
	for _, arg := range args {
		e.add([]byte(arg))
	}
}

// write writes a command.
func (e *commands) write(command, argument string, args ...string) error {
	e.begin(command, argument)
	e.addText(args...)
	return e.end(0)
}

// end writes the command if it has as many arguments as are needed.
func (e *commands) end(least int) error {
	if e.args < least || e.err != nil {
		return e.err
	}
	head := fmt.Appendf(nil, "*%d\r\n", len(e.head)+e.args)
	for _, arg := range e.head {
		head = fmt.Appendf(head, "$%d\r\n%s\r\n", len(arg), arg)
	}
	for _, part := range [][]byte{head, e.body} {
		n, err := e.out.Write(part)
		if e.result.Bytes += int64(n); err != nil && e.err == nil {
			e.err = err
		}
	}
	if e.body, e.args = e.body[:0], 0; cap(e.body) > 1<<20 {
		e.body = nil
	}
	return e.err
}

// element ends the command, and begins it again, if it has grown long enough, and reports whether to go on.
func (e *commands) element(each int) bool {
	if e.args >= commandElements*each || len(e.body) >= commandBytes {
		return e.end(1) == nil
	}
	return e.err == nil
}

// key writes one key.
func (e *commands) key(tx *db.Tx, key keypages.Key) error {
	if e.o.Progress != nil {
		e.o.Progress(e.result.Bytes, e.result.Keys)
	}
	e.result.Keys++
	if err := e.content(tx, key.Type, key.Name); err != nil {
		return err
	}
	if err := e.end(1); err != nil || key.Deadline == 0 {
		return err
	}
	return e.write("PEXPIREAT", key.Name, strconv.FormatInt(key.Deadline, 10))
}

// content writes the value. The last command may still be open.
func (e *commands) content(tx *db.Tx, kind db.Type, key string) (err error) {
	one := func(b []byte) bool {
		e.add(b)
		return e.element(1)
	}
	switch kind {
	case db.TypeString:
		if e.value, err = tx.String(key).AppendTo(e.value[:0]); err != nil {
			return err
		}
		e.begin("SET", key)
		e.add(e.value)
		return nil
	case db.TypeList:
		e.begin("RPUSH", key)
		return tx.List(key).Visit(0, -1, func(int) {}, one)
	case db.TypeSet:
		e.begin("SADD", key)
		return tx.Set(key).Visit(func(int) {}, one)
	case db.TypeSortedSet:
		e.begin("ZADD", key)
		return tx.SortedSet(key).Visit(db.RankRange{Stop: -1}, func(int) {}, func(member []byte, score float64) bool {
			e.addText(strconv.FormatFloat(score, 'g', -1, 64))
			e.add(member)
			return e.element(2)
		})
	case db.TypeHash:
		return e.hash(tx.Hash(key), key)
	case db.TypeStream:
		return e.stream(tx.Stream(key), key)
	}
	return fmt.Errorf("type %s is not one that an export knows", kind)
}

// hash writes the fields, and then the deadlines of those that have one.
func (e *commands) hash(h db.Hash, key string) error {
	timed := false
	e.begin("HSET", key)
	err := h.VisitTimed(func(_ int, first int64) { timed = first != 0 }, func(field, value []byte, _ int64) bool {
		e.add(field)
		e.add(value)
		return e.element(2)
	})
	if err != nil || !timed {
		return err
	}
	if err := e.end(1); err != nil {
		return err
	}
	return h.VisitTimed(func(int, int64) {}, func(field, _ []byte, ms int64) bool {
		if ms == 0 {
			return true
		}
		e.begin("HPEXPIREAT", key)
		e.addText(strconv.FormatInt(ms, 10), "FIELDS", "1")
		e.add(field)
		return e.end(1) == nil
	})
}

// stream writes the entries, and what is known of the stream besides them. One without entries is made by an entry that
// is gone at once.
func (e *commands) stream(s db.Stream, key string) error {
	info, err := s.Info()
	if err != nil {
		return err
	}
	if info.Len == 0 {
		if err := e.write("XADD", key, "MAXLEN", "0", db.StreamID{Ms: max(info.Last.Ms, 1), Seq: info.Last.Seq}.String(), "x", "y"); err != nil {
			return err
		}
	}
	top := db.StreamID{}
	err = s.Visit(db.StreamID{}, db.MaxStreamID, func(id db.StreamID, fields [][]byte) bool {
		top = id
		e.begin("XADD", key)
		e.addText(id.String())
		for _, field := range fields {
			e.add(field)
		}
		return e.end(1) == nil
	})
	if err != nil {
		return err
	}
	if info.Len == 0 || info.Last != top || info.Added != uint64(info.Len) || info.Deleted != (db.StreamID{}) {
		err := e.write("XSETID", key, info.Last.String(), "ENTRIESADDED", strconv.FormatUint(info.Added, 10), "MAXDELETEDID", info.Deleted.String())
		if err != nil {
			return err
		}
	}
	groups, err := groupStates(s)
	for _, state := range groups {
		if err == nil {
			err = e.group(key, state)
		}
	}
	return err
}

// group writes a group, its consumers, and what is pending for them, in the form of Redis's own rewrite.
func (e *commands) group(key string, state db.StreamGroupState) error {
	e.begin("XGROUP", "CREATE")
	e.addText(key, state.Name, state.Last.String())
	if state.Read >= 0 {
		e.addText("ENTRIESREAD", strconv.FormatInt(state.Read, 10))
	}
	err := e.end(1)
	for _, c := range state.Consumers {
		if err == nil {
			err = e.write("XGROUP", "CREATECONSUMER", key, state.Name, c.Name)
		}
	}
	for _, p := range state.Pending {
		if err == nil {
			err = e.write("XCLAIM", key, state.Name, p.Consumer, "0", p.ID.String(),
				"TIME", strconv.FormatInt(p.Delivered, 10), "RETRYCOUNT", strconv.FormatInt(p.Deliveries, 10), "JUSTID", "FORCE")
		}
	}
	return err
}
