package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHint(t *testing.T) {
	tests := []struct{ line, want string }{
		{"", ""},
		{"ge", ""},
		{"get", ""}, // the menu's turn until a blank ends the word
		{"get ", "GET key"},
		{"get k", "GET key"},
		{"get k ", "GET .."},
		{"nonsense ", ""},
		{"3 incr ", "INCR key"},
		{"set k ", "SET .. value"},
		{"client setn", "CLIENT <"},
		{"client setname ", "CLIENT SETNAME connection-name"},
		{"client nonsense ", ""},
		{`set "a b" `, "SET .. value"},
		{`set "a b`, "SET key value"},
	}
	for _, test := range tests {
		if got := hint(test.line); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%q: got %q, want %q...", test.line, got, test.want)
		}
	}
}

func TestRemaining(t *testing.T) {
	const set = "key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]"
	const zadd = "key [NX | XX] [GT | LT] [CH] score member [score member ...]"
	tests := []struct{ syntax, typed, want string }{
		{set, "", set},
		{set, "k", "value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]"},
		{set, "k v nx", "[GET] [EX seconds | PX milliseconds | KEEPTTL]"},
		{set, "k v ex", "seconds [NX | XX] [GET]"},
		{set, "k v ex 5", "[NX | XX] [GET]"},
		{set, "nx", "value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]"}, // a key called nx
		{zadd, "k", "[NX | XX] [GT | LT] [CH] score member [score member ...]"},
		{zadd, "k ch", "[NX | XX] [GT | LT] score member [score member ...]"},
		{zadd, "k 1", "member [score member ...]"},
		{zadd, "k 1 m 2", "[score member ...]"},
		{"<LIB-NAME name | LIB-VER version>", "lib-ver", "version"},
		{"", "surplus", ""},
	}
	for _, test := range tests {
		got := strings.Join(remaining(splitSyntax(test.syntax), strings.Fields(test.typed)), " ")
		if got != test.want {
			t.Errorf("%s after %q:\n got %s\nwant %s", test.syntax, test.typed, got, test.want)
		}
	}
}

func TestOpenQuote(t *testing.T) {
	for line, want := range map[string]bool{
		`set k "a`: true, `set k 'a`: true, `set k "a\`: true, `set k 'a\`: true, "set k \"a\nb": true, `set "`: true,
		`set k "a"`: false, `set k "a"b`: false, `set k "a"b "c`: false, `set k it's`: true, ``: false, `set k "a\"`: true,
	} {
		if got := openQuote([]byte(line)); got != want {
			t.Errorf("%s: got %v", line, got)
		}
	}
}

func TestHistoryKeepsNoSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := loadHistory(path)
	for _, line := range []string{
		"set a 1", "set a 1", "AUTH secret", "auth user secret", "hello 3 auth default secret", "hello 3",
		"config set requirepass secret", "CONFIG SET masterauth secret", "config set maxmemory 1", "acl setuser bob on >secret",
		`auth "secret`, "3 auth secret", "migrate h 1 k 0 5 AUTH2 u secret", "set b \"two\nlines\"", "   ",
		"set big " + strings.Repeat("x", maxHistoryLine), "config get requirepass",
	} {
		h.Write(line)
	}
	want := []string{"set a 1", "hello 3", "config set maxmemory 1", "set b \"two\nlines\"", "config get requirepass"}
	if !slices.Equal(h.lines, want) {
		t.Errorf("in memory: %q", h.lines)
	}
	if again := loadHistory(path); !slices.Equal(again.lines, want) {
		t.Errorf("in the file: %q", again.lines)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if data, _ := os.ReadFile(path); strings.Contains(string(data), "secret") {
		t.Errorf("a secret in %s", data)
	}
}

func TestHistoryIsShortened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var text strings.Builder
	for range 2*maxHistoryLines + 1 {
		text.WriteString("\"get k\"\nnot json\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if h := loadHistory(path); h.Len() != maxHistoryLines {
		t.Errorf("%d lines", h.Len())
	}
	if h := loadHistory(path); h.Len() != maxHistoryLines {
		t.Errorf("%d lines in the file", h.Len())
	}
}

func TestTexts(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 9949: "9.9 KB", 9960: "10 KB", 402_000_000: "402 MB", 999_700: "1.0 MB", 1 << 40: "1.1 TB"} {
		if got := sizeText(n); got != want {
			t.Errorf("sizeText(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -999: "-999"} {
		if got := countText(n); got != want {
			t.Errorf("countText(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{3100 * time.Millisecond: "3.1 s", 12 * time.Millisecond: "12 ms", 90 * time.Second: "1m30s", 5 * time.Microsecond: "5 us"} {
		if got := durationText(d); got != want {
			t.Errorf("durationText(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestProgressFitsALine(t *testing.T) {
	p := newProgress(nil, "import", 1<<42)
	line := p.line(1<<41, 1<<41, 123_456_789, 2*time.Hour)
	if len(line) > 80 || !strings.Contains(line, "50%") || !strings.Contains(line, "ETA 2h0m0s") {
		t.Errorf("%d columns: %s", len(line), line)
	}
	if got := newProgress(nil, "import", 0).line(5, 5, 1, time.Second); strings.Contains(got, "%") {
		t.Errorf("a percentage of nothing: %s", got)
	}
}

func TestLineReader(t *testing.T) {
	l := newLineReader(strings.NewReader("a\r\n\nlast"))
	var got []string
	for {
		line, err := l.next()
		if err != nil {
			break
		}
		got = append(got, string(line))
	}
	if !slices.Equal(got, []string{"a", "", "last"}) || l.number != 3 || l.bytes != 8 {
		t.Errorf("%q, %d lines, %d bytes", got, l.number, l.bytes)
	}
}
