package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/jsonl"
)

// Replies as text. The typed form is redis-cli's to the byte, which a test
// compares with redis-cli itself: what people and their scripts expect of it is
// older than this program.

// A printer turns replies into bytes. It holds no output of its own. It is a value: two printers
// with the same fields print the same.
type Printer struct {
	Format Format
	Color  bool // errors in red; only ever set for a terminal
	Width  int  // of the terminal in columns, for tables; 0: without a limit
}

// Append appends the printed form of r, ending in a newline. The form of an array without elements may be nothing at
// all.
func (p Printer) Append(dst []byte, r resp.Reply) []byte {
	switch p.Format {
	case Raw:
		return append(AppendRaw(dst, r), '\n')
	case JSON:
		return append(appendJSON(dst, r), '\n')
	case Pretty:
		return appendPretty(dst, r)
	case JSONL:
		return appendJSONL(dst, r)
	}
	switch {
	case p.Format == CSV && !r.IsError():
		return appendCSV(dst, r)
	case p.Format == Table && !r.IsError():
		return p.appendTable(dst, r)
	}
	return p.appendTyped(dst, r, "")
}

// appendTyped is redis-cli's form for terminals. prefix is the indentation of every line of an
// aggregate but its first, which follows its number. Bulk strings are quoted and escaped; simple
// strings are shown bare, as the text of the protocol that they are.
func (p Printer) appendTyped(dst []byte, r resp.Reply, prefix string) []byte {
	if r.Null {
		return append(dst, "(nil)\n"...)
	}
	switch r.Kind {
	case resp.Error, resp.BulkError:
		return p.appendError(dst, r)
	case resp.Integer:
		dst = append(dst, "(integer) "...)
		dst = strconv.AppendInt(dst, r.Int, 10)
	case resp.Double:
		dst = append(dst, "(double) "...)
		dst = append(dst, r.Text...)
	case resp.Boolean:
		dst = append(dst, "("+strconv.FormatBool(r.Int != 0)+")"...)
	case resp.BulkString:
		dst = resp.AppendQuoted(dst, r.Text)
	case resp.Array, resp.Map, resp.Set, resp.Push:
		return p.appendItems(dst, r, prefix)
	default: // simple string, verbatim, big number: text meant to be read as it is
		dst = append(dst, Safe(r.Text)...)
	}
	return append(dst, '\n')
}

// appendError prints an error reply. Only the mark and the text are coloured, never what surrounds
// them.
func (p Printer) appendError(dst []byte, r resp.Reply) []byte {
	return append(append(dst, Paint(p.Color, "(error) "+string(Safe(r.Text)), "31")...), '\n')
}

// appendItems prints the elements of an aggregate, numbered from 1. Numbers are right-aligned to
// the widest, so that the elements stand in one column.
func (p Printer) appendItems(dst []byte, r resp.Reply, prefix string) []byte {
	step, mark, empty := 1, ") ", "(empty array)\n"
	switch r.Kind {
	case resp.Map:
		step, mark, empty = 2, "# ", "(empty hash)\n"
	case resp.Set:
		mark, empty = "~ ", "(empty set)\n"
	case resp.Push:
		empty = "(empty push)\n"
	}
	if len(r.Items) < step {
		return append(dst, empty...)
	}
	width := len(strconv.Itoa(len(r.Items) / step))
	inner := prefix + strings.Repeat(" ", width+2)
	for i := 0; i+step <= len(r.Items); i += step {
		if i > 0 {
			dst = append(dst, prefix...)
		}
		dst = fmt.Appendf(dst, "%*d%s", width, i/step+1, mark)
		dst = p.appendTyped(dst, r.Items[i], inner)
		if step == 2 {
			dst = append(dst[:len(dst)-1], " => "...)
			if spreads(r.Items[i+1]) {
				dst = append(append(dst, '\n'), inner...)
			}
			dst = p.appendTyped(dst, r.Items[i+1], inner)
		}
	}
	return dst
}

// spreads says whether elements of r stand on several lines. A map's value that does so begins on a
// line of its own, as in redis-cli.
func spreads(r resp.Reply) bool {
	n := len(r.Items)
	if r.Kind == resp.Map {
		n /= 2
	}
	return n > 1 || slices.ContainsFunc(r.Items, spreads)
}

// Safe keeps line breaks and tabs and escapes all other control bytes: INFO and error texts may
// carry names of foreign origin, and a terminal must not obey them.
func Safe(text []byte) []byte {
	unsafe := func(r rune) bool {
		return r < 0x20 && r != '\n' && r != '\r' && r != '\t' || r >= 0x7f && r < 0xa0
	}
	if bytes.IndexFunc(text, unsafe) < 0 {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		if unsafe(r) {
			out = fmt.Appendf(out, `\x%02x`, r)
		} else {
			out = append(out, string(r)...)
		}
	}
	return out
}

// AppendRaw is the form for pipes: strings as they are, elements of aggregates separated by line
// breaks, keys and values of maps by a space. Null is an empty line. Nothing is escaped: it is for
// pipes, where bytes must arrive as they are.
func AppendRaw(dst []byte, r resp.Reply) []byte {
	switch r.Kind {
	case resp.Array, resp.Set, resp.Push:
		for i, item := range r.Items {
			if i > 0 {
				dst = append(dst, '\n')
			}
			dst = AppendRaw(dst, item)
		}
		return dst
	case resp.Map:
		for i := 0; i+1 < len(r.Items); i += 2 {
			if i > 0 {
				dst = append(dst, '\n')
			}
			dst = append(AppendRaw(dst, r.Items[i]), ' ')
			dst = AppendRaw(dst, r.Items[i+1])
		}
		return dst
	case resp.Boolean:
		return append(dst, "("+strconv.FormatBool(r.Int != 0)+")"...)
	}
	return append(dst, r.String()...)
}

// appendJSON is the form for programs. Bytes that are not UTF-8 come out as {"b64":"..."}, and
// infinities as strings, because JSON knows neither. Doubles keep their digits, since they are
// copied; a set is an array, and so is a push.
func appendJSON(dst []byte, r resp.Reply) []byte {
	if r.Null {
		return append(dst, "null"...)
	}
	switch r.Kind {
	case resp.Integer:
		return strconv.AppendInt(dst, r.Int, 10)
	case resp.Boolean:
		return strconv.AppendBool(dst, r.Int != 0)
	case resp.Double:
		if math.IsInf(r.Float, 0) || math.IsNaN(r.Float) || !json.Valid(r.Text) {
			return jsonl.AppendBytes(dst, r.Text)
		}
		return append(dst, r.Text...)
	case resp.BigNumber:
		return append(dst, r.Text...)
	case resp.Error, resp.BulkError:
		dst = append(dst, `{"error":`...)
		return append(jsonl.AppendBytes(dst, r.Text), '}')
	case resp.Map:
		return appendJSONMap(dst, r.Items)
	case resp.Array, resp.Set, resp.Push:
		dst = append(dst, '[')
		for i, item := range r.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	}
	return jsonl.AppendBytes(dst, r.Text)
}

// appendJSONMap writes a map as an object when every key can be the name of a member, and as an
// array of pairs when one cannot. A name that occurs twice stays twice: the reply had it so.
func appendJSONMap(dst []byte, items []resp.Reply) []byte {
	names := true
	for i := 0; i+1 < len(items); i += 2 {
		names = names && isText(items[i])
	}
	opening, between, closing := "{", ":", "}"
	if !names {
		opening, between, closing = "[[", ",", "]]"
	}
	if len(items) < 2 {
		return append(dst, "{}"...)
	}
	dst = append(dst, opening...)
	for i := 0; i+1 < len(items); i += 2 {
		switch {
		case i > 0 && names:
			dst = append(dst, ',')
		case i > 0:
			dst = append(dst, "],["...)
		}
		dst = appendJSON(dst, items[i])
		dst = append(dst, between...)
		dst = appendJSON(dst, items[i+1])
	}
	return append(dst, closing...)
}

// isText reports whether r is a string that JSON can hold unencoded.
func isText(r resp.Reply) bool {
	switch r.Kind {
	case resp.SimpleString, resp.BulkString, resp.Verbatim:
		return !r.Null && utf8.Valid(r.Text)
	}
	return false
}
