package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// all returns the commands and their subcommands.
func all() []*command.Command {
	var list []*command.Command
	for _, c := range server.Commands {
		list = append(append(list, c), c.Subcommands...)
	}
	return list
}

func TestTableIsComplete(t *testing.T) {
	for _, c := range all() {
		if c.Name != strings.ToLower(c.Name) || len(c.Name) > 32 {
			t.Errorf("%s: bad name", c.Name)
		}
		if c.Summary == "" || !strings.HasSuffix(c.Summary, ".") && !strings.Contains(c.Summary, "; ") || c.Since == "" || c.Complexity == "" || c.Group == "" {
			t.Errorf("%s: summary %q, since %q, complexity %q, group %q", c.Name, c.Summary, c.Since, c.Complexity, c.Group)
		}
		if c.Arity == 0 {
			t.Errorf("%s: no arity", c.Name)
		}
		if c.Flags&command.Write != 0 && c.Flags&command.ReadOnly != 0 {
			t.Errorf("%s: both write and readonly", c.Name)
		}
		if server.Lookup(strings.ToUpper(c.Name)) != c {
			t.Errorf("%s: Lookup does not find it", c.Name)
		}
	}
	if server.Lookup("nope") != nil || server.Lookup("client|nope") != nil {
		t.Error("Lookup finds what is not there")
	}
}

// TestEachEntryIsOfACommand: the documentation describes no command that does not exist.
func TestEachEntryIsOfACommand(t *testing.T) {
	files, err := filepath.Glob("command/docs/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of documentation, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			name := strings.Fields(entry)[0]
			c := server.Lookup(name)
			if c == nil || c.Name != name {
				t.Errorf("%s: %s: no such command", file, name)
			} else if want := string(c.Group) + ".txt"; filepath.Base(file) != want {
				t.Errorf("%s: %s belongs into %s", file, name, want)
			}
		}
	}
}

// arityOf is the least number of arguments that the syntax asks for, and whether there may be more.
func arityOf(list []command.Argument) (least int, open bool) {
	for _, a := range list {
		n, more := 1, false
		switch a.Type {
		case "oneof":
			n = 1 << 20
			for _, choice := range a.Choices {
				m, o := arityOf([]command.Argument{choice})
				n, more = min(n, m), more || o || len(a.Choices) > 0 && m != n
			}
		case "block":
			n, more = arityOf(a.Choices)
		}
		if a.Token != "" && a.Type != "pure-token" {
			n++
		}
		if a.Optional {
			open = true
			continue
		}
		least += n
		open = open || more && a.Type != "oneof" || a.Multiple
	}
	return least, open
}

func TestSyntaxAgreesWithArity(t *testing.T) {
	for _, c := range all() {
		if len(c.Subcommands) > 0 || c.Name == "quit" || c.Name == "psync" {
			continue // these take and ignore anything, or other words, or FAILOVER, which Redis does not document
		}
		least, open := arityOf(c.Arguments())
		least += 1 + strings.Count(c.Name, "|")
		want := c.Arity
		if want < 0 {
			want = -want
		}
		if least != want || open != (c.Arity < 0) {
			t.Errorf("%s: arity %d, but the syntax %q has at least %d arguments, more: %t", c.Name, c.Arity, c.Syntax, least, open)
		}
	}
}

// TestNotation: what the parser makes of a usage line can be written as the same line again, so nothing is lost on the
// way.
func TestNotation(t *testing.T) {
	for _, c := range all() {
		if c.Name == "client|kill" {
			continue // its "filter [value ...]" is read as filters
		}
		if got := command.Notation(c.Arguments()); got != c.Syntax {
			t.Errorf("%s:\n got %s\nwant %s", c.Name, got, c.Syntax)
		}
	}
}

func TestSyntax(t *testing.T) {
	print := func(list []command.Argument) string {
		var walk func(list []command.Argument) string
		walk = func(list []command.Argument) string {
			var parts []string
			for _, a := range list {
				part := a.Type + " " + a.Name
				if a.Token != "" {
					part += " " + a.Token
				}
				if a.Optional {
					part += "?"
				}
				if a.Multiple {
					part += "+"
				}
				if len(a.Choices) > 0 {
					part += "(" + walk(a.Choices) + ")"
				}
				parts = append(parts, part)
			}
			return strings.Join(parts, ", ")
		}
		return walk(list)
	}
	for syntax, want := range map[string]string{
		"":                                  "",
		"key value":                         "key key, string value",
		"key [key ...]":                     "key key+",
		"key field value [field value ...]": "key key, block field-value+(string field, string value)",
		"[NX | XX] [EX seconds | KEEPTTL]":  "oneof nx-or-xx?(pure-token nx NX, pure-token xx XX), oneof seconds-or-keepttl?(integer seconds EX, pure-token keepttl KEEPTTL)",
		"<BEFORE | AFTER> pivot":            "oneof before-or-after(pure-token before BEFORE, pure-token after AFTER), string pivot",
		"[LIMIT offset count]":              "block offset-count?(integer offset LIMIT, integer count)",
		"[version [AUTH user password]]":    "block version-user-password?(string version, block user-password?(string user AUTH, string password))",
	} {
		c := command.Command{Syntax: syntax}
		if got := print(c.Arguments()); got != want {
			t.Errorf("%q:\n got %s\nwant %s", syntax, got, want)
		}
	}
}

// ours are the facts of the table that are not those of Redis 7.0, on purpose.
var ours = map[string]string{
	"client": "", "client|setinfo": "since 7.2", "command": "", "config": "",
	"zrank": "WITHSCORE since 7.2", "zrevrank": "WITHSCORE since 7.2", "command|getkeys": "arity -3 since 7.2", "command|getkeysandflags": "arity -3 since 7.2",
}

// TestTableAgreesWithRedis compares arity, flags, key positions and categories with COMMAND INFO of a real server.
func TestTableAgreesWithRedis(t *testing.T) {
	redis := startRedis(t)
	stave := &stavePeer{newSession(t, openStore(t), nil)}
	facts := func(r resp.Reply) (list []string) {
		if r.Null || len(r.Items) < 9 {
			return nil
		}
		for i, name := range []string{"name", "arity", "flags", "first", "last", "step", "categories", "tips"} {
			item := r.Items[i]
			var words []string
			for _, word := range item.Items {
				words = append(words, string(word.Text))
			}
			slices.Sort(words)
			list = append(list, fmt.Sprint(name, " ", item.String(), words))
		}
		var specs []string
		for _, spec := range r.Items[8].Items {
			var flat strings.Builder
			for i := 0; i+1 < len(spec.Items); i += 2 {
				if name := string(spec.Items[i].Text); name != "notes" {
					fmt.Fprint(&flat, name, show(spec.Items[i+1]))
				}
			}
			specs = append(specs, flat.String())
		}
		return append(list, fmt.Sprint("keys ", specs))
	}
	for _, c := range all() {
		if _, known := ours[c.Name]; known {
			continue
		}
		args := []string{"command", "info", c.Name}
		theirs, err := redis.do(args)
		if err != nil {
			t.Fatal(err)
		}
		if theirs.Items[0].Null {
			t.Logf("%s: not in this redis-server", c.Name)
			continue
		}
		got, err := stave.do(args)
		if err != nil {
			t.Fatal(err)
		}
		mine, real := facts(got.Items[0]), facts(theirs.Items[0])
		for i := range real {
			if i < len(mine) && mine[i] != real[i] {
				t.Errorf("%s: stave %s, redis %s", c.Name, mine[i], real[i])
			}
		}
	}
}

func TestCommandIntrospection(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, tt := range []struct{ in, out string }{
		{"COMMAND GETKEYS MSET a 1 b 2\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
		{"COMMAND GETKEYS PING\r\n", "-ERR The command has no key arguments\r\n"},
		{"COMMAND GETKEYS nope a\r\n", "-ERR Invalid command specified\r\n"},
		{"COMMAND GETKEYS GET\r\n", "-ERR Invalid number of arguments specified for command\r\n"},
		{"COMMAND GETKEYS PFMERGE to from\r\n", "*2\r\n$2\r\nto\r\n$4\r\nfrom\r\n"},
		{"COMMAND GETKEYS PFMERGE to\r\n", "-ERR Invalid arguments specified for command\r\n"},
		{"COMMAND GETKEYS ZUNIONSTORE to 9 from\r\n", "-ERR Invalid arguments specified for command\r\n"},
		{"COMMAND GETKEYS SINTERCARD 1.5 k\r\n", "*1\r\n$1\r\nk\r\n"},
		{"COMMAND GETKEYS SINTERCARD -1 k\r\n", "-ERR Invalid arguments specified for command\r\n"},
		{"COMMAND GETKEYS SINTERCARD 99999999999999999999 k\r\n", "-ERR Invalid arguments specified for command\r\n"},
		{"COMMAND GETKEYS SORT k\r\n", "*1\r\n$1\r\nk\r\n"},
		{"COMMAND GETKEYS GEORADIUS k 1 2 3 m STORE a STOREDIST b STORE c\r\n", "*3\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\nb\r\n"},
		{"COMMAND GETKEYS GEORADIUS k 1 2 3 m STORE STORE STORE b\r\n", "*2\r\n$1\r\nk\r\n$5\r\nSTORE\r\n"},
		{"COMMAND GETKEYSANDFLAGS MSET a 1 b 2\r\n", "*2\r\n*2\r\n$1\r\na\r\n*2\r\n+OW\r\n+update\r\n*2\r\n$1\r\nb\r\n*2\r\n+OW\r\n+update\r\n"},
		{"COMMAND GETKEYSANDFLAGS PING\r\n", "-ERR The command has no key arguments\r\n"},
		{"COMMAND INFO nope\r\n", "*1\r\n*-1\r\n"},
		{"COMMAND DOCS nope\r\n", "*0\r\n"},
		{"COMMAND LIST FILTERBY PATTERN config|ge*\r\n", "*1\r\n$10\r\nconfig|get\r\n"},
		{"COMMAND LIST FILTERBY MODULE x\r\n", "*0\r\n"},
		{"COMMAND LIST nope\r\n", "-ERR syntax error\r\n"},
		{"COMMAND COUNT\r\n", fmt.Sprintf(":%d\r\n", len(server.Commands))},
	} {
		if got := ask(s, tt.in); got != tt.out {
			t.Errorf("%q:\n got %q\nwant %q", tt.in, got, tt.out)
		}
	}
	for _, in := range []string{"COMMAND\r\n", "COMMAND INFO\r\n", "COMMAND DOCS\r\n", "COMMAND LIST\r\n", "CLIENT HELP\r\n", "COMMAND HELP\r\n", "CONFIG HELP\r\n"} {
		reply, rest, err := resp.Decode([]byte(ask(s, in)))
		if err != nil || len(rest) > 0 || reply.IsError() || len(reply.Items) == 0 {
			t.Errorf("%q: %v, %d bytes left, %d items", in, err, len(rest), len(reply.Items))
		}
	}
}
