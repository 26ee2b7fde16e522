package terminal

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stavedb/stave/internal/resp"
)

// Replies as rows: an element of an array is a row, and so is a pair of a map. An element that is itself an array has a
// cell for each of its own elements; what is nested deeper is JSON within its cell. Where all elements are maps, as
// those of XINFO GROUPS in RESP3, the columns are the names in them.

// AppendTo appends the printed form of the reply to a command. The forms that have rows need the command: RESP2 sends
// the pairs of HGETALL and others as one flat array.
func (p Printer) AppendTo(dst []byte, args [][]byte, r resp.Reply) []byte {
	switch p.Format {
	case JSONL, CSV, Table:
		r = paired(args, r)
	}
	return p.Append(dst, r)
}

// paired makes a map of a flat array of pairs.
func paired(args [][]byte, r resp.Reply) resp.Reply {
	if r.Kind != resp.Array || len(r.Items)%2 != 0 || len(args) == 0 || slices.ContainsFunc(r.Items, isAggregate) {
		return r
	}
	word := func(i int) string { return strings.ToUpper(string(args[i])) }
	pairs := false
	switch word(0) {
	case "HGETALL", "ZPOPMIN", "ZPOPMAX", "HELLO":
		pairs = true
	case "CONFIG", "XINFO", "MEMORY":
		pairs = len(args) > 1 && (word(1) == "GET" || word(1) == "STREAM" || word(1) == "STATS")
	default:
		for i := 1; i < len(args); i++ {
			pairs = pairs || word(i) == "WITHSCORES" || word(i) == "WITHVALUES"
		}
	}
	if pairs {
		r.Kind = resp.Map
	}
	return r
}

// isAggregate says whether a reply has elements.
func isAggregate(r resp.Reply) bool {
	switch r.Kind {
	case resp.Array, resp.Map, resp.Set, resp.Push:
		return !r.Null
	}
	return false
}

// rowsOf splits a reply into rows. names are those of the columns, nil if they have none.
func rowsOf(r resp.Reply) (names []string, rows [][]resp.Reply) {
	switch {
	case !isAggregate(r):
		return nil, [][]resp.Reply{{r}}
	case r.Kind == resp.Map:
		return []string{"key", "value"}, slices.Collect(slices.Chunk(r.Items[:len(r.Items)/2*2], 2))
	}
	if names = memberNames(r.Items); names != nil {
		for _, item := range r.Items {
			row := make([]resp.Reply, len(names))
			for i := range row {
				row[i] = resp.Reply{Kind: resp.BulkString, Null: true}
			}
			for i := 0; i+1 < len(item.Items); i += 2 {
				row[slices.Index(names, string(item.Items[i].Text))] = item.Items[i+1]
			}
			rows = append(rows, row)
		}
		return names, rows
	}
	for _, item := range r.Items {
		if isAggregate(item) {
			rows = append(rows, item.Items)
		} else {
			rows = append(rows, []resp.Reply{item})
		}
	}
	return nil, rows
}

// maxNames bounds the columns that names of members make.
const maxNames = 64

// memberNames are the names in the maps that items are, in the order of their first appearance; nil if they are
// anything else.
func memberNames(items []resp.Reply) (names []string) {
	for _, item := range items {
		if item.Kind != resp.Map || item.Null {
			return nil
		}
		for i := 0; i+1 < len(item.Items); i += 2 {
			if !isText(item.Items[i]) {
				return nil
			}
			if name := string(item.Items[i].Text); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > maxNames {
			return nil
		}
	}
	return names
}

// appendPretty is JSON over several lines.
func appendPretty(dst []byte, r resp.Reply) []byte {
	b := bytes.NewBuffer(dst)
	if text := appendJSON(nil, r); json.Indent(b, text, "", "  ") != nil { // what servers call numbers may be none
		b.Truncate(len(dst))
		b.Write(text)
	}
	return append(b.Bytes(), '\n')
}

// appendJSONL writes one line for each element. A pair of a map is an object with a key and a value, which "jq -s
// from_entries" puts together again.
func appendJSONL(dst []byte, r resp.Reply) []byte {
	switch {
	case !isAggregate(r):
		return append(appendJSON(dst, r), '\n')
	case r.Kind == resp.Map:
		for i := 0; i+1 < len(r.Items); i += 2 {
			dst = appendJSON(append(dst, `{"key":`...), r.Items[i])
			dst = appendJSON(append(dst, `,"value":`...), r.Items[i+1])
			dst = append(dst, "}\n"...)
		}
		return dst
	}
	for _, item := range r.Items {
		dst = append(appendJSON(dst, item), '\n')
	}
	return dst
}

// appendCSV writes rows as RFC 4180 has them, but for the line breaks, which are \n. Null is an empty cell. There is a
// row of names where the reply has maps as elements.
func appendCSV(dst []byte, r resp.Reply) []byte {
	names, rows := rowsOf(r)
	b := bytes.NewBuffer(dst)
	w := csv.NewWriter(b)
	if len(names) > 0 && r.Kind != resp.Map {
		_ = w.Write(names) // a buffer takes everything
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cellText(cell)
		}
		if len(cells) == 1 && cells[0] == "" {
			w.Flush()
			b.WriteString("\"\"\n") // an empty line would be no row
			continue
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return b.Bytes()
}

// cellText is the value of a cell: the bytes of a string, the digits of a number, JSON for what has elements.
func cellText(r resp.Reply) string {
	switch {
	case r.Null:
		return ""
	case isAggregate(r):
		return string(appendJSON(nil, r))
	case r.Kind == resp.Boolean:
		return strconv.FormatBool(r.Int != 0)
	case r.IsError():
		return "(error) " + string(r.Text)
	}
	return r.String()
}

// appendTable writes columns. What is no plain text is quoted, so that a terminal does not obey it; where Width is set,
// long cells are cut to fit it. Rows without names are numbered.
func (p Printer) appendTable(dst []byte, r resp.Reply) []byte {
	if !isAggregate(r) {
		return append(append(dst, tableText(r)...), '\n')
	}
	names, rows := rowsOf(r)
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	switch {
	case len(rows) == 0 || columns == 0:
		return append(dst, "(empty)\n"...)
	case names == nil && columns == 1:
		names = []string{"#", "value"}
	case names == nil:
		names = []string{"#"}
		for i := range columns {
			names = append(names, strconv.Itoa(i+1))
		}
	default:
		for i, name := range names {
			names[i] = plainText(name)
		}
	}
	t := NewTable(names...)
	t.width, t.plain = p.Width, true
	for i, row := range rows {
		cells := make([]string, 0, len(names))
		if len(names) > columns {
			cells = append(cells, strconv.Itoa(i+1))
		}
		for _, cell := range row {
			cells = append(cells, tableText(cell))
		}
		for len(cells) < len(names) {
			cells = append(cells, "")
		}
		t.Row(cells...)
	}
	b := bytes.NewBuffer(dst)
	_ = t.Write(b)
	return b.Bytes()
}

// tableText is a cell that a terminal may show.
func tableText(r resp.Reply) string {
	if r.Null {
		return "(nil)"
	}
	return plainText(cellText(r))
}

// plainText quotes what is not printable text on one line.
func plainText(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return text
	}
	return string(resp.AppendQuoted(nil, []byte(text)))
}
