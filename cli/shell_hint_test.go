package cli

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/server/command"
)

func TestHint(t *testing.T) {
	tests := []struct{ line, want string }{
		{"", ""},
		{"ge", ""},
		{"get", ""}, // the menu's turn until a blank ends the word
		{"get ", "GET key"},
		{"get k", "GET key"},
		{"get k ", "GET .."},
		{"nonsense ", ""},
		{"3 incr ", "INCR key"},
		{"set k ", "SET .. value"},
		{"client setn", "CLIENT <"},
		{"client setname ", "CLIENT SETNAME connection-name"},
		{"client nonsense ", ""},
		{`set "a b" `, "SET .. value"},
		{`set "a b`, "SET key value"},
	}
	for _, test := range tests {
		if got := hint(test.line); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%q: got %q, want %q...", test.line, got, test.want)
		}
	}
}

func TestRemaining(t *testing.T) {
	const set = "key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]"
	const zadd = "key [NX | XX] [GT | LT] [CH] score member [score member ...]"
	tests := []struct{ syntax, typed, want string }{
		{set, "", set},
		{set, "k", "value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]"},
		{set, "k v nx", "[GET] [EX seconds | PX milliseconds | KEEPTTL]"},
		{set, "k v ex", "seconds [NX | XX] [GET]"},
		{set, "k v ex 5", "[NX | XX] [GET]"},
		{set, "nx", "value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]"}, // a key called nx
		{zadd, "k", "[NX | XX] [GT | LT] [CH] score member [score member ...]"},
		{zadd, "k ch", "[NX | XX] [GT | LT] score member [score member ...]"},
		{zadd, "k 1", "member [score member ...]"},
		{zadd, "k 1 m 2", "[score member ...]"},
		{"<LIB-NAME name | LIB-VER version>", "lib-ver", "version"},
		{"", "surplus", ""},
	}
	for _, test := range tests {
		got := command.Notation((&command.Command{Syntax: test.syntax}).Remaining(strings.Fields(test.typed)))
		if got != test.want {
			t.Errorf("%s after %q:\n got %s\nwant %s", test.syntax, test.typed, got, test.want)
		}
	}
}
