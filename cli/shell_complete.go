package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// Tab. Everything that completion knows about commands comes from the server's table, so that a new
// command completes without a line here. Keys are requested with SCAN, which works on any server
// and blocks no client, and only for as long as a person is ready to wait.

// A candidate is one way to complete the word before the cursor. Its value is as it must be typed, in quotes where it
// is no plain word.
type candidate struct {
	value string // replaces the word; "" in the last one of a list that is not complete
	note  string // shown next to it
	group string // heading
	more  int    // with an empty value: how many there are besides, -1 if that is not known
}

// Limits of looking for key names: completion must not stop anyone's work. 20 pages of 500 keys take a server some
// milliseconds in all; what matches only after 10,000 keys is not offered.
const (
	maxKeyCandidates = 64
	maxKeyScans      = 20 // SCAN calls, keyScanCount keys each
	keyScanCount     = 500
)

// complete lists what the last word of line may become: a command, a subcommand, a keyword of the
// command, or one of the keys in the store. The word that is being typed is the last one, "" after
// a blank. A count, or :watch, before the command is skipped.
func (s *session) complete(line string) []candidate {
	words, complete := typedWords(line)
	if complete {
		words = append(words, "")
	}
	words = afterPrefix(words)
	last := words[len(words)-1]
	if len(words) == 1 {
		return completeCommand(server.Commands, last, last)
	}
	switch strings.ToLower(words[0]) {
	case "help", "?":
		return completeHelp(words[1:])
	case "peek":
		if len(words) == 2 {
			return s.completeKey(line, last, "")
		}
		return nil
	}
	c := server.Lookup(words[0])
	if c == nil {
		return nil
	}
	if len(c.Subcommands) > 0 {
		if len(words) == 2 {
			return completeCommand(c.Subcommands, last, cmp.Or(last, words[0]))
		}
		if sub := server.Lookup(c.Name + "|" + words[1]); sub != nil {
			c = sub
		}
	}
	found := completeKeyword(c, words)
	if isKeyPosition(c, words) {
		return append(found, s.completeKey(line, last, typeOfKeys(c))...)
	}
	return append(found, s.completeElement(c, line, words)...)
}

// typeOfKeys is the type of the keys that a command works on, as SCAN calls it; "" if any will do. It is taken from the
// command's group, so a command of a group that has no type of its own, such as GEOADD, is offered all.
func typeOfKeys(c *command.Command) string {
	switch c.Group {
	case command.GroupHash, command.GroupList, command.GroupSet, command.GroupStream:
		return string(c.Group)
	case command.GroupSortedSet:
		return "zset"
	case command.GroupString:
		if c.Flags&command.Write == 0 {
			return "string" // others make a key anew, whatever it was
		}
	}
	return ""
}

// completeElement lists the fields of a hash, or the members of a set or sorted set, that begin with the last word,
// where the command takes one and the key before it is there. It asks for one page of a scan and takes what that finds:
// of a large collection that may be nothing, though there are matches. The key is taken to be the first argument, as it
// is for these commands. A reply of another form, or an error such as WRONGTYPE, offers nothing.
func (s *session) completeElement(c *command.Command, line string, words []string) (found []candidate) {
	scan, count, step, group := "", "", 2, "members"
	switch c.Group {
	case command.GroupHash:
		scan, count, group = "HSCAN", "HLEN", "fields"
	case command.GroupSet:
		scan, count, step = "SSCAN", "SCARD", 1
	case command.GroupSortedSet:
		scan, count = "ZSCAN", "ZCARD"
	}
	if len(words) < 3 || scan == "" || !s.mayComplete(line, words[len(words)-1]) {
		return nil
	}
	// What may stand here are the optional arguments, up to the first that must come.
	takes := false
	for _, argument := range c.Remaining(words[1 : len(words)-1]) {
		if argument.Type == "block" && argument.Optional {
			argument = argument.Choices[0] // what may be repeated, but of pairs nobody knows which half comes next
		}
		if argument.Token == "" && (argument.Name == "field" || argument.Name == "member") {
			takes = true
		}
		if !argument.Optional {
			break
		}
	}
	if !takes {
		return nil
	}
	reply, err := s.query(context.Background(), scan, words[1], "0", "MATCH", globLiteral(words[len(words)-1])+"*", "COUNT", strconv.Itoa(keyScanCount))
	if err != nil || len(reply.Items) != 2 {
		return nil
	}
	items := reply.Items[1].Items
	for i := 0; i < len(items) && len(found) < maxKeyCandidates; i += step {
		found = append(found, candidate{value: quoteWord(items[i].Text), group: group})
	}
	slices.SortFunc(found, byValue)
	if reply.Items[0].String() == "0" && len(found)*step >= len(items) {
		return found
	}
	return append(found, s.rest(len(found), words[len(words)-1] == "", count, words[1]))
}

// rest ends a list of n candidates that is not complete. If all there are would be candidates, a command counts them.
func (s *session) rest(n int, all bool, count ...string) candidate {
	if all {
		if reply, err := s.query(context.Background(), count...); err == nil {
			return candidate{more: max(1, int(reply.Int)-n)}
		}
	}
	return candidate{more: -1}
}

// byValue orders what a scan finds, in an order that differs from store to store.
func byValue(a, b candidate) int { return strings.Compare(a.value, b.value) }

// mayComplete reports whether the last word of a line may become what only the store knows. Within MULTI a question
// would be queued. Replacing a word in quotes or one beyond ASCII is more than the line editor's arithmetic handles.
func (s *session) mayComplete(line, prefix string) bool {
	return !s.inMulti && !s.closed && !strings.HasSuffix(line, `"`) && !terminal.OpenQuote([]byte(line)) && strings.HasSuffix(line, prefix) && isPlain(prefix) && utf8.RuneCountInString(prefix) == len(prefix)
}

// completeCommand lists the commands that start with prefix, in the case of like. The notes are the
// summaries of the table.
func completeCommand(commands []*command.Command, prefix, like string) (found []candidate) {
	for _, c := range commands {
		name := c.Name[strings.IndexByte(c.Name, '|')+1:]
		if strings.HasPrefix(name, strings.ToLower(prefix)) {
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
			return completeCommand(c.Subcommands, prefix, cmp.Or(prefix, words[0]))
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
// at this place and not more: after an argument that must come, nothing is known. A keyword that
// has been typed already is not offered again, unless it may be repeated: Remaining has taken it off.
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
	return append(found, candidate{value: sameCase(strings.ToLower(keyword), prefix, cmp.Or(prefix, name)), note: a.String(), group: "options"})
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
	// A command may have several runs of keys, such as a destination and the sources after a count.
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
			first, last = k.First+1, k.First+int(min(n, 1<<20))*step
		case k.Last < 0:
			last = i
		}
		if i >= first && i <= last && (i-first)%step == 0 {
			return true
		}
	}
	return false
}

// completeKey lists keys of the store that begin with prefix, those of a type if one is given. It uses SCAN, so that it
// works on servers too and blocks no client, and gives up after maxKeyScans pages. A server from before SCAN had TYPE
// is asked without.
func (s *session) completeKey(line, prefix, typ string) (found []candidate) {
	if !s.mayComplete(line, prefix) {
		return nil
	}
	cursor := "0"
	for range maxKeyScans {
		args := []string{"SCAN", cursor, "MATCH", globLiteral(prefix) + "*", "COUNT", strconv.Itoa(keyScanCount)}
		if typ != "" {
			args = append(args, "TYPE", typ)
		}
		reply, err := s.query(context.Background(), args...)
		// Perhaps the server does not know TYPE; any other error comes again, and ends the search then.
		if err != nil && typ != "" {
			return s.completeKey(line, prefix, "")
		}
		if err != nil || len(reply.Items) != 2 {
			break
		}
		keys := reply.Items[1].Items
		room := min(len(keys), maxKeyCandidates-len(found))
		for _, key := range keys[:room] {
			found = append(found, candidate{value: quoteWord(key.Text), group: "keys"})
		}
		cursor = reply.Items[0].String()
		if room < len(keys) {
			cursor = "more"
		}
		if cursor == "0" || len(found) == maxKeyCandidates {
			break
		}
	}
	slices.SortFunc(found, byValue)
	if cursor != "0" && len(found) > 0 {
		found = append(found, s.rest(len(found), prefix == "" && typ == "", "DBSIZE"))
	}
	return found
}

// query runs one command whose reply is not printed. An error reply is an error. Of several replies the last is
// returned. It does not go through track, so it must not be a command that changes the session.
func (s *session) query(ctx context.Context, args ...string) (reply resp.Reply, err error) {
	list := make([][]byte, len(args))
	for i, arg := range args {
		list[i] = []byte(arg)
	}
	err = s.backend.Do(ctx, list, func(r resp.Reply) { reply = r })
	if err == nil {
		err = reply.Err()
	}
	return reply, err
}

// isPlain reports whether a word means itself on a line and is seen as what it is: printable letters, without blanks and
// quotes.
func isPlain[T string | []byte](word T) bool {
	for _, r := range string(word) {
		if r == '"' || r == '\'' || r == ' ' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// quoteWord writes a word so that terminal.SplitLine reads it back.
func quoteWord(word []byte) string {
	if len(word) > 0 && isPlain(word) {
		return string(word)
	}
	return string(resp.AppendQuoted(nil, word))
}

// globLiteral makes a glob pattern that matches s and nothing else, in the glob of Redis.
func globLiteral(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
