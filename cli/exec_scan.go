package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// What looks at all keys of a namespace: --scan, --bigkeys, --memkeys and --keystats. SCAN finds the keys, which works
// on any server and stops nobody; of a store in a directory, stave inspect tells more.

// scanCount is how many keys a page of a scan has, or about so: COUNT is a hint. A thousand hold up other clients of a
// Redis for less than a millisecond, and make the round trips few.
const scanCount = 1000

// eachPage calls visit with the names of the keys that the options ask for, a page at a time. A key may come more than
// once, as SCAN has it. A page may be empty. An error of visit ends the scan. The whole takes O(keys of the namespace),
// also with a pattern or a type, which the server applies to what it has found.
func (s *session) eachPage(ctx context.Context, c *cli.Context, visit func(keys []resp.Reply) error) error {
	cursor := "0"
	for {
		args := []string{"SCAN", cursor, "COUNT", strconv.Itoa(scanCount)}
		if c.IsSet("pattern") {
			args = append(args, "MATCH", c.String("pattern"))
		}
		if c.IsSet("type") {
			args = append(args, "TYPE", c.String("type"))
		}
		r, err := s.query(ctx, args...)
		if err != nil {
			return err
		}
		if len(r.Items) != 2 {
			return fmt.Errorf("SCAN: a reply of another form: %q", r.String())
		}
		if err := visit(r.Items[1].Items); err != nil {
			return err
		}
		if cursor = r.Items[0].String(); cursor == "0" {
			return nil
		}
	}
}

// runScan lists names of keys, each as the reply to a command would be printed. They are printed as they are found, in
// no order, so a scan of any size takes no memory.
func runScan(ctx context.Context, s *session, c *cli.Context) error {
	out := bufio.NewWriterSize(s.Out, 64<<10)
	err := s.eachPage(ctx, c, func(keys []resp.Reply) error {
		for _, key := range keys {
			if _, err := out.Write(s.render(nil, key)); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(err, out.Flush())
}

// A typeReport is about the keys of one type. A key that a scan finds twice counts twice.
type typeReport struct {
	name            string
	keys            int64
	elements, bytes int64
	longest         keyReport // the one with the most elements
	largest         keyReport // the one with the most bytes
}

// A keyReport is one key. Its length is in the unit of peekCommands, bytes for a string; its bytes are MEMORY USAGE's.
type keyReport struct {
	key, typ        string
	elements, bytes int64
}

// A keysReport is what --bigkeys and the others find. It keeps a few keys for each type, whatever the store has.
type keysReport struct {
	counted  bool // elements
	measured bool // bytes
	types    map[string]*typeReport
	largest  []keyReport // the maxLargest keys with the most bytes, if they are wanted
}

// maxLargest is how many keys --keystats lists. The list is sorted at each insertion, so it had better stay short.
const maxLargest = 10

// runBigkeys looks at all keys, and prints a row for each type. The bar's total is DBSIZE, which a pattern does not reach.
func runBigkeys(ctx context.Context, s *session, c *cli.Context) error {
	// --keystats is the other two in one, and a list of keys.
	stats := c.Bool("keystats")
	report := &keysReport{counted: stats || c.Bool("bigkeys"), measured: stats || c.Bool("memkeys"), types: map[string]*typeReport{}}
	size, err := s.query(ctx, "DBSIZE")
	if err != nil {
		return err
	}
	bar := terminal.NewProgress(s.Bars(false), "scan", size.Int)
	seen := int64(0)
	err = s.eachPage(ctx, c, func(keys []resp.Reply) error {
		seen += int64(len(keys))
		bar.Update(seen, 0, seen)
		return s.reportPage(ctx, report, keys)
	})
	bar.Clear()
	if err != nil {
		return err
	}
	// Rows of figures are read as a table, unless a form such as JSON was asked for.
	if s.printer.Format == terminal.Typed || s.printer.Format == terminal.Raw {
		s.printer.Format = terminal.Table
	}
	_, err = s.Out.Write(s.render(nil, report.perType()))
	if err == nil && stats {
		if s.printer.Format == terminal.Table {
			fmt.Fprintln(s.Out)
		}
		_, err = s.Out.Write(s.render(nil, report.perKey()))
	}
	return err
}

// reportPage asks for the types of keys, and then for how long or large they are: two round trips a page. A key that
// has gone, or become another type, meanwhile is left out. Strings and streams may be empty, and count; of other types
// an empty one does not exist. The first other error ends the report: a server that refuses MEMORY refuses it for every
// key.
func (s *session) reportPage(ctx context.Context, report *keysReport, keys []resp.Reply) error {
	found := make([]keyReport, len(keys))
	commands := make([][][]byte, len(keys))
	for i, key := range keys {
		found[i].key = string(key.Text)
		commands[i] = [][]byte{[]byte("TYPE"), key.Text}
	}
	if err := s.many(ctx, commands, func(i int, r resp.Reply) bool {
		found[i].typ = r.String()
		return true
	}); err != nil {
		return err
	}
	// One command may concern two figures of a key, so each has the place that its reply goes to.
	commands = commands[:0]
	var into []*int64
	for i := range found {
		f := &found[i]
		if how, known := peekCommands[f.typ]; known && report.counted {
			commands, into = append(commands, words(how.length[0], f.key)), append(into, &f.elements)
		}
		if report.measured {
			commands, into = append(commands, words("MEMORY", "USAGE", f.key)), append(into, &f.bytes)
		}
	}
	var refused error
	if err := s.many(ctx, commands, func(i int, r resp.Reply) bool {
		*into[i] = r.Int
		if r.IsError() && refused == nil && r.Err().Error() != wrongType { // of another type by now
			refused = fmt.Errorf("%s: %w", execute.Shown(commands[i]), r.Err())
		}
		return refused == nil
	}); err != nil {
		return err
	}
	// A key without any figure has gone since the scan.
	for _, f := range found {
		if f.elements > 0 || f.bytes > 0 || f.typ == "string" || f.typ == "stream" {
			report.add(f)
		}
	}
	return refused
}

// wrongType is the error of a command for keys of another type, the same text in Redis and here.
const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// add counts a key. Of keys that are equally long or large the first by name is shown, so that a report does not depend
// on the order of the scan.
func (report *keysReport) add(f keyReport) {
	of := report.types[f.typ]
	if of == nil {
		of = &typeReport{name: f.typ, longest: f, largest: f}
		report.types[f.typ] = of
	}
	of.keys, of.elements, of.bytes = of.keys+1, of.elements+f.elements, of.bytes+f.bytes
	if n := cmp.Compare(f.elements, of.longest.elements); n > 0 || n == 0 && f.key < of.longest.key {
		of.longest = f
	}
	if n := cmp.Compare(f.bytes, of.largest.bytes); n > 0 || n == 0 && f.key < of.largest.key {
		of.largest = f
	}
	// The list stays sorted, so a key that it has already is found where it would be put.
	at, found := slices.BinarySearchFunc(report.largest, f, func(a, b keyReport) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.key, b.key))
	})
	if report.measured && !found && at < maxLargest { // a key that a scan finds twice is listed once
		report.largest = slices.Insert(report.largest, at, f)
		report.largest = report.largest[:min(len(report.largest), maxLargest)]
	}
}

// perType is a row for each type, in the order of their names, as a reply: so it has all forms that replies have. The
// average is rounded down.
func (report *keysReport) perType() resp.Reply {
	names := make([]string, 0, len(report.types))
	for name := range report.types {
		names = append(names, name)
	}
	slices.Sort(names)
	rows := resp.Reply{Kind: resp.Array}
	for _, name := range names {
		of := report.types[name]
		row := member(member(resp.Reply{Kind: resp.Map}, "type", name), "keys", of.keys)
		if report.counted {
			unit := "element"
			if how, known := peekCommands[name]; known {
				unit = how.unit
			}
			row = member(member(row, "unit", unit+"s"), "length", of.elements)
			row = member(member(row, "average", of.elements/of.keys), "longest", of.longest.elements)
			row = member(row, "longest_key", of.longest.key)
		}
		if report.measured {
			row = member(member(row, "memory", of.bytes), "largest", of.largest.bytes)
			row = member(row, "largest_key", of.largest.key)
		}
		rows.Items = append(rows.Items, row)
	}
	return rows
}

// perKey is a row for each of the largest keys, in descending order of their memory.
func (report *keysReport) perKey() resp.Reply {
	rows := resp.Reply{Kind: resp.Array}
	for _, f := range report.largest {
		row := member(member(resp.Reply{Kind: resp.Map}, "memory", f.bytes), "type", f.typ)
		row = member(member(row, "length", f.elements), "key", f.key)
		rows.Items = append(rows.Items, row)
	}
	return rows
}

// member adds a name with its value to a map, which is returned: names and values alternate in Items, as in a reply of
// RESP3. Where the other form has no maps the printer makes rows of them.
func member[V string | int64](to resp.Reply, name string, value V) resp.Reply {
	v := resp.Reply{Kind: resp.BulkString}
	switch value := any(value).(type) {
	case string:
		v.Text = []byte(value)
	case int64:
		v = resp.Reply{Kind: resp.Integer, Int: value}
	}
	to.Items = append(to.Items, resp.Reply{Kind: resp.SimpleString, Text: []byte(name)}, v)
	return to
}
