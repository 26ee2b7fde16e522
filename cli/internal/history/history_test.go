package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHistoryKeepsNoSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := Load(path)
	for _, line := range []string{
		"set a 1", "set a 1", "AUTH secret", "auth user secret", "hello 3 auth default secret", "hello 3",
		"config set requirepass secret", "CONFIG SET masterauth secret", "config set maxmemory 1", "acl setuser bob on >secret",
		`auth "secret`, "3 auth secret", "migrate h 1 k 0 5 AUTH2 u secret", "set b \"two\nlines\"", "   ",
		"set big " + strings.Repeat("x", maxLine), "config get requirepass",
	} {
		h.Write(line)
	}
	want := []string{"set a 1", "hello 3", "config set maxmemory 1", "set b \"two\nlines\"", "config get requirepass"}
	if !slices.Equal(h.lines, want) {
		t.Errorf("in memory: %q", h.lines)
	}
	if again := Load(path); !slices.Equal(again.lines, want) {
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
	for range 2*MaxLines + 1 {
		text.WriteString("\"get k\"\nnot json\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if h := Load(path); h.Len() != MaxLines {
		t.Errorf("%d lines", h.Len())
	}
	if h := Load(path); h.Len() != MaxLines {
		t.Errorf("%d lines in the file", h.Len())
	}
}
