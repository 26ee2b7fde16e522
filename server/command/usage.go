package command

import (
	"slices"
	"strings"
)

// ellipsis is the name of the node for "...": the arguments before it in its block may be repeated.
const ellipsis = "..."

// String writes an argument in the notation that it was parsed from.
func (a Argument) String() string {
	text := a.single()
	if a.Multiple {
		again := a
		if !a.MultipleToken && a.Type != "block" {
			again.Token = ""
		}
		text += " [" + again.single() + " " + ellipsis + "]"
	}
	switch {
	case a.Optional:
		return "[" + text + "]"
	case a.Type == "oneof" && a.Token == "":
		return "<" + text + ">"
	}
	return text
}

// single is an argument once, without the brackets around it.
func (a Argument) single() string {
	switch a.Type {
	case "pure-token":
		return a.Token
	case "block":
		return Notation(a.Choices)
	case "oneof":
		choices := make([]string, len(a.Choices))
		for i, choice := range a.Choices {
			choices[i] = choice.String()
		}
		text := strings.Join(choices, " | ")
		if a.Token != "" {
			return a.Token + " <" + text + ">"
		}
		return text
	}
	if a.Token != "" {
		return a.Token + " " + a.Name
	}
	return a.Name
}

// A shell uses the notation in two ways: it shows what may follow the typed words (Remaining,
// Notation), and it completes words (Remaining, Alternatives, Keyword). Both work on the parsed
// arguments, so there is one parser.

// Notation writes arguments as a usage line has them.
func Notation(list []Argument) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.String()
	}
	return strings.Join(words, " ")
}

// Alternatives are what may be written for an argument: one of several, or itself without its
// brackets.
func (a Argument) Alternatives() []Argument {
	if a.Type == "oneof" && a.Token == "" {
		return a.Choices
	}
	a.Optional = false
	return []Argument{a}
}

// Keyword is the word that an argument begins with as it stands, such as EX; "" if it begins with a
// value.
func (a Argument) Keyword() string {
	if a.Type == "block" && len(a.Choices) > 0 {
		if first := a.Choices[0]; !first.Optional {
			return first.Keyword()
		}
	}
	return a.Token
}

// Remaining is what may follow on a line when some arguments have been typed. A keyword takes off
// the bracket that offers it, and its own values come next; any other word takes off the next value
// that must be there, with the options before it. What may be repeated stays.
func (c *Command) Remaining(typed []string) []Argument {
	rest := takeApart(c.Arguments())
	for _, word := range typed {
		if i, wanted := offered(rest, word); i >= 0 {
			rest = slices.Concat(takeApart(wanted), rest[:i], rest[i+1:])
		} else if i := slices.IndexFunc(rest, func(a Argument) bool { return !a.Optional }); i >= 0 {
			rest = rest[i+1:]
		}
	}
	return rest
}

// takeApart splits arguments so that a typed word is one of them: a keyword from its value, and a
// repeated argument into the first time and the others, which are optional. The parts are copies:
// the arguments of the command stay as they are.
func takeApart(list []Argument) (parts []Argument) {
	for _, a := range list {
		again := a
		switch {
		case a.Optional || !a.Multiple && a.Type == "oneof":
			parts = append(parts, a)
			continue
		case a.Type == "block":
			parts = append(parts, takeApart(a.Choices)...)
		case a.Type == "pure-token" || a.Token == "":
			once := a
			once.Multiple = false
			parts = append(parts, once)
		default:
			value := a
			value.Token, value.Multiple = "", false
			parts = append(parts, Argument{Name: strings.ToLower(a.Token), Type: "pure-token", Token: a.Token}, value)
			if !a.MultipleToken {
				again.Token = ""
			}
		}
		if a.Multiple {
			again.Multiple = false
			parts = append(parts, Argument{Type: "block", Optional: true, Choices: []Argument{again, {Name: ellipsis}}})
		}
	}
	return parts
}

// offered finds the argument in which word is a keyword, and what that keyword has to be followed
// by; -1 if there is none. Options after a value that is missing do not count: the word is that
// value.
func offered(list []Argument, word string) (i int, wanted []Argument) {
	for i, a := range list {
		for _, choice := range a.Alternatives() {
			if keyword := choice.Keyword(); keyword != "" && strings.EqualFold(keyword, word) {
				return i, choice.afterKeyword()
			}
		}
		if !a.Optional {
			break
		}
	}
	return -1, nil
}

// afterKeyword is what follows the keyword that an argument begins with.
func (a Argument) afterKeyword() []Argument {
	switch {
	case a.Type == "pure-token":
		return nil
	case a.Type == "block":
		return slices.Concat(a.Choices[0].afterKeyword(), a.Choices[1:])
	}
	parts := takeApart([]Argument{a})
	return parts[1:]
}
