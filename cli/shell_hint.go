package cli

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// hint is what may follow on a line: the command's arguments without those
// that have been typed. complete tells whether the last word is finished, that
// is, whether a blank follows it.
func hint(line string) string {
	words, complete := typedWords(line)
	if len(words) == 0 {
		return ""
	}
	if len(words) > 1 && isRepeat(words[0]) {
		words = words[1:]
	}
	c := server.Lookup(words[0])
	if c == nil || len(words) == 1 && !complete {
		return ""
	}
	typed := words[1:]
	if len(c.Subcommands) > 0 {
		if len(typed) == 0 || len(typed) == 1 && !complete {
			return subcommandHint(c)
		}
		if c = server.Lookup(c.Name + "|" + typed[0]); c == nil {
			return ""
		}
		typed = typed[1:]
	}
	if len(typed) > 0 && !complete {
		typed = typed[:len(typed)-1] // still being typed: keep its name in sight
	}
	rest := remaining(splitSyntax(c.Syntax), typed)
	return strings.TrimSpace(title(c) + " " + ellipsis(len(typed)) + strings.Join(rest, " "))
}

// ellipsis stands for the arguments that have been typed.
func ellipsis(typed int) string {
	if typed == 0 {
		return ""
	}
	return ".. "
}

// subcommandHint lists the subcommands.
func subcommandHint(c *command.Command) string {
	var names []string
	for _, sub := range c.Subcommands {
		names = append(names, strings.ToUpper(sub.Name[len(c.Name)+1:]))
	}
	return title(c) + " <" + strings.Join(names, " | ") + ">"
}

// typedWords splits an unfinished line. A quote that is still open belongs to
// a last word that is not complete.
func typedWords(line string) (words []string, complete bool) {
	complete = line == "" || strings.HasSuffix(line, " ")
	args, err := resp.SplitLine([]byte(line))
	for _, ending := range []string{`"`, `'`} {
		if err != nil {
			complete = false
			args, err = resp.SplitLine([]byte(line + ending))
		}
	}
	for _, arg := range args {
		words = append(words, string(arg))
	}
	return words, complete
}

// splitSyntax cuts "key value [NX | XX] [EX seconds]" into its parts: words and
// whole brackets.
func splitSyntax(syntax string) (parts []string) {
	depth, start := 0, 0
	for i := 0; i <= len(syntax); i++ {
		if i == len(syntax) || syntax[i] == ' ' && depth == 0 {
			if i > start {
				parts = append(parts, syntax[start:i])
			}
			start = i + 1
			continue
		}
		switch syntax[i] {
		case '[', '<':
			depth++
		case ']', '>':
			depth--
		}
	}
	return parts
}

// remaining takes the typed arguments off the parts of a syntax. A keyword
// takes off the bracket that offers it and asks for its own arguments; any
// other word takes off the next argument that has no bracket. What may be
// repeated stays.
func remaining(parts, typed []string) []string {
	for _, word := range typed {
		if i, rest, ok := offered(parts, word); ok {
			parts = slices.Concat(rest, parts[:i], parts[i+1:])
			continue
		}
		for i, part := range parts {
			if !strings.HasPrefix(part, "[") { // options before it have been passed over
				parts = parts[i+1:]
				break
			}
		}
	}
	return parts
}

// offered finds the bracket in which word is a keyword, and what that keyword
// wants to be followed by. Brackets behind a missing argument do not count:
// the word is that argument.
func offered(parts []string, word string) (i int, rest []string, ok bool) {
	for i, part := range parts {
		switch part[0] {
		case '[', '<':
			for _, choice := range strings.Split(part[1:len(part)-1], " | ") {
				words := splitSyntax(choice)
				if len(words) > 0 && isKeyword(words[0]) && strings.EqualFold(words[0], word) {
					return i, words[1:], true
				}
			}
			if part[0] == '<' {
				return 0, nil, false
			}
		default:
			if isKeyword(part) && strings.EqualFold(part, word) {
				return i, nil, true
			}
			return 0, nil, false
		}
	}
	return 0, nil, false
}

// isKeyword reports whether a word of a syntax stands for itself.
func isKeyword(word string) bool {
	return strings.ToUpper(word) == word && strings.ToLower(word) != word
}
