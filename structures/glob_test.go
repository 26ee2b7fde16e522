package structures_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/structures"
)

func TestMatch(t *testing.T) {
	cases := []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"*", "", true}, {"**", "", false}, {"", "a", false}, {"*", "a", true}, {"?", "", false},
		{"a", "a", true}, {"a", "b", false}, {"a", "aa", false}, {"aa", "a", false}, {"?", "a", true}, {"?", "ab", false},
		{"a*", "a", true}, {"a***", "a", true}, {"*a", "a", true}, {"*a", "ba", true}, {"*a", "bab", false},
		{"h*llo", "hllo", true}, {"h*llo", "heeeello", true}, {"h?llo", "hllo", false}, {"*:*:*", "a:b:c", true},
		{"*a*b*c", "xaxbxc", true}, {"*a*b*c", "xaxcxb", false}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"h[ae]llo", "hello", true}, {"h[ae]llo", "hillo", false}, {"h[^e]llo", "hallo", true}, {"h[^e]llo", "hello", false},
		{"h[a-b]llo", "hbllo", true}, {"h[a-b]llo", "hcllo", false}, {"h[b-a]llo", "hbllo", true}, {"[a-]", "-", false},
		{"[a-]", "a", true}, {"[-a]", "-", true}, {"[a-", "-", true}, {"[]", "]", false}, {"[^]", "]", true}, {"[", "[", false},
		{"[^", "x", true}, {"[abc", "b", true}, {"[abc", "d", false}, {"[\\]]", "]", true}, {"[\\", "\\", true},
		{"[\\]", "]", true}, {"[a\\-z]", "m", false}, {"[a\\-z]", "-", true}, {"[^a-c]x", "dx", true},
		{"\\*", "*", true}, {"\\*", "a", false}, {"\\", "\\", true}, {"a\\", "a\\", true}, {"\\a", "a", true},
		{"\\\\", "\\", true}, {"a\x00b", "a\x00b", true}, {"[\x80-\x90]", "\x85", true}, {"[a-\xff]", "b", false},
		{"[a-\xff]", "A", true}, {"A", "a", false},
	}
	for _, c := range cases {
		if got := structures.Match(c.pattern, []byte(c.name)); got != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.name, got)
		}
		if c.name == "" && c.pattern == "*" {
			continue // Redis's callers, not its matcher, know that one.
		}
		if got := redisMatch(c.pattern, c.name); got != c.want {
			t.Errorf("Redis's algorithm says %v for %q and %q", got, c.pattern, c.name)
		}
	}
}

// A pattern made to be slow for a matcher that backtracks into every star.
func TestMatchIsNotExponential(t *testing.T) {
	pattern := strings.Repeat("a*", 1000) + "b"
	if structures.Match(pattern, []byte(strings.Repeat("a", 10000))) {
		t.Error("matched")
	}
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"h[a-c]llo*", "hallo world"}, {"*a*b[^c]\\?", "xxabd?"}, {"[a-", "-"}, {"[\\]", "]"}, {"**?*", "ab"}, {"[^", "x"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 24 || len(name) > 24 || pattern == "*" && name == "" {
			return
		}
		if got, want := structures.Match(pattern, []byte(name)), redisMatch(pattern, name); got != want {
			t.Fatalf("Match(%q, %q) = %v, Redis says %v", pattern, name, got, want)
		}
	})
}

// redisMatch matches the way Redis's matcher does it: recursive at every star, one step at a time,
// and reading a terminator after the pattern's end.
func redisMatch(pattern, name string) bool {
	at := func(i int) byte { return terminated(pattern, i) }
	p := 0
	for p < len(pattern) && name != "" {
		switch pattern[p] {
		case '*':
			for at(p+1) == '*' {
				p++
			}
			if p == len(pattern)-1 {
				return true
			}
			for ; name != ""; name = name[1:] {
				if redisMatch(pattern[p+1:], name) {
					return true
				}
			}
			return false
		case '?':
		case '[':
			var match bool
			if p, match = redisClass(pattern, p+1, name[0]); !match {
				return false
			}
		case '\\':
			if len(pattern)-p >= 2 {
				p++
			}
			fallthrough
		default:
			if pattern[p] != name[0] {
				return false
			}
		}
		p++
		name = name[1:]
		if name == "" {
			for at(p) == '*' {
				p++
			}
			break
		}
	}
	return p == len(pattern) && name == ""
}

// redisClass is redisMatch for a class, after its bracket. It returns where the class ends.
func redisClass(pattern string, p int, c byte) (end int, ok bool) {
	not, match := terminated(pattern, p) == '^', false
	if not {
		p++
	}
	for ; ; p++ {
		if len(pattern)-p >= 2 && pattern[p] == '\\' {
			p++
			match = match || pattern[p] == c
		} else if terminated(pattern, p) == ']' {
			break
		} else if p >= len(pattern) {
			p--
			break
		} else if len(pattern)-p >= 3 && pattern[p+1] == '-' {
			low, high := int8(pattern[p]), int8(pattern[p+2])
			p += 2
			match = match || min(low, high) <= int8(c) && int8(c) <= max(low, high)
		} else {
			match = match || pattern[p] == c
		}
	}
	return p, match != not
}

func terminated(pattern string, i int) byte {
	if i < len(pattern) {
		return pattern[i]
	}
	return 0
}
