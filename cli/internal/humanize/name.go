package humanize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stavedb/stave/internal/resp"
)

// Name is a name as a terminal may show it, in at most n characters: quoted if it is not plain text.
func Name(name string, n int) string {
	text := name[:min(len(name), 4*n)]
	for len(text) < len(name) && len(text) > 0 && !utf8.RuneStart(name[len(text)]) {
		text = text[:len(text)-1] // within a character
	}
	cut := len(text) < len(name)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = string(resp.AppendQuoted(nil, []byte(text)))
	}
	runes := []rune(text)
	if len(runes) <= n && !cut {
		return text
	}
	return string(runes[:min(n-1, len(runes))]) + "…"
}
