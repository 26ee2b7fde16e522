package script

import (
	"regexp"
	"slices"
	"strings"
)

// The interpreter's own texts, as C's Lua words them, without the name of the variable.
var rewordings = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`attempt to index a non-table object\((\w+)\) with key '(?s:.*)'$`), "attempt to index a $1 value"},
	{regexp.MustCompile(`attempt to call a non-function object$`), "attempt to call a non-function value"},
	{regexp.MustCompile(`cannot perform \w+ operation between (?:number|string) and (\w+)$`), "attempt to perform arithmetic on a $1 value"},
	{regexp.MustCompile(`cannot perform \w+ operation between (\w+) and \w+$`), "attempt to perform arithmetic on a $1 value"},
	{regexp.MustCompile(`(?:lua callstack|registry) overflow$`), "stack overflow"},
	{regexp.MustCompile(`attempt to compare (?:nil with (nil)|boolean with (boolean)|table with (table)|function with (function)|thread with (thread)|userdata with (userdata))$`), "attempt to compare two $1$2$3$4$5$6 values"},
	{regexp.MustCompile(`too many recursions in (gettable|settable)$`), "loop in $1"},
	{regexp.MustCompile(`^.*can not yield from outside of a coroutine$`), "attempt to yield across metamethod/C-call boundary"},
	{regexp.MustCompile(`can not resume a dead thread$`), "cannot resume dead coroutine"},
	{regexp.MustCompile(`can not resume a running thread$`), "cannot resume running coroutine"},
}

// reworded are words of these texts: most errors have none of them.
var reworded = []string{"non-", "cannot perform", "overflow", "attempt to compare", "too many recursions", "can not "}

// plain is the text of an error as C's Lua would word it.
func plain(text string) string {
	if !slices.ContainsFunc(reworded, func(words string) bool { return strings.Contains(text, words) }) {
		return text
	}
	for _, r := range rewordings {
		if r.pattern.MatchString(text) {
			return r.pattern.ReplaceAllString(text, r.text)
		}
	}
	return text
}
