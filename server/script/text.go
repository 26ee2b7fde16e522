package script

import (
	"runtime"
	"slices"
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
	return asString(appendLong(make([]byte, 0, len(b)), string(asString(b))))
}

// appendText appends a text of any length to b.
func appendText(b []byte, text string) []byte {
	if len(b)+len(text) > portion {
		return appendLong(b, text)
	}
	return append(b, text...)
}

func appendLong(b []byte, text string) []byte {
	b = grow(b, len(text))
	for ; len(text) > portion; text = text[portion:] {
		b = append(b, text[:portion]...)
		runtime.Gosched()
	}
	return append(b, text...)
}

// grow makes room for n more bytes in b.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	if len(b)+n <= portion {
		return slices.Grow(b, n)
	}
	return appendLong(make([]byte, 0, max(len(b)+n, len(b)+len(b)/4)), string(asString(b)))
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
