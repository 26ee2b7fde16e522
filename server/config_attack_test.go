package server_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// allSettings are what CONFIG GET * shows.
func allSettings(t *testing.T, s *server.Session) map[string]string {
	t.Helper()
	parts := bulks(t, ask(s, "CONFIG GET *\r\n"))
	all := map[string]string{}
	for i := 0; i+1 < len(parts); i += 2 {
		all[parts[i]] = parts[i+1]
	}
	return all
}

// bulks are the bulk strings of an array.
func bulks(t *testing.T, reply string) (list []string) {
	t.Helper()
	_, rest, _ := strings.Cut(reply, "\r\n")
	for rest != "" {
		var n int
		if _, err := fmt.Sscanf(rest, "$%d\r\n", &n); err != nil {
			t.Fatalf("%.80q: %v", rest, err)
		}
		_, rest, _ = strings.Cut(rest, "\r\n")
		list, rest = append(list, rest[:n]), rest[n+2:]
	}
	return list
}

// TestHostileSettings sets every setting to hostile values. Whatever is accepted is written by CONFIG REWRITE and read
// again as it was, by another server and by a reload of the same one.
func TestHostileSettings(t *testing.T) {
	hostile := []string{
		"", " ", "-1", "0", "1", "yes", "no", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e3", "0x10", "+5", " 5", "5 ", "100%", "-1%", "1tb", "9999999999gb",
		"\x00", "a\x00b", "\n", "a\nport 1", "a\r\nuser x on nopass", "\"", "'", "\\", "\\n", "#", "# x", "x # y", "\xff\xfe", "\ufeff", "\ufeffx", "\t", "a\tb", "\v", "${HOME}", "include /etc/passwd",
		"normal 0 0 0", "normal -1 0 0", "normal 0 0 0 normal 1 1 1", "900 1 -5 3", "900 1 300 10", "KEA", "é", strings.Repeat("9", 400), strings.Repeat("x ", 3000), strings.Repeat("y", 20_000),
	}
	c, path, _, err := load(t, "timeout 5\n")
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), &server.Options{Config: c})
	s := v.NewSession()
	before := allSettings(t, s)
	rng, accepted := chance.Rand(t), 0
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if name == "requirepass" {
			continue // it is not shown, and hashing takes long; TestRewriteOfDefaultUser has it
		}
		for _, value := range hostile {
			if testing.Short() && rng.IntN(8) > 0 {
				continue
			}
			in := fmt.Sprintf("*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(name), name, len(value), value)
			reply := ask(s, in)
			switch {
			case reply == "+OK\r\n":
				accepted++
			case !strings.HasPrefix(reply, "-ERR CONFIG SET failed") || strings.Count(reply, "\n") != 1 || len(reply) > 1000:
				t.Errorf("CONFIG SET %s %.60q: %.200q", name, value, reply)
			}
			if reply != "+OK\r\n" || name == "dir" {
				continue
			}
			if got := ask(s, "CONFIG REWRITE\r\n"); got != "+OK\r\n" {
				t.Fatalf("%s %.60q: %q", name, value, got)
			}
			sameAfterReading(t, fmt.Sprintf("%s %.60q", name, value), path, s, v)
		}
		old := before[name]
		ask(s, fmt.Sprintf("*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(name), name, len(old), old))
	}
	if accepted < 500 && !testing.Short() {
		t.Errorf("only %d values were accepted", accepted)
	}
}

// sameAfterReading compares the settings with those of the file.
func sameAfterReading(t *testing.T, what, path string, s *server.Session, v *server.Server) {
	t.Helper()
	fresh := server.NewConfig()
	if _, err := fresh.Load(path); err != nil {
		text, _ := os.ReadFile(path)
		t.Fatalf("%s: the file is not read again: %v\n%.300q", what, err, text)
	}
	if err := v.Reload(); err != nil {
		t.Errorf("%s: reload: %v", what, err)
	}
	now, own := allSettings(t, s), v.Config()
	for name := range now {
		switch name {
		case "dir", "requirepass", "bind", "port", "maxclients", "proto-max-bulk-len", "client-query-buffer-limit":
			continue // the store's, secret, or what holds rather than what is set
		}
		if got, want := fresh.Get(name), own.Get(name); got != want {
			t.Errorf("%s: %s is read as %.80q, was %.80q", what, name, got, want)
		}
	}
}
