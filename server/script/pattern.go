package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Lua's patterns, by the algorithm of its reference implementation (lstrlib.c): backtracking, whose steps count as
// instructions, so that a pattern that takes exponential time can be stopped.

// maxCaptures is how many captures a pattern may have.
const maxCaptures = 32

const (
	captureUnfinished = -1
	capturePosition   = -2
)

type matcher struct {
	L       *lua.LState
	machine *machine
	src     string
	pattern string
	level   int // captures, finished or not
	depth   int // of the recursion
	caps    [maxCaptures]struct{ start, length int }
}

// newMatcher matches a pattern, which ends at a zero byte, as in Lua 5.1.
func newMatcher(L *lua.LState, src, pattern string) matcher {
	return matcher{L: L, machine: of(L), src: src, pattern: cString(pattern)}
}

// cString is what C takes for the text: what stands before the first zero byte.
func cString(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// maxMatchDepth bounds the recursion. C's has no bound but its stack.
const maxMatchDepth = 20_000

// match matches the pattern from p on with the subject from s on, and returns the end of the match; -1 for none.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxMatchDepth {
		fail(m.L, "pattern too complex")
	}
	defer func() { m.depth-- }()
	for {
		m.machine.spend(m.L, 1)
		if p == len(m.pattern) {
			return s
		}
		switch m.pattern[p] {
		case '(':
			if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
				return m.startCapture(s, p+2, capturePosition)
			}
			return m.startCapture(s, p+1, captureUnfinished)
		case ')':
			return m.endCapture(s, p+1)
		case '$':
			if p+1 == len(m.pattern) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			next, after, special := m.matchSpecial(s, p)
			if special {
				if next < 0 {
					return -1
				}
				s, p = next, after
				continue
			}
		}
		end := m.classEnd(p)
		suffix := byte(0)
		if end < len(m.pattern) {
			suffix = m.pattern[end]
		}
		switch suffix {
		case '?':
			if m.single(s, p, end) {
				if r := m.match(s+1, end+1); r >= 0 {
					return r
				}
			}
			p = end + 1
		case '*':
			return m.maxExpand(s, p, end)
		case '+':
			if !m.single(s, p, end) {
				return -1
			}
			return m.maxExpand(s+1, p, end)
		case '-':
			return m.minExpand(s, p, end)
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
}

// matchSpecial matches %b, %f and a back reference at p, and returns where the subject and the pattern go on.
func (m *matcher) matchSpecial(s, p int) (next, after int, special bool) {
	if p+1 == len(m.pattern) {
		return 0, 0, false
	}
	switch c := m.pattern[p+1]; {
	case c == 'b':
		return m.balance(s, p+2), p + 4, true
	case c == 'f':
		if !m.frontier(s, p+2) {
			return -1, 0, true
		}
		return s, m.classEnd(p + 2), true
	case isDigit(c):
		return m.backReference(s, c), p + 2, true
	}
	return 0, 0, false
}

// single reports whether the character at s is of the class at p.
func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return classMatches(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pattern[p] == c
}

// classEnd is the end of the class that starts at p.
func (m *matcher) classEnd(p int) int {
	if p >= len(m.pattern) {
		fail(m.L, "missing '[' after '%%f' in pattern")
	}
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p == len(m.pattern) {
			fail(m.L, "malformed pattern (ends with '%%')")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pattern) || m.pattern[p] != ']'; first = false {
			if p >= len(m.pattern) {
				fail(m.L, "malformed pattern (missing ']')")
			}
			c := m.pattern[p]
			p++
			if c == '%' && p < len(m.pattern) {
				p++
			}
		}
		return p + 1
	}
	return p
}

// inSet reports whether c is in the set that starts at p, whose closing bracket is at last.
func (m *matcher) inSet(c byte, p, last int) bool {
	m.machine.spend(m.L, (last-p)>>3)
	in := true
	if p++; m.pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if classMatches(c, m.pattern[p]) {
				return in
			}
		case p+2 < last && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}

// classMatches reports whether c is of the class that a letter names; the capital letter is for all others.
func classMatches(c, class byte) bool {
	is := false
	letter := 'a' <= c|0x20 && c|0x20 <= 'z'
	switch class | 0x20 {
	case 'a':
		is = letter
	case 'c':
		is = c < ' ' || c == 127
	case 'd':
		is = isDigit(c)
	case 'l':
		is = 'a' <= c && c <= 'z'
	case 'p':
		is = c > ' ' && c < 127 && !letter && !isDigit(c)
	case 's':
		is = strings.IndexByte(blanks, c) >= 0
	case 'u':
		is = 'A' <= c && c <= 'Z'
	case 'w':
		is = letter || isDigit(c)
	case 'x':
		is = isHexDigit(c)
	case 'z':
		is = c == 0
	default:
		return class == c
	}
	if class&0x20 == 0 {
		return !is && 'A' <= class && class <= 'Z'
	}
	if class < 'a' || class > 'z' {
		return class == c
	}
	return is
}

func (m *matcher) maxExpand(s, p, end int) int {
	n := 0
	for m.single(s+n, p, end) {
		n++
		m.machine.spend(m.L, n&1)
	}
	for ; n >= 0; n-- {
		if r := m.match(s+n, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

func (m *matcher) minExpand(s, p, end int) int {
	for {
		if r := m.match(s, end+1); r >= 0 {
			return r
		}
		if !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) startCapture(s, p, what int) int {
	if m.level >= maxCaptures {
		fail(m.L, "too many captures")
	}
	m.caps[m.level].start, m.caps[m.level].length = s, what
	m.level++
	r := m.match(s, p)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) endCapture(s, p int) int {
	open := m.level - 1
	for open >= 0 && m.caps[open].length != captureUnfinished {
		open--
	}
	if open < 0 {
		fail(m.L, "invalid pattern capture")
	}
	m.caps[open].length = s - m.caps[open].start
	r := m.match(s, p)
	if r < 0 {
		m.caps[open].length = captureUnfinished
	}
	return r
}

// balance is %bxy, whose characters are at p.
func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		fail(m.L, "unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pattern[p] {
		return -1
	}
	open, closing := m.pattern[p], m.pattern[p+1]
	for i, depth := s+1, 1; i < len(m.src); i++ {
		m.machine.spend(m.L, i&1)
		switch m.src[i] {
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

// frontier is %f[set], whose set is at p.
func (m *matcher) frontier(s, p int) bool {
	if p >= len(m.pattern) || m.pattern[p] != '[' {
		fail(m.L, "missing '[' after '%%f' in pattern")
	}
	last := m.classEnd(p) - 1
	var before, at byte
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		at = m.src[s]
	}
	return !m.inSet(before, p, last) && m.inSet(at, p, last)
}

func (m *matcher) backReference(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.caps[i].length == captureUnfinished {
		fail(m.L, "invalid capture index")
	}
	if m.caps[i].length < 0 {
		return -1 // of a position
	}
	text := m.src[m.caps[i].start : m.caps[i].start+m.caps[i].length]
	m.machine.spend(m.L, len(text)>>4)
	if !strings.HasPrefix(m.src[s:], text) {
		return -1
	}
	return s + len(text)
}

// capture is capture i of a match; capture 0 of a pattern without captures is the match.
func (m *matcher) capture(i, from, to int) lua.LValue {
	if i >= m.level {
		if i != 0 {
			fail(m.L, "invalid capture index")
		}
		return lua.LString(m.src[from:to])
	}
	switch c := m.caps[i]; c.length {
	case captureUnfinished:
		fail(m.L, "unfinished capture")
		return lua.LNil
	case capturePosition:
		return lua.LNumber(c.start + 1)
	default:
		return lua.LString(m.src[c.start : c.start+c.length])
	}
}

// pushCaptures pushes the captures, or the match if there are none and whole is set.
func (m *matcher) pushCaptures(from, to int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.L.Push(m.capture(i, from, to))
	}
	return n
}
