package script

import (
	"runtime"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// A string can have maxString bytes. Nothing can interrupt the copy of such a one, not even a garbage collection, for
// which everything has to stop, so that all clients would wait for it. Long strings are copied in portions, and a text
// is not copied again to become a string.

// portion is how many bytes are copied, or searched, at once.
const portion = 1 << 20

// asString is the string of the bytes of b, which must not change any more.
func asString(b []byte) lua.LString { return lua.LString(unsafe.String(unsafe.SliceData(b), len(b))) }

// copyString is a string of the bytes of b.
func copyString(b []byte) lua.LString {
	if len(b) <= portion {
		return lua.LString(b)
	}
	return asString(appendText(make([]byte, 0, len(b)), string(asString(b))))
}

// built is the string of the bytes of b, which must not change any more. It does not keep much room that is left in b.
func built(b []byte) lua.LString {
	if cap(b)-len(b) > len(b)/4 {
		return copyString(b)
	}
	return asString(b)
}

// appendText appends a text to b, which has room for it.
func appendText(b []byte, text string) []byte {
	for ; len(text) > portion; text = text[portion:] {
		b = append(b, text[:portion]...)
		runtime.Gosched()
	}
	return append(b, text...)
}

// grow makes room for n more bytes in b.
func (m *machine) grow(L *lua.LState, b []byte, n int) []byte {
	size := len(b) + n
	if size <= cap(b) {
		return b
	}
	if size <= maxString {
		size = max(size, min(len(b)+len(b)/4+64, maxString))
	}
	m.allocate(L, size)
	return appendText(make([]byte, 0, size), string(asString(b)))
}

// append appends a text to b.
func (m *machine) append(L *lua.LState, b []byte, text string) []byte {
	return appendText(m.grow(L, b, len(text)), text)
}

// join is the string of two texts.
func (m *machine) join(L *lua.LState, a, b string) lua.LString {
	return built(appendText(appendText(m.grow(L, nil, len(a)+len(b)), a), b))
}

// repeat returns n times s.
func repeat(s string, n int) lua.LString {
	size := n * len(s)
	if size <= portion {
		return lua.LString(strings.Repeat(s, n))
	}
	several := strings.Repeat(s, max(1, portion/len(s)))
	b := make([]byte, 0, size)
	for len(b) < size {
		b = appendText(b, several[:min(len(several), size-len(b))])
	}
	return asString(b)
}

// index is strings.Index for texts of any length.
func index(s, substr string) int {
	at, step := 0, max(portion, len(substr))
	for ; len(s)-at > step+len(substr); at += step {
		if i := strings.Index(s[at:at+step+len(substr)], substr); i >= 0 {
			return at + i
		}
		runtime.Gosched()
	}
	if i := strings.Index(s[at:], substr); i >= 0 {
		return at + i
	}
	return -1
}
