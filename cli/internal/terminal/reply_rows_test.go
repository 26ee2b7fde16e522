package terminal

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/stavedb/stave/internal/resp"
)

// The forms with rows, and indented JSON, of replies of every shape.
func TestRows(t *testing.T) {
	tests := []struct{ reply, csv, jsonl, table, pretty string }{
		{"+OK\r\n", "OK\n", "\"OK\"\n", "OK\n", "\"OK\"\n"},
		{":1\r\n", "1\n", "1\n", "1\n", "1\n"},
		{"$-1\r\n", "\"\"\n", "null\n", "(nil)\n", "null\n"},
		{"#t\r\n", "true\n", "true\n", "true\n", "true\n"},
		{"-ERR bad\r\n", "(error) ERR bad\n", "{\"error\":\"ERR bad\"}\n", "(error) ERR bad\n", "{\n  \"error\": \"ERR bad\"\n}\n"},
		{"*-1\r\n", "\"\"\n", "null\n", "(nil)\n", "null\n"},
		{"*0\r\n", "", "", "(empty)\n", "[]\n"},
		{"%0\r\n", "", "", "(empty)\n", "{}\n"},
		{"*1\r\n*0\r\n", "\n", "[]\n", "(empty)\n", "[\n  []\n]\n"},
		{"*2\r\n$3\r\na,b\r\n:-5\r\n", "\"a,b\"\n-5\n", "\"a,b\"\n-5\n", "#  value\n1  a,b\n2  -5\n", "[\n  \"a,b\",\n  -5\n]\n"},
		{"~2\r\n:7\r\n:-12\r\n", "7\n-12\n", "7\n-12\n", "#  value\n1      7\n2    -12\n", "[\n  7,\n  -12\n]\n"},
		{"%1\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n", "a,\"[1,2]\"\n", "{\"key\":\"a\",\"value\":[1,2]}\n", "key  value\na    [1,2]\n", "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n"},
		{"*2\r\n*2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n", "a,1\nb\n", "[\"a\",1]\n\"b\"\n", "#  1  2\n1  a  1\n2  b\n", "[\n  [\n    \"a\",\n    1\n  ],\n  \"b\"\n]\n"},
		{"*2\r\n%1\r\n+x\r\n:1\r\n%2\r\n+y\r\n:2\r\n+x\r\n-ERR no\r\n", "x,y\n1,\n(error) ERR no,2\n", "{\"x\":1}\n{\"y\":2,\"x\":{\"error\":\"ERR no\"}}\n",
			"x               y\n1               (nil)\n(error) ERR no  2\n", "[\n  {\n    \"x\": 1\n  },\n  {\n    \"y\": 2,\n    \"x\": {\n      \"error\": \"ERR no\"\n    }\n  }\n]\n"},
	}
	for _, test := range tests {
		r, _, err := resp.Decode([]byte(test.reply))
		if err != nil {
			t.Fatalf("%q: %v", test.reply, err)
		}
		for f, want := range map[Format]string{CSV: test.csv, JSONL: test.jsonl, Table: test.table, Pretty: test.pretty} {
			if got := string(Printer{Format: f}.Append([]byte("before "), r)); got != "before "+want {
				t.Errorf("%q as %s:\n got %q\nwant %q", test.reply, formatNames[f], got, want)
			}
		}
	}
}

// What a command says about its reply: a flat array is one of pairs, or it is not.
func TestPaired(t *testing.T) {
	flat := "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n"
	for line, want := range map[string]string{
		"hgetall h":                   "a,1\nb,2\n",
		"zrange z 0 -1 withscores":    "a,1\nb,2\n",
		"hrandfield h 2 withvalues":   "a,1\nb,2\n",
		"config get *":                "a,1\nb,2\n",
		"config nothing":              "a\n1\nb\n2\n",
		"zrange z 0 -1":               "a\n1\nb\n2\n",
		"withscores":                  "a\n1\nb\n2\n",
		"":                            "a\n1\nb\n2\n",
		"zrangebyscore z 0 1 LIMIT":   "a\n1\nb\n2\n",
		"zpopmin z 2":                 "a,1\nb,2\n",
		"memory stats":                "a,1\nb,2\n",
		"zdiff 2 a b WithScores more": "a,1\nb,2\n",
	} {
		r, _, err := resp.Decode([]byte(flat))
		if err != nil {
			t.Fatal(err)
		}
		args, err := SplitLine([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(Printer{Format: CSV}.AppendTo(nil, args, r)); got != want {
			t.Errorf("%s: %q", line, got)
		}
		if got := string(Printer{Format: JSON}.AppendTo(nil, args, r)); got != "[\"a\",\"1\",\"b\",\"2\"]\n" {
			t.Errorf("%s: JSON is the reply as it is: %s", line, got)
		}
	}
	odd, _, _ := resp.Decode([]byte("*1\r\n$1\r\na\r\n"))
	if got := string(Printer{Format: CSV}.AppendTo(nil, [][]byte{[]byte("HGETALL")}, odd)); got != "a\n" {
		t.Errorf("an odd number: %q", got)
	}
}

// A table fits its width, whatever the characters are wide, and loses nothing that fits.
func TestTableWidth(t *testing.T) {
	long := strings.Repeat("0123456789", 9)
	for _, cell := range []string{long, strings.Repeat("漢字", 40), strings.Repeat("e\u0301", 90), "short", ""} {
		r := resp.Reply{Kind: resp.Map, Items: []resp.Reply{
			{Kind: resp.BulkString, Text: []byte("name")}, {Kind: resp.BulkString, Text: []byte(cell)},
			{Kind: resp.BulkString, Text: []byte(cell)}, {Kind: resp.BulkString, Text: []byte("x")},
		}}
		for _, width := range []int{1, 18, 19, 40, 81} {
			for line := range bytes.Lines(Printer{Format: Table, Width: width}.Append(nil, r)) {
				if got := uniseg.StringWidth(strings.TrimRight(string(line), "\n")); got > max(width, 2*minColumn+2) {
					t.Errorf("%d columns for %d: %s", got, width, line)
				}
			}
		}
		if got := string(Printer{Format: Table}.Append(nil, r)); strings.Contains(got, "…") {
			t.Errorf("cut without a width: %s", got)
		}
	}
}

// A table shows a terminal no control characters, and a reader of CSV finds the bytes that were there.
func TestRowsKeepBytes(t *testing.T) {
	bad := "\x1b[2J\u009b\a,\"\n\xff"
	r := resp.Reply{Kind: resp.Map, Items: []resp.Reply{{Kind: resp.BulkString, Text: []byte(bad)}, {Kind: resp.BulkString, Text: []byte(bad)}}}
	for _, r := range []resp.Reply{r, r.Items[0], {Kind: resp.Array, Items: []resp.Reply{r, r}}} {
		for _, c := range string(Printer{Format: Table}.Append(nil, r)) {
			if c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 {
				t.Errorf("a table prints control character %q", c)
			}
		}
	}
	rows, err := csv.NewReader(bytes.NewReader(Printer{Format: CSV}.Append(nil, r))).ReadAll()
	if err != nil || len(rows) != 1 || rows[0][0] != bad || rows[0][1] != bad {
		t.Errorf("%q, %v", rows, err)
	}
}
