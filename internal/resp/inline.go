package resp

import (
	"bytes"
	"strings"
)

// inline reads a command that is one line of words. done is false while the line has not ended.
func (p *Parser) inline() (args [][]byte, done bool, err error) {
	if p.limits.Inlines != "" && !p.mayBeInline() {
		return nil, false, errNoInline
	}
	end, err := p.lineEnd('\n', errInlineTooBig)
	if end < 0 || err != nil {
		return nil, false, err
	}
	line := bytes.TrimSuffix(p.buf[p.pos:end], []byte{'\r'})
	args, err = SplitLine(line)
	if err != nil {
		return nil, false, RequestError(err.Error())
	}
	if len(args) > p.limits.Args {
		return nil, false, errCount
	}
	p.pos, p.look = end+1, end+1
	return args, true, nil
}

// mayBeInline reports whether the line that begins is one of the inline commands that are accepted, as far as it has
// come: what cannot become one is refused at once, before its line ends. An empty line is no command.
func (p *Parser) mayBeInline() bool {
	word := p.buf[p.pos:]
	end := bytes.IndexAny(word[:min(len(word), longestInline)], " \t\r\n")
	if end == 0 {
		return word[0] == '\r' || word[0] == '\n'
	}
	if end < 0 {
		end = min(len(word), longestInline)
	}
	name := string(bytes.ToUpper(word[:end]))
	if end < len(word) { // the word is complete, or too long
		name += " "
	}
	for known := range strings.SplitAfterSeq(p.limits.Inlines, " ") {
		if strings.HasPrefix(known, name) {
			return true
		}
	}
	return false
}

// longestInline is more than the length of each word of Limits.Inlines.
const longestInline = 16
