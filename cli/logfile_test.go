package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestLogFileIsRotated: lines go to the file that has the name: after it was renamed, removed, replaced, or truncated.
func TestLogFileIsRotated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be renamed")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "logs", "log")
	if _, err := openLogFile(path); err == nil {
		t.Fatal("opened in a directory that is not there")
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := openLogFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(l, nil))
	expect := func(name string, want ...string) {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil || strings.Count(string(text), "\n") != len(want) {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
		for _, line := range want {
			if !strings.Contains(string(text), "msg="+line+"\n") {
				t.Errorf("%s: %q lacks %s", name, text, line)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log.Info("one")
	must(os.Rename(path, path+".1"))
	log.Info("two")
	log.Info("three")
	expect(path+".1", "one")
	expect(path, "two", "three")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	must(os.Remove(path))
	log.Info("four")
	expect(path, "four")
	must(os.Rename(path, path+".2"))
	must(os.WriteFile(path, nil, 0o640)) // as logrotate's create does
	log.Info("five")
	expect(path, "five")
	must(os.Truncate(path, 0))
	log.Info("six")
	expect(path, "six")
	must(os.Rename(filepath.Dir(path), filepath.Join(dir, "away"))) // nowhere to open it
	log.Info("seven")
	expect(filepath.Join(dir, "away", "log"), "six", "seven")
	must(os.Mkdir(filepath.Dir(path), 0o700))
	log.Info("eight")
	expect(path, "eight")
	must(l.Close())
}
