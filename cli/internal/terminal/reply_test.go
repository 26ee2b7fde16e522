package terminal

import (
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// The typed and raw forms are what redis-cli 7.0.15 printed for the same bytes,
// with FAKETTY set and unset, but for errors within raw arrays (it adds an
// empty line) and big numbers (it gives up).
func TestPrinter(t *testing.T) {
	tests := []struct{ reply, typed, raw, json string }{
		{"+OK\r\n", "OK\n", "OK\n", "\"OK\"\n"},
		{"-ERR bad thing\r\n", "(error) ERR bad thing\n", "ERR bad thing\n", "{\"error\":\"ERR bad thing\"}\n"},
		{":1\r\n", "(integer) 1\n", "1\n", "1\n"},
		{"$5\r\nhe\x00\xff\n\r\n", "\"he\\x00\\xff\\n\"\n", "he\x00\xff\n\n", "{\"b64\":\"aGUA/wo=\"}\n"},
		{"$-1\r\n", "(nil)\n", "\n", "null\n"},
		{"*-1\r\n", "(nil)\n", "\n", "null\n"},
		{"*0\r\n", "(empty array)\n", "\n", "[]\n"},
		{"*2\r\n$1\r\na\r\n:5\r\n", "1) \"a\"\n2) (integer) 5\n", "a\n5\n", "[\"a\",5]\n"},
		{"*2\r\n*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n*1\r\n$-1\r\n",
			"1) 1) \"a\"\n   2) 1) (integer) 1\n      2) (empty array)\n2) 1) (nil)\n", "a\n1\n\n\n", "[[\"a\",[1,[]]],[null]]\n"},
		{"*11\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n*2\r\n:1\r\n*2\r\n:2\r\n:3\r\n",
			" 1) (integer) 0\n 2) (integer) 0\n 3) (integer) 0\n 4) (integer) 0\n 5) (integer) 0\n 6) (integer) 0\n" +
				" 7) (integer) 0\n 8) (integer) 0\n 9) (integer) 0\n10) (integer) 0\n11) 1) (integer) 1\n    2) 1) (integer) 2\n       2) (integer) 3\n",
			"0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n1\n2\n3\n", "[0,0,0,0,0,0,0,0,0,0,[1,[2,3]]]\n"},
		{"%0\r\n", "(empty hash)\n", "\n", "{}\n"},
		{"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*2\r\n:1\r\n:2\r\n",
			"1# \"a\" => (integer) 1\n2# \"b\" => \n   1) (integer) 1\n   2) (integer) 2\n", "a 1\nb 1\n2\n", "{\"a\":1,\"b\":[1,2]}\n"},
		{"%1\r\n$1\r\na\r\n%2\r\n$1\r\nx\r\n:1\r\n$1\r\ny\r\n~2\r\n:1\r\n:2\r\n",
			"1# \"a\" => \n   1# \"x\" => (integer) 1\n   2# \"y\" => \n      1~ (integer) 1\n      2~ (integer) 2\n",
			"a x 1\ny 1\n2\n", "{\"a\":{\"x\":1,\"y\":[1,2]}}\n"},
		{"%1\r\n$1\r\na\r\n*1\r\n%1\r\n:1\r\n:2\r\n", "1# \"a\" => 1) 1# (integer) 1 => (integer) 2\n", "a 1 2\n", "{\"a\":[[[1,2]]]}\n"},
		{"%1\r\n$1\r\na\r\n*1\r\n*2\r\n:2\r\n:3\r\n", "1# \"a\" => \n   1) 1) (integer) 2\n      2) (integer) 3\n", "a 2\n3\n", "{\"a\":[[2,3]]}\n"},
		{"%2\r\n$1\r\n\xff\r\n:1\r\n:2\r\n*0\r\n", "1# \"\\xff\" => (integer) 1\n2# (integer) 2 => (empty array)\n",
			"\xff 1\n2 \n", "[[{\"b64\":\"/w==\"},1],[2,[]]]\n"},
		{"~0\r\n", "(empty set)\n", "\n", "[]\n"},
		{"~2\r\n$1\r\na\r\n$1\r\nb\r\n", "1~ \"a\"\n2~ \"b\"\n", "a\nb\n", "[\"a\",\"b\"]\n"},
		{",3.14\r\n", "(double) 3.14\n", "3.14\n", "3.14\n"},
		{",inf\r\n", "(double) inf\n", "inf\n", "\"inf\"\n"},
		{"#t\r\n", "(true)\n", "(true)\n", "true\n"},
		{"#f\r\n", "(false)\n", "(false)\n", "false\n"},
		{"_\r\n", "(nil)\n", "\n", "null\n"},
		{"=8\r\ntxt:a\nbc\r\n", "a\nbc\n", "a\nbc\n", "\"a\\nbc\"\n"},
		{"(12345678901234567890\r\n", "12345678901234567890\n", "12345678901234567890\n", "12345678901234567890\n"},
		{"*2\r\n-ERR inner\r\n+OK\r\n", "1) (error) ERR inner\n2) OK\n", "ERR inner\nOK\n", "[{\"error\":\"ERR inner\"},\"OK\"]\n"},
	}
	for _, test := range tests {
		r, _, err := resp.Decode([]byte(test.reply))
		if err != nil {
			t.Fatalf("%q: %v", test.reply, err)
		}
		for f, want := range map[Format]string{Typed: test.typed, Raw: test.raw, JSON: test.json} {
			if got := string(Printer{Format: f}.Append(nil, r)); got != want {
				t.Errorf("%q in format %d:\n got %q\nwant %q", test.reply, f, got, want)
			}
		}
	}
}

func TestTerminalIsNotObeyed(t *testing.T) {
	for _, reply := range []string{"-ERR \x1b[2J\u009b\r\n", "+\x1b]0;x\a\r\n", "=10\r\ntxt:a\x1b[2J\n\r\n", "$4\r\n\x1b[2J\r\n"} {
		r, _, err := resp.Decode([]byte(reply))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range string(Printer{Format: Typed}.Append(nil, r)) {
			if c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 {
				t.Errorf("%q prints control character %q", reply, c)
			}
		}
	}
}
