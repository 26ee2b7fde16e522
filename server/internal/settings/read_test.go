package settings_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/server/conf"
	"github.com/stavedb/stave/server/internal/settings"
)

// loadText loads a file of that text.
func loadText(t *testing.T, text string) (c *settings.Config, path string, warnings []string, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "stave.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c = settings.New()
	c.JudgeUser = func(line *conf.Directive) error {
		if line.Args[0] == "wrong" {
			return line.Errorf("user: wrong")
		}
		return nil
	}
	warnings, err = c.Load(path)
	return c, path, warnings, err
}

// TestFilesOfRedis: the directives of the stock files of every Redis from 2.4 on, and of Valkey, are accepted, with a line
// for each that somebody may expect something of, and one for all others.
func TestFilesOfRedis(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{
			"", "slaveof no one\nreplicaof NO ONE\n", "daemonize yes\nenable-module-command local\nclient-query-buffer-limit 1gb\n",
			"maxmemory 2gb\nmaxmemory-policy volatile-lru\nhide-user-data-from-log no\n",
		} {
			_, _, warnings, err := loadText(t, string(text)+more)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			summaries := 0
			for _, warning := range warnings {
				if strings.Contains(warning, "settings have no effect here: ") {
					summaries++
				}
			}
			if summaries != 1 || len(warnings) > 6 {
				t.Errorf("%s: %q", file, warnings)
			}
			for _, name := range []string{"daemonize yes", "enable-module-command local", "client-query-buffer-limit 1gb"} {
				if strings.Contains(more, name) && !strings.Contains(strings.Join(warnings, "\n"), name+" has no effect") {
					t.Errorf("%s: no warning of %s: %q", file, name, warnings)
				}
			}
		}
	}
}

// TestToleratedIsNotTaken: what is warned of keeps the value that holds.
func TestToleratedIsNotTaken(t *testing.T) {
	c, _, warnings, err := loadText(t, "daemonize yes\nclient-query-buffer-limit 1gb\nenable-module-command yes\nreplicaof no one\n")
	if err != nil || len(warnings) != 3 {
		t.Fatal(warnings, err)
	}
	for name, want := range map[string]string{"daemonize": "no", "client-query-buffer-limit": "67108864", "enable-module-command": "no", "replicaof": ""} {
		if got := c.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, value := range map[string]string{"daemonize": "yes", "client-query-buffer-limit": "1gb", "replicaof": "1.2.3.4 0"} {
		if err := c.Set(name, value); err == nil {
			t.Errorf("a flag %s %s is accepted", name, value)
		}
	}
}

// TestAllMistakesAtOnce: the error has a line for each mistake, of the file and of what it includes, in order.
func TestAllMistakesAtOnce(t *testing.T) {
	included := filepath.Join(t.TempDir(), "more.conf")
	if err := os.WriteFile(included, []byte("port 1\nport x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, path, _, err := loadText(t, "maxmemory-policy allkeys-lru\nport 70000\nuser wrong\n\ntimeout \"1\nmaxclient 3\ninclude "+included+"\nuser\nuser right on\ninclude gone.conf\n"+
		"rename-command CONFIG \"\"\ndaemonize maybe\nmaxmemory 1mb\nreplicaof 1.2.3.4 x\nbind 127.0.0.1 -::1 127.0.0.1:6380\n")
	if err == nil {
		t.Fatal("accepted")
	}
	var got []string
	for _, one := range conf.Errors(err) {
		var at *conf.Error
		if !errors.As(one, &at) {
			t.Errorf("without a place: %v", one)
			continue
		}
		got = append(got, fmt.Sprint(filepath.Base(at.File), ":", at.Line))
	}
	want := []string{"more.conf:2"}
	for _, line := range []int{2, 3, 5, 6, 8, 10, 11, 12, 14, 15} {
		want = append(want, fmt.Sprint(filepath.Base(path), ":", line))
	}
	// The file comes before what it includes.
	want = append(want[1:], want[0])
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v:\n%v", got, want, err)
	}
	_, _, _, err = loadText(t, "user right on\naclfile users.acl\nport x\n")
	if list := conf.Errors(err); len(list) != 2 || !errors.Is(list[0], settings.ErrTwoPlaces) {
		t.Errorf("users in two places: %v", err)
	}
	_, _, _, err = loadText(t, strings.Repeat("nonsense 1\n", 1000))
	if list := conf.Errors(err); len(list) != 51 || list[50].Error() != "and 950 more" {
		t.Errorf("%d errors, the last is %v", len(list), list[len(list)-1])
	}
}
