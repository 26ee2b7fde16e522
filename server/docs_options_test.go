package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// COMMAND DOCS and the parsers of the commands are two places that know the options. Here each is asked what the other
// says: requests are made from the documentation, without and with one option.

// optionsLeftOut are commands after which the server, or the session, is not as before.
var optionsLeftOut = []string{
	"shutdown", "replicaof", "slaveof", "failover", "monitor", "psync", "sync", "quit", "reset", "multi", "exec", "discard", "debug", "client|kill",
	"client|pause", "client|reply", "hello", "auth", "replconf",
}

// optionPeer is a server that executes such requests, with keys of all kinds.
func optionPeer(t *testing.T) (do func(words []string) resp.Reply) {
	t.Helper()
	srv := newServer(t, openStore(t), &server.Options{})
	var s *server.Session // nil after a command that may have changed something
	return func(words []string) resp.Reply {
		t.Helper()
		if s == nil {
			s = srv.NewSession()
			for _, line := range []string{
				"FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH", "ACL DELUSER sweeper", "SET string 1", "HSET hash v0000000 a b c", "RPUSH list 1 2 3", "SADD set 1 2 3",
				"GEOADD zset 13.5 52.5 v0000000 13.6 52.6 b", "PFADD hll a b", "XADD stream 1-1 a b", "XGROUP CREATE stream group 0",
			} {
				if reply := ask(s, line+"\r\n"); strings.HasPrefix(reply, "-") {
					t.Fatal(line, reply)
				}
			}
		}
		reply := askPeer(t, &stavePeer{s}, words)
		if !reply.IsError() {
			s.Close()
			s = nil
		}
		return reply
	}
}

// documentedRequest writes a command as its documentation has it, with the argument at a path and no other that may be left out. at
// is where the first of those would stand.
func documentedRequest(c *command.Command, path string) (words []string, at int) {
	b := sweepBuilder{command: c, target: path, words: strings.Split(c.Name, "|")}
	arguments := c.Arguments()
	before := slices.IndexFunc(arguments, func(a command.Argument) bool { return a.Optional })
	if before < 0 {
		before = len(arguments)
	}
	b.add(arguments[:before], "", 0)
	at = len(b.words)
	b = sweepBuilder{command: c, target: path, words: strings.Split(c.Name, "|")}
	b.add(arguments, "", 0)
	return b.words, at
}

// tokens are the words of arguments, with their paths as sweepBuilder has them.
func tokens(list []command.Argument, prefix string, visit func(path, token string)) {
	for i, a := range list {
		path := fmt.Sprintf("%s.%d", prefix, i)
		if a.Token != "" {
			visit(path, a.Token)
		}
		tokens(a.Choices, path, visit)
	}
}

// optionCompany are requests with options that others have to be with, by command and option.
var optionCompany = map[string]string{
	"bitfield INCRBY": "BITFIELD string INCRBY u8 0 1", "increx ENX": "INCREX string EX 9 ENX", "xadd LIMIT": "XADD stream MAXLEN ~ 1 LIMIT 1 * f v",
	"xtrim LIMIT": "XTRIM stream MAXLEN ~ 1 LIMIT 1", "zrange LIMIT": "ZRANGE zset 0 1 BYSCORE LIMIT 1 1", "zrangestore LIMIT": "ZRANGESTORE to zset 0 1 BYSCORE LIMIT 1 1",
}

// anyWords are commands that take any: LOLWUT as in Redis, and the filters of CLIENT LIST, which are documented as one.
var anyWords = []string{"lolwut", "client|list"}

// refusesWords says that an error is about the words of a request, not about what they name.
var refusesWords = regexp.MustCompile(`(?i)syntax error|unknown argument|wrong number of arguments|unsupported|unrecognized|invalid condition|unbalanced`)

// TestDocumentedOptionsAreTaken: each command takes each word that COMMAND DOCS lists.
func TestDocumentedOptionsAreTaken(t *testing.T) {
	do, n := optionPeer(t), 0
	for _, c := range all() {
		if len(c.Subcommands) > 0 || slices.Contains(optionsLeftOut, c.Name) {
			continue
		}
		tokens(c.Arguments(), "", func(path, token string) {
			words, _ := documentedRequest(c, path)
			if line, ok := optionCompany[c.Name+" "+token]; ok {
				words = strings.Fields(line)
			}
			n++
			if !slices.Contains(words, token) {
				t.Errorf("%s: %q has no %s", c.Name, words, token)
			} else if reply := do(words); reply.IsError() && refusesWords.Match(reply.Text) {
				t.Errorf("%q: %s", words, reply.Text)
			}
		})
	}
	t.Logf("%d words of commands", n)
}

// parsedWords are the words that the source compares arguments with.
func parsedWords(t *testing.T) (words []string) {
	t.Helper()
	compared := regexp.MustCompile(`\b(?:Is|equalFold|EqualFold|sameKeyword)\([^"\n]*"([A-Za-z-]+)"`)
	listed := regexp.MustCompile(`\{"([a-z]+)", [^"]`)
	for _, pattern := range []string{"command/*.go", "internal/admin/*.go", "internal/introspect/*.go", "internal/session/*.go", "internal/scripting/*.go", "internal/shared/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(source)) {
				for _, m := range compared.FindAllStringSubmatch(line, -1) {
					words = append(words, strings.ToUpper(m[1]))
				}
				if strings.Contains(line, "words[") || strings.HasPrefix(line, "\t{\"") {
					for _, m := range listed.FindAllStringSubmatch(line, -1) {
						words = append(words, strings.ToUpper(m[1]))
					}
				}
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// TestNoOptionIsUndocumented: no command takes a word, with up to two values, that any parser knows and that COMMAND DOCS
// does not list for this command.
func TestNoOptionIsUndocumented(t *testing.T) {
	words := parsedWords(t)
	if len(words) < 150 {
		t.Fatalf("only %d words found in the source: %q", len(words), words)
	}
	do, n := optionPeer(t), 0
	for _, c := range all() {
		if len(c.Subcommands) > 0 || slices.Contains(optionsLeftOut, c.Name) || slices.Contains(anyWords, c.Name) || takesAnything(c.Arguments()) {
			continue
		}
		request, at := documentedRequest(c, "")
		var documented []string
		tokens(c.Arguments(), "", func(_, token string) { documented = append(documented, token) })
		for _, word := range words {
			if slices.Contains(documented, word) {
				continue
			}
			for i, more := range [][]string{{word}, {word, "1"}, {word, "1", "1"}} {
				if i > 0 && testing.Short() {
					break
				}
				n++
				asked := slices.Concat(request[:at], more, request[at:])
				if reply := do(asked); !reply.IsError() {
					t.Errorf("%q is taken, and not documented: %s", asked, show(reply))
				}
			}
		}
	}
	t.Logf("%d requests with %d words", n, len(words))
}

// takesAnything reports whether a word in the place of the first option would be taken as a value: an optional one comes first
// there, or as many as the client likes.
func takesAnything(list []command.Argument) bool {
	for i, a := range list {
		counted := i > 0 && strings.HasPrefix(list[i-1].Name, "num")
		first := a
		for first.Type == "block" {
			first = first.Choices[0]
		}
		value := first.Token == "" && (first.Type == "string" || first.Type == "key" || first.Type == "pattern")
		switch {
		case a.Optional && value, a.Multiple && value && !counted:
			return true
		case a.Optional:
			return false
		}
	}
	return false
}
