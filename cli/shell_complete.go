package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// Tab. Everything that completion knows about commands comes from the server's table, so that a new
// command completes without a line here. Keys are requested with SCAN, which works on any server
// and blocks no client, and only for as long as a person is ready to wait.

// A candidate is one way to complete the word before the cursor.
type candidate struct {
	value string // replaces the word
	note  string // shown next to it
	group string // heading
}

// Limits of looking for key names: completion must not stop anyone's work.
const (
	maxKeyCandidates = 64
	maxKeyScans      = 20 // SCAN calls, keyScanCount keys each
	keyScanCount     = 500
)

// complete lists what the last word of line may become: a command, a subcommand, a keyword of the
// command, or one of the keys in the store. The word that is being typed is the last one, "" after
// a blank. A count before the command is skipped.
func (s *session) complete(line string) []candidate {
	words, complete := typedWords(line)
	if complete {
		words = append(words, "")
	}
	if len(words) > 1 && isRepeat(words[0]) {
		words = words[1:]
	}
	last := words[len(words)-1]
	if len(words) == 1 {
		return completeCommand(server.Commands, last, last)
	}
	if name := strings.ToLower(words[0]); name == "help" || name == "?" {
		return completeHelp(words[1:])
	}
	c := server.Lookup(words[0])
	if c == nil {
		return nil
	}
	if len(c.Subcommands) > 0 {
		if len(words) == 2 {
			return completeCommand(c.Subcommands, last, orDefault(last, words[0]))
		}
		if sub := server.Lookup(c.Name + "|" + words[1]); sub != nil {
			c = sub
		}
	}
	found := completeKeyword(c, words)
	if isKeyPosition(c, words) {
		found = append(found, s.completeKey(line, last)...)
	}
	return found
}

// completeCommand lists the commands that start with prefix, in the case of like. The notes are the
// summaries of the table.
func completeCommand(commands []*command.Command, prefix, like string) (found []candidate) {
	for _, c := range commands {
		name := c.Name[strings.IndexByte(c.Name, '|')+1:]
		if strings.HasPrefix(name, strings.ToLower(prefix)) && !isTrap(c) {
			found = append(found, candidate{value: sameCase(name, prefix, like), note: c.Summary, group: "@" + string(c.Group)})
		}
	}
	return found
}

// completeHelp completes the arguments of HELP: commands and groups. A group is offered by its @, a
// command by its name, and a subcommand after its container.
func completeHelp(words []string) (found []candidate) {
	prefix := words[len(words)-1]
	if len(words) == 2 {
		if c := server.Lookup(words[0]); c != nil {
			return completeCommand(c.Subcommands, prefix, orDefault(prefix, words[0]))
		}
	}
	if len(words) > 1 {
		return nil
	}
	if strings.HasPrefix(prefix, "@") || prefix == "" {
		for _, group := range groups() {
			if strings.HasPrefix(group, prefix) {
				found = append(found, candidate{value: group, group: "groups"})
			}
		}
	}
	if !strings.HasPrefix(prefix, "@") {
		found = append(found, completeCommand(server.Commands, prefix, prefix)...)
	}
	return found
}

// completeKeyword lists the keywords that the rest of the syntax offers. It offers what may stand
// at this place and not more: after an argument that must come, nothing is known.
func completeKeyword(c *command.Command, words []string) (found []candidate) {
	prefix, typed := words[len(words)-1], words[1:len(words)-1]
	if strings.Contains(c.Name, "|") {
		typed = words[2 : len(words)-1]
	}
	for _, argument := range c.Remaining(typed) {
		for _, choice := range argument.Alternatives() {
			found = appendKeyword(found, choice, prefix, words[0])
		}
		if !argument.Optional { // what comes after it has to wait for it
			break
		}
	}
	return found
}

// appendKeyword appends an argument if it begins with a keyword that begins with prefix, in the
// case of the prefix or else of the command's name. A word in small letters is completed in small
// letters.
func appendKeyword(found []candidate, a command.Argument, prefix, name string) []candidate {
	keyword := a.Keyword()
	if keyword == "" || !strings.HasPrefix(keyword, strings.ToUpper(prefix)) {
		return found
	}
	return append(found, candidate{value: sameCase(strings.ToLower(keyword), prefix, orDefault(prefix, name)), note: a.String(), group: "options"})
}

// sameCase writes a lower-case name in the case of like, capitals unless that has a small letter.
// The typed part stays as it is.
func sameCase(name, prefix, like string) string {
	if strings.ToUpper(like) == like {
		return strings.ToUpper(name)
	}
	return prefix + name[len(prefix):]
}

// isKeyPosition reports whether the last of words is where c expects a key. It is about a line that
// is not finished, so a run of keys "up to the last argument" reaches to the word at hand, and a
// count that is not there yet gives none.
func isKeyPosition(c *command.Command, words []string) bool {
	i := len(words) - 1
	for _, k := range c.Keys {
		first, last, step := k.First, k.First+k.Last, max(k.Step, 1)
		switch {
		case k.Counted:
			if i <= k.First {
				continue
			}
			n, ok := resp.ParseInt([]byte(words[k.First]))
			if !ok {
				continue
			}
			first, last, step = k.First+1, k.First+int(min(n, 1<<20)), 1
		case k.Last < 0:
			last = i
		}
		if i >= first && i <= last && (i-first)%step == 0 {
			return true
		}
	}
	return false
}

// completeKey lists keys of the store that begin with prefix. It uses SCAN, so that it works on
// servers too and blocks no client, and gives up after maxKeyScans pages. Within MULTI it would be
// queued, so it does not ask.
func (s *session) completeKey(line, prefix string) (found []candidate) {
	// Replacing a word in quotes or one beyond ASCII is more than the line
	// editor's arithmetic handles.
	if s.inMulti || s.closed || strings.HasSuffix(line, `"`) || openQuote([]byte(line)) || !strings.HasSuffix(line, prefix) || !isPlain(prefix) {
		return nil
	}
	cursor := "0"
	for range maxKeyScans {
		reply, err := s.query("SCAN", cursor, "MATCH", globLiteral(prefix)+"*", "COUNT", strconv.Itoa(keyScanCount))
		if err != nil || len(reply.Items) != 2 {
			return found
		}
		for _, key := range reply.Items[1].Items {
			found = append(found, candidate{value: quoteWord(key.Text), group: "keys"})
			if len(found) == maxKeyCandidates {
				return found
			}
		}
		if cursor = reply.Items[0].String(); cursor == "0" {
			break
		}
	}
	return found
}

// query runs one command whose reply is not printed. It is for completion only; its error is not
// shown, for a Tab that finds nothing is no failure.
func (s *session) query(args ...string) (reply resp.Reply, err error) {
	list := make([][]byte, len(args))
	for i, arg := range args {
		list[i] = []byte(arg)
	}
	err = s.backend.do(context.Background(), list, func(r resp.Reply) { reply = r })
	if err == nil {
		err = reply.Err()
	}
	return reply, err
}

// isPlain reports whether a word means itself on a line: printable ASCII
// without blanks and quotes.
func isPlain[T string | []byte](word T) bool {
	for i := 0; i < len(word); i++ {
		if c := word[i]; c <= ' ' || c > '~' || c == '"' || c == '\'' {
			return false
		}
	}
	return true
}

// quoteWord writes a word so that splitLine reads it back.
func quoteWord(word []byte) string {
	if len(word) > 0 && isPlain(word) {
		return string(word)
	}
	return string(resp.AppendQuoted(nil, word))
}

// globLiteral makes a glob pattern that matches s and nothing else.
func globLiteral(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
