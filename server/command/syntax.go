package command

import "strings"

// Argument is a node of a command's usage, as COMMAND DOCS describes it.
type Argument struct {
	Name string
	// Type is string, integer, double, key, pattern or unix-time for a value, pure-token for a word
	// alone, oneof for alternatives, block for arguments that belong together.
	Type string
	// Token is the word that introduces the value, such as EX.
	Token    string
	Optional bool
	// Multiple arguments may be repeated; with MultipleToken, the word as well.
	Multiple, MultipleToken bool
	// Choices are the alternatives of a oneof and the parts of a block.
	Choices []Argument
}

// Arguments returns the parsed Syntax.
func (c *Command) Arguments() []Argument {
	p := syntaxParser{words: strings.Fields(spaced.Replace(c.Syntax))}
	return p.sequence()
}

var spaced = strings.NewReplacer("[", " [ ", "]", " ] ", "<", " < ", ">", " > ", "|", " | ")

// syntaxParser reads the notation of usage lines:
//
//	WORD          a word to be written as it is
//	WORD name     a word that introduces a value
//	name          a value; its name says its type (see valueType)
//	[ ... ]       may be left out
//	<a | b>       one of; [a | b] one of them or none
//	name [name ...]   one or more
//
// The table's entries are constants, checked by a test; the parser is not meant for anything else.
type syntaxParser struct {
	words []string
	at    int
}

// peek is the next word, "" at the end.
func (p *syntaxParser) peek() string {
	if p.at < len(p.words) {
		return p.words[p.at]
	}
	return ""
}

// next takes the next word.
func (p *syntaxParser) next() string {
	word := p.peek()
	p.at++
	return word
}

// sequence reads arguments up to a closing bracket, a bar or the end.
func (p *syntaxParser) sequence() []Argument {
	var list []Argument
	for {
		switch word := p.peek(); word {
		case "", "]", ">", "|":
			return list
		case "[", "<":
			p.next()
			group := p.group()
			if n, repeats := repeated(list, group); repeats {
				all := repeatable(list[len(list)-n:])
				all.MultipleToken = n == 1 && group.Choices[0].Token != ""
				list = append(list[:len(list)-n], all)
				continue
			}
			if word == "[" {
				group.Optional = true
			}
			list = append(list, group)
		default:
			list = append(list, p.plain())
		}
	}
}

// plain reads a word, with the value it introduces if one follows.
func (p *syntaxParser) plain() Argument {
	word := p.next()
	if !isToken(word) {
		return Argument{Name: word, Type: valueType(word)}
	}
	value := p.peek()
	if value == "<" {
		p.next()
		group := p.group()
		group.Token = word
		return group
	}
	if value == "" || strings.ContainsAny(value, "[]<>|") || isToken(value) || value == "..." {
		return Argument{Name: strings.ToLower(word), Type: "pure-token", Token: word}
	}
	p.next()
	return Argument{Name: value, Type: valueType(value), Token: word}
}

// group parses the content of brackets: alternatives if there are bars, otherwise one argument or a
// block of them.
func (p *syntaxParser) group() Argument {
	var choices []Argument
	for {
		choices = append(choices, block(p.sequence()))
		if p.next() != "|" {
			break
		}
	}
	if len(choices) == 1 {
		return choices[0]
	}
	names := make([]string, len(choices))
	for i, choice := range choices {
		names[i] = choice.Name
	}
	return Argument{Name: strings.Join(names, "-or-"), Type: "oneof", Choices: choices}
}

// block makes one argument of several that belong together.
func block(parts []Argument) Argument {
	if len(parts) == 1 {
		return parts[0]
	}
	names := make([]string, 0, len(parts))
	for _, part := range parts {
		names = append(names, part.Name)
	}
	return Argument{Name: strings.Join(names, "-"), Type: "block", Choices: parts}
}

// repeated recognizes "a b [a b ...]": a group that is what stands before it, and an ellipsis. It
// returns how many arguments repeat.
func repeated(list []Argument, group Argument) (n int, ok bool) {
	parts := []Argument{group}
	if group.Type == "block" {
		parts = group.Choices
	}
	n = len(parts) - 1
	if n < 1 || parts[n].Name != "..." || n > len(list) {
		return 0, false
	}
	return n, true
}

// repeatable is one or more of some arguments that follow each other.
func repeatable(parts []Argument) Argument {
	all := block(append([]Argument(nil), parts...))
	all.Multiple = true
	return all
}

// isToken reports whether a word is a literal: it has capitals only.
func isToken(word string) bool {
	return word == strings.ToUpper(word) && strings.ToLower(word) != word
}

// valueType says what a value is, by its name.
func valueType(name string) string {
	switch name {
	case "key", "key1", "key2", "newkey", "destination", "destkey", "sourcekey":
		return "key"
	case "pattern":
		return "pattern"
	case "seconds", "milliseconds", "count", "index", "start", "stop", "end", "increment", "decrement", "cursor", "numkeys", "numids",
		"offset", "protover", "client-id", "port":
		return "integer"
	case "unix-time-seconds", "unix-time-milliseconds":
		return "unix-time"
	case "score", "min-score", "max-score":
		return "double"
	}
	return "string"
}
