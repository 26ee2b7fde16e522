//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli"
)

// packages reads the sample of a package database as the commands that store it, and says how many packages it has.
func packages(t *testing.T) (commands string, n int) {
	t.Helper()
	text, err := os.ReadFile("../examples/packages/testdata/status.sample")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		name := ""
		for line := range strings.Lines(paragraph) {
			field, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
			if !ok || strings.HasPrefix(line, " ") {
				continue
			}
			if field == "Package" {
				name = value
				n++
			}
			fmt.Fprintf(&out, "HSET pkg:%s %s %q\n", name, field, value)
			switch field {
			case "Section":
				fmt.Fprintf(&out, "SADD section:%s %s\n", value, name)
			case "Installed-Size":
				fmt.Fprintf(&out, "ZADD sizes %s %s\n", value, name)
			}
		}
	}
	return out.String(), n
}

// TestTour runs every sub-command once, on a real package database: in by a script, through RDB, AOF and JSON lines to
// other stores, all of which hold the same. A command that is not on the tour fails it.
func TestTour(t *testing.T) {
	script, n := packages(t)
	if n < 50 {
		t.Fatalf("%d packages", n)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	seen := map[string]bool{}
	step := func(input string, want int, args ...string) string {
		t.Helper()
		seen[args[0]] = true
		var stdout, stderr bytes.Buffer
		if status := cli.Run(append([]string{"stave"}, args...), strings.NewReader(input), &stdout, &stderr); status != want {
			t.Fatalf("stave %s: status %d, want %d\n%s%s", strings.Join(args, " "), status, want, stdout.String(), stderr.String())
		}
		return stdout.String()
	}
	data := at("data")
	step(script, 0, "exec", "--dir", data)
	keys := strings.TrimSpace(step("", 0, "exec", "--dir", data, "DBSIZE"))
	step("HGET pkg:apt Version\n", 0, "shell", data)
	whole := step("", 0, "export", data, "--sort")
	if got := step("", 0, "tail", data, "--since", "0"); strings.Count(got, "\n") < n || !strings.Contains(got, `"key":"pkg:apt","type":"hash","field":"Version"`) {
		t.Errorf("tail: %s", got)
	}
	for _, format := range []string{"jsonl", "rdb", "aof"} {
		file, copied := at(format), at("from-"+format)
		if err := os.WriteFile(file, []byte(step("", 0, "export", data, "--format", format)), 0o644); err != nil {
			t.Fatal(err)
		}
		step("", 0, "import", copied, file)
		if got := step("", 0, "export", copied, "--sort"); got != whole {
			t.Errorf("by %s: another store", format)
		}
	}
	if got := step("", 0, "orphans", data); got != "" {
		t.Errorf("orphans: %s", got)
	}
	step("", 0, "merge", data, "--all")
	step("", 0, "check", data)
	step("", 0, "stats", data)
	if got := step("", 0, "stats", data, "--json"); strings.Contains(got, "0001-01-01") {
		t.Errorf("a time that never was: %s", got)
	}
	step("", 0, "inspect", data)
	step("", 0, "inspect", data, "--html", at("page.html"))
	step("", 0, "dump", filepath.Join(data, "MANIFEST"))
	step("", 0, "doctor", data)
	step("", 0, "backup", data, at("copy"))
	step("", 0, "backup", data, at("next"), "--incremental", at("copy"))
	step("", 0, "restore", at("next"), at("restored"))
	if got := step("", 0, "export", at("restored"), "--sort"); got != whole {
		t.Error("the restored backup is another store")
	}
	step("", 0, "archive", at("restored"), at("archive"))
	step("", 0, "restore", "--archive", at("archive"), at("moment"))
	if got := step("", 0, "export", at("moment"), "--sort"); got != whole {
		t.Error("the archived store is another one")
	}
	step("", 0, "repair", at("copy"), "--out", at("fixed"))
	if got := step("", 0, "export", at("fixed"), "--sort"); got != whole {
		t.Error("the repaired copy is another store")
	}
	step("", 0, "completion", "bash")
	step("", 0, "man")
	step("", 0, "version")
	step("", 0, "bench", dir, "-n", "200", "--only", "put", "--quiet")
	seen["serve"] = true
	addr, stop := serve(t, data, filepath.Join(t.TempDir(), "s"))
	if got := strings.TrimSpace(step("", 0, "exec", "--addr", addr, "DBSIZE")); got != keys || keys == "0" {
		t.Errorf("the server has %s keys, the store had %s", got, keys)
	}
	if got := step("", 0, "top", "--addr", addr, "--count", "1", "--every", "100ms"); !strings.Contains(got, keys) {
		t.Errorf("top: %s", got)
	}
	if got := strings.TrimSpace(step("", 0, "cli", "-s", addr, "DBSIZE")); got != keys {
		t.Errorf("stave cli: the server has %s keys", got)
	}
	if got := strings.TrimSpace(step("DBSIZE\n", 0, "cli", "-s", addr)); got != keys {
		t.Errorf("stave cli: the server has %s keys by a script", got)
	}
	follower, _ := serve(t, data, filepath.Join(t.TempDir(), "s"), "--follow") // stop ends both
	if got := strings.TrimSpace(step("", 0, "exec", "--addr", follower, "DBSIZE")); got != keys {
		t.Errorf("the server that follows has %s keys, the store %s", got, keys)
	}
	if got := step("", 0, "stats", data, "--watch", "--count", "1"); !strings.Contains(got, "keys") {
		t.Errorf("stats --watch: %s", got)
	}
	stop()
	if url, ask := startRedis(t); url != "" {
		step("", 0, "export", data, "--to", url)
		step("", 0, "import", data, "--from", url, "--verify")
		if got := ask(nil, "DBSIZE"); got != keys {
			t.Errorf("redis-server has %s keys, the store %s", got, keys)
		}
	}
	for line := range strings.Lines(step("", 0, "help")) {
		name, _, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if ok && strings.HasPrefix(line, "   ") && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(name, "-") && name != "help, h" && !seen[name] {
			t.Errorf("stave %s is not on the tour", name)
		}
	}
}
