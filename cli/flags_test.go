package cli

import (
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// Options may stand after arguments; those of exec belong to the store.
func TestFlagsFirst(t *testing.T) {
	app := new(Program).newApp(terminal.Open(nil, io.Discard, io.Discard))
	for line, want := range map[string]string{
		"stave":                              "stave",
		"stave check":                        "stave check",
		"stave check dir --json":             "stave check --json -- dir",
		"stave repair dir --out new -q":      "stave repair --out new -q -- dir",
		"stave repair dir --out=new":         "stave repair --out=new -- dir",
		"stave import -":                     "stave import -- -",
		"stave import - --dir":               "stave import --dir", // which is refused
		"stave repair dir --out":             "stave repair --out",
		"stave check -- --json":              "stave check -- --json",
		"stave exec GET --json":              "stave exec GET --json",
		"stave bench dir --help -n 5":        "stave bench --help",
		"stave nonsense a --json":            "stave nonsense a --json",
		"stave backup new --dir old -h":      "stave backup -h",
		"stave merge dir --nonsense --all x": "stave merge --nonsense --all -- dir x",
	} {
		if got := strings.Join(flagsFirst(app, strings.Fields(line)), " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestWithPort: a host alone has the default port; what has a port, is a path or no address is left alone.
func TestWithPort(t *testing.T) {
	for addr, want := range map[string]string{
		"localhost": "localhost:6380", "127.0.0.1": "127.0.0.1:6380", "::1": "[::1]:6380", "[::1]": "[::1]:6380", "localhost:1": "localhost:1", "[::1]:1": "[::1]:1",
		":1": ":1", "/run/s": "/run/s", "./s": "./s", "": "", "6380": "6380", "a:b:c": "a:b:c", "*": "*:6380",
	} {
		if got := withPort(addr, strconv.Itoa(defaultPort)); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}
