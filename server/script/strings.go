package script

import (
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

var stringFunctions = functions{
	"byte": stringByte, "char": stringChar, "dump": stringDump, "find": func(L *lua.LState) int { return stringFind(L, true) },
	"format": stringFormat, "gfind": stringGMatch, "gmatch": stringGMatch, "gsub": stringGSub, "len": stringLen, "lower": func(L *lua.LState) int { return mapBytes(L, 'A', 'Z') },
	"match": func(L *lua.LState) int { return stringFind(L, false) }, "rep": stringRep, "reverse": stringReverse, "sub": stringSub,
	"upper": func(L *lua.LState) int { return mapBytes(L, 'a', 'z') },
}

// stringMetamethods are arithmetic with strings, whose numbers the interpreter would read differently. Every % is __mod
// of these, also between numbers: see rewrite.go.
var stringMetamethods = functions{
	"__add": stringArithmetic("__add", func(a, b float64) float64 { return a + b }),
	"__sub": stringArithmetic("__sub", func(a, b float64) float64 { return a - b }),
	"__mul": stringArithmetic("__mul", func(a, b float64) float64 { return a * b }),
	"__div": stringArithmetic("__div", func(a, b float64) float64 { return a / b }),
	"__mod": stringArithmetic("__mod", modulo),
	"__pow": stringArithmetic("__pow", math.Pow),
	"__unm": stringArithmetic("__unm", func(a, _ float64) float64 { return -a }),
}

// modulo is the operator %, in the steps in which C computes it.
func modulo(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

func stringArithmetic(event string, f func(a, b float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		left, right := L.Get(1), L.Get(2)
		if event == "__unm" {
			right = left
		}
		a, aIs := toNumber(left)
		b, bIs := toNumber(right)
		if aIs && bIs {
			return push(L, lua.LNumber(f(a, b)))
		}
		for _, v := range []lua.LValue{left, right} {
			if _, text := v.(lua.LString); text {
				continue
			}
			if handler := metamethod(L, v, event); handler != lua.LNil {
				return invoke(L, handler, left, right)
			}
		}
		wrong := right
		if !aIs {
			wrong = left
		}
		fail(L, "attempt to perform arithmetic on a %s value", wrong.Type())
		return 0
	}
}

// position makes an index from the end one from the beginning.
func position(i, length int) int {
	if i < 0 {
		i += length + 1
	}
	return max(i, 0)
}

func stringByte(L *lua.LState) int {
	s := textArg(L, 1)
	from := position(indexArg(L, 2, 1), len(s))
	to := position(indexArg(L, 3, from), len(s))
	from, to = max(from, 1), min(to, len(s))
	if from > to {
		return 0
	}
	if to-from >= maxUnpack-L.GetTop() {
		fail(L, "string slice too long")
	}
	for i := from; i <= to; i++ {
		L.Push(lua.LNumber(s[i-1]))
	}
	return to - from + 1
}

func stringChar(L *lua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		c := intArg(L, i+1)
		if c < 0 || c > 255 {
			argError(L, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	return push(L, lua.LString(b))
}

func stringDump(L *lua.LState) int {
	fail(L, "unable to dump given function")
	return 0
}

func stringLen(L *lua.LState) int {
	return push(L, lua.LNumber(len(textArg(L, 1))))
}

// pushNew pushes a string that is about to be made of n bytes.
func pushNew(L *lua.LState, n int, s func() lua.LString) int {
	of(L).allocate(L, n)
	return push(L, s())
}

// mapBytes changes the case of the letters of a range.
func mapBytes(L *lua.LState, first, last byte) int {
	s := textArg(L, 1)
	return pushNew(L, len(s), func() lua.LString {
		b := appendText(make([]byte, 0, len(s)), s)
		for i, c := range b {
			if first <= c && c <= last {
				b[i] = c ^ 0x20
			}
		}
		return built(b)
	})
}

func stringReverse(L *lua.LState) int {
	s := textArg(L, 1)
	return pushNew(L, len(s), func() lua.LString {
		b := appendText(make([]byte, 0, len(s)), s)
		slices.Reverse(b)
		return built(b)
	})
}

func stringRep(L *lua.LState) int {
	s, n := textArg(L, 1), intArg(L, 2)
	if n <= 0 || s == "" {
		return push(L, lua.LString(""))
	}
	if n > maxString/len(s) {
		fail(L, "%s", ErrMemory.Error())
	}
	return pushNew(L, n*len(s), func() lua.LString { return repeat(s, n) })
}

func stringSub(L *lua.LState) int {
	s := textArg(L, 1)
	from := max(position(int(toInteger(numberArg(L, 2))), len(s)), 1)
	to := min(position(indexArg(L, 3, -1), len(s)), len(s))
	if from > to {
		return push(L, lua.LString(""))
	}
	return push(L, lua.LString(s[from-1:to]))
}

// stringFind is string.find, or string.match.
func stringFind(L *lua.LState, find bool) int {
	s, pattern := textArg(L, 1), textArg(L, 2)
	init := position(indexArg(L, 3, 1), len(s)) - 1
	init = min(max(init, 0), len(s))
	if find && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(cString(pattern), "^$*+?.([%-")) {
		of(L).spend(L, (len(s)-init)>>4)
		at := index(s[init:], pattern)
		if at < 0 {
			return push(L, lua.LNil)
		}
		return push(L, lua.LNumber(init+at+1), lua.LNumber(init+at+len(pattern)))
	}
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		pattern = pattern[1:]
	}
	m := newMatcher(L, s, pattern)
	for at := init; at <= len(s); at++ {
		m.level = 0
		if end := m.match(at, 0); end >= 0 {
			if !find {
				return m.pushCaptures(at, end, true)
			}
			return push(L, lua.LNumber(at+1), lua.LNumber(end)) + m.pushCaptures(at, end, false)
		}
		if anchored {
			break
		}
	}
	return push(L, lua.LNil)
}

func stringGMatch(L *lua.LState) int {
	s, pattern := textArg(L, 1), textArg(L, 2)
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		m := newMatcher(L, s, pattern)
		for ; at <= len(s); at++ {
			m.level = 0
			if end := m.match(at, 0); end >= 0 {
				from := at
				at = end
				if end == from {
					at++
				}
				return m.pushCaptures(from, end, true)
			}
		}
		return 0
	}))
	return 1
}

func stringGSub(L *lua.LState) int {
	s, pattern := textArg(L, 1), textArg(L, 2)
	most := optInt(L, 4, len(s)+1)
	replacement := L.Get(3)
	switch replacement.(type) {
	case lua.LString, lua.LNumber, *lua.LTable, *lua.LFunction:
	default:
		argError(L, 3, "string/function/table expected")
	}
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		pattern = pattern[1:]
	}
	m := newMatcher(L, s, pattern)
	b := m.machine.grow(L, nil, len(s))
	n, at := 0, 0
	for n < most {
		m.level = 0
		end := m.match(at, 0)
		if end >= 0 {
			n++
			b = m.replace(b, replacement, at, end)
		}
		switch {
		case end > at:
			at = end
		case at < len(s):
			b = append(m.machine.grow(L, b, 1), s[at])
			at++
		default:
			at++
		}
		if at > len(s) || anchored {
			break
		}
	}
	if at < len(s) {
		b = m.append(b, s[at:])
	}
	return push(L, built(b), lua.LNumber(n))
}

// replace appends what a match becomes.
func (m *matcher) replace(b []byte, with lua.LValue, from, to int) []byte {
	L := m.L
	var v lua.LValue
	switch r := with.(type) {
	case *lua.LTable:
		v = L.GetTable(r, m.capture(0, from, to))
	case *lua.LFunction:
		level := m.level // a call may not change it: every call of the library has a matcher of its own
		m.machine.enter(L)
		L.Push(r)
		n := m.pushCaptures(from, to, true)
		L.Call(n, 1)
		m.machine.leave()
		v = L.Get(-1)
		L.Pop(1)
		m.level = level
	default:
		return m.expand(b, r, from, to)
	}
	if !lua.LVAsBool(v) {
		return m.append(b, m.src[from:to])
	}
	text, ok := toText(v)
	if !ok {
		fail(L, "invalid replacement value (a %s)", v.Type())
	}
	return m.append(b, text)
}

// append appends a text to b.
func (m *matcher) append(b []byte, text string) []byte { return m.machine.append(m.L, b, text) }

// expand appends a replacement text, in which %1 is a capture.
func (m *matcher) expand(b []byte, with lua.LValue, from, to int) []byte {
	text, _ := toText(with)
	m.machine.spend(m.L, len(text)>>4)
	for {
		i := index(text, "%")
		if i < 0 {
			return m.append(b, text)
		}
		b, text = m.append(b, text[:i]), text[i+1:]
		if text == "" {
			return m.append(b, "\x00") // as C does, which reads the end of the string
		}
		switch c := text[0]; {
		case !isDigit(c):
			b = m.append(b, text[:1])
		case c == '0':
			b = m.append(b, m.src[from:to])
		default:
			captured, _ := toText(m.capture(int(c-'1'), from, to))
			b = m.append(b, captured)
		}
		text = text[1:]
	}
}
