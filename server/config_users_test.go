package server_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// lines are those of a file that begin with a word.
func linesOf(t *testing.T, path, word string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, word+" ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// TestUsersOfConfigFile: lines of users in the file are users, a reload applies them, CONFIG REWRITE writes what ACL
// has changed, and what is written is read again.
func TestUsersOfConfigFile(t *testing.T) {
	const clear = "c1ear-text"
	c, path, _, err := load(t, "timeout 5\nuser alice on >"+clear+" ~app:* +@all\nUSER bob off nopass \"(~a +get)\" '(+set' '~b)'\n# end\n")
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), &server.Options{Config: c})
	s := v.NewSession()
	expect := func(in, want string) {
		t.Helper()
		if got := ask(s, in+"\r\n"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	users := func() string { return strings.Join(strings.Fields(ask(s, "ACL USERS\r\n")), " ") }
	if got := users(); got != "*3 $5 alice $3 bob $7 default" {
		t.Fatal(got)
	}
	expect("CONFIG REWRITE", "+OK\r\n") // nothing has changed: the clear text stays, and who wrote it knows why
	if got := linesOf(t, path, "user"); len(got) != 1 || !strings.Contains(got[0], ">"+clear) || len(linesOf(t, path, "USER")) != 1 {
		t.Errorf("%q", got)
	}
	expect("ACL SETUSER carol on >other ~x", "+OK\r\n")
	want := ask(s, "ACL LIST\r\n")
	expect("CONFIG REWRITE", "+OK\r\n")
	got := linesOf(t, path, "user")
	if text := strings.Join(got, "\n"); len(got) != 3 || strings.Contains(text, clear) || strings.Contains(text, ">") || !strings.HasPrefix(got[2], "user carol on") {
		t.Errorf("%q", got)
	}
	expect("CONFIG REWRITE", "+OK\r\n")
	if again := linesOf(t, path, "user"); !slices.Equal(got, again) {
		t.Errorf("written twice: %q, %q", got, again)
	}
	fresh := server.NewConfig()
	if _, err := fresh.Load(path); err != nil {
		t.Fatal(err)
	}
	if got := ask(newSession(t, openStore(t), &server.Options{Config: fresh}), "ACL LIST\r\n"); got != want {
		t.Errorf("read again: %q, was %q", got, want)
	}
	expect("AUTH alice "+clear, "+OK\r\n")
	other := v.NewSession()
	write := func(text string) error {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return v.Reload()
	}
	s = other
	for text, want := range map[string]string{
		"timeout 6\nuser dora on +nope\n":                  ":2: user: Error in ACL SETUSER modifier '+nope'",
		"timeout 6\nuser dora on\n\nuser dora off\n":       ":4: user: duplicate user 'dora' found",
		"timeout 6\nuser\n":                                ":2: user takes a name, and rules",
		"timeout 6\nuser \"a b\" on\n":                     ":2: user: Usernames can't contain spaces or null characters",
		"timeout 6\nuser dora on >" + clear + " <missing1": ":2: user: Error in ACL SETUSER modifier '<(redacted)'",
		"timeout 6\nuser dora #" + clear + "\n":            ":2: user: Error in ACL SETUSER modifier '#(redacted)'",
	} {
		err := write(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), clear) || strings.Contains(err.Error(), "missing1") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if got := ask(s, "CONFIG GET timeout\r\n"); !strings.Contains(got, "\r\n5\r\n") || !strings.Contains(users(), "carol") {
			t.Errorf("%q: a part is taken: %q %q", text, got, users())
		}
	}
	if err := write("user default on >" + clear + " ~d:* +@all\nrequirepass ignored\nuser dora on nopass ~* +@all\n"); err != nil {
		t.Fatal(err)
	}
	if got := users(); got != "*2 $7 default $4 dora" {
		t.Error(got)
	}
	if got := ask(v.NewSession(), "AUTH default ignored\r\n"); !strings.HasPrefix(got, "-WRONGPASS") {
		t.Errorf("requirepass holds against the line of the default user: %q", got)
	}
	expect("AUTH default "+clear, "+OK\r\n")
	if err := write("timeout 9\n"); err != nil {
		t.Fatal(err)
	}
	if got := users(); got != "*1 $7 default" {
		t.Error(got)
	}
}

// TestUsersInTwoPlaces: a file with users and an aclfile exclude each other, as in Redis, at the start and at a reload.
func TestUsersInTwoPlaces(t *testing.T) {
	aclFile := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(aclFile, []byte("user erik on nopass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "stave.conf:2: users stand in"
	if _, _, _, err := load(t, "aclfile "+aclFile+"\nuser alice on >secret12\n"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret12") {
		t.Error(err)
	}
	c, path, _, err := load(t, "timeout 0\nuser alice on >secret12\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.New(openStore(t), &server.Options{Config: c, ACLFile: aclFile}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret12") {
		t.Error(err)
	}
	if err := (&server.Options{Config: c, ACLFile: aclFile}).CheckAddress(t.Context(), "0.0.0.0:1", false); err == nil || !strings.Contains(err.Error(), want) {
		t.Error("before the store is opened:", err)
	}
	if err := os.WriteFile(path, []byte("aclfile "+aclFile+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = server.NewConfig()
	if _, err := c.Load(path); err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), &server.Options{Config: c})
	s := v.NewSession()
	ask(s, "ACL SETUSER frida on\r\n")
	if got := ask(s, "CONFIG REWRITE\r\n"); got != "+OK\r\n" || len(linesOf(t, path, "user")) > 0 {
		t.Errorf("%q: the users of an aclfile are ACL SAVE's to write", got)
	}
	if err := os.WriteFile(path, []byte("aclfile "+aclFile+"\nuser alice on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Reload(); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if got := ask(s, "ACL USERS\r\n"); !strings.Contains(got, "frida") || strings.Contains(got, "alice") {
		t.Error(got)
	}
}

// TestRewriteOfDefaultUser: a default user that may not do everything stays so over CONFIG SET requirepass and CONFIG
// REWRITE; one that is open needs no line.
func TestRewriteOfDefaultUser(t *testing.T) {
	for rules, line := range map[string]bool{"": false, "ACL SETUSER default resetkeys ~a\r\n": true, "ACL SETUSER default +@all -set\r\n": true} {
		c, path, _, err := load(t, "timeout 5\n")
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(t, openStore(t), &server.Options{Config: c})
		ask(s, rules+"CONFIG SET requirepass secret12\r\n")
		if got := ask(s, "CONFIG REWRITE\r\n"); got != "+OK\r\n" {
			t.Fatal(got)
		}
		want := ask(s, "ACL LIST\r\n")
		if got := linesOf(t, path, "user"); (len(got) == 1) != line {
			t.Errorf("%q: %q", rules, got)
		}
		if got := linesOf(t, path, "requirepass"); len(got) != 1 {
			t.Errorf("%q: %q", rules, got)
		}
		again := server.NewConfig()
		if _, err := again.Load(path); err != nil {
			t.Fatal(err)
		}
		s = newSession(t, openStore(t), &server.Options{Config: again})
		if got := ask(s, "AUTH wrong\r\n"); !strings.HasPrefix(got, "-WRONGPASS") {
			t.Errorf("%q: %q", rules, got)
		}
		if got := ask(s, "AUTH secret12\r\n"); got != "+OK\r\n" {
			t.Errorf("%q: %q", rules, got)
		}
		if got := ask(s, "ACL LIST\r\n"); line && got != want {
			t.Errorf("%q: %q, was %q", rules, got, want)
		}
	}
}

// TestRewriteOfIncludedUsers: lines of users in an included file are not rewritten, and not doubled.
func TestRewriteOfIncludedUsers(t *testing.T) {
	included := filepath.Join(t.TempDir(), "users.conf")
	if err := os.WriteFile(included, []byte("user alice on nopass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, path, _, err := load(t, "include "+included+"\n")
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, openStore(t), &server.Options{Config: c})
	if got := ask(s, "CONFIG SET timeout 9\r\nCONFIG REWRITE\r\n"); got != "+OK\r\n+OK\r\n" {
		t.Error(got)
	}
	if got := ask(s, "ACL SETUSER bob on\r\nCONFIG REWRITE\r\n"); !strings.HasPrefix(got, "+OK\r\n-ERR Rewriting config file") {
		t.Error(got)
	}
	if got := linesOf(t, path, "user"); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// askingHandler is a log handler that asks the server for a setting when users were loaded.
type askingHandler struct {
	slog.Handler
	ask func()
}

func (h askingHandler) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "users") {
		h.ask()
	}
	return nil
}

// TestReloadOfUsersLogsWithoutLocks: a log handler may ask for settings.
func TestReloadOfUsersLogsWithoutLocks(t *testing.T) {
	c, path, _, err := load(t, "timeout 5\nuser alice on nopass ~* +@all\n")
	if err != nil {
		t.Fatal(err)
	}
	var v *server.Server
	got := ""
	logger := slog.New(askingHandler{slog.NewTextHandler(io.Discard, nil), func() { got = ask(v.NewSession(), "CONFIG GET timeout\r\n") }})
	v = newServer(t, openStore(t), &server.Options{Config: c, Logger: logger})
	if err := os.WriteFile(path, []byte("timeout 5\nuser alice off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- v.Reload() }()
	select {
	case err := <-done:
		if err != nil || !strings.Contains(got, "$1\r\n5\r\n") {
			t.Errorf("%v; the handler got %q", err, got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the reload hangs")
	}
}
