//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
)

// silent is the address of a server that takes connections, and never answers.
func silent(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return ln.Addr().String()
}

// endless is a source that says something, and then nothing, and does not end.
func endless(t *testing.T, text string) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	go func() { _, _ = io.WriteString(w, text) }()
	return r
}

// TestFirstSignalEnds: whatever a command does without an end, or waits for, the first SIGINT or SIGTERM ends it within
// seconds, with the status of an interrupt.
func TestFirstSignalEnds(t *testing.T) {
	t.Setenv("STAVE_DIR", "")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	store := filepath.Join(dir, "store")
	want(t, "OK\n", "", 0, "", "exec", "--dir", store, "SET", "key", "value")
	const loop = "while true do end"
	respLoop := "*3\r\n$4\r\nEVAL\r\n$17\r\n" + loop + "\r\n$1\r\n0\r\n"
	lineLoop := "SET a 1\nEVAL \"" + loop + "\" 0\n"
	library := "*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n$30\r\n#!lua name=l\n" + loop + "\r\n"
	nobody := silent(t)
	for name, test := range map[string]struct {
		input io.Reader
		args  []string
	}{
		"import: a script of an AOF":         {nil, []string{"import", "--dir", store, file("aof", "*1\r\n$4\r\nPING\r\n"+respLoop)}},
		"import: bad commands are skipped":   {nil, []string{"import", "-k", "--dir", store, file("aof", respLoop+respLoop)}},
		"import: within MULTI":               {nil, []string{"import", "--dir", store, file("aof", "*1\r\n$5\r\nMULTI\r\n"+respLoop+"*1\r\n$4\r\nEXEC\r\n")}},
		"import: a library":                  {nil, []string{"import", "-k", "--dir", store, file("aof", strings.Repeat(library, 1000))}},
		"import: a script of lines":          {nil, []string{"import", "--dir", store, file("lines", lineLoop)}},
		"import: bad lines are skipped":      {nil, []string{"import", "-k", "--dir", store, file("lines", strings.Repeat(lineLoop, 10))}},
		"import: an input that does not end": {endless(t, "SET a 1\n"), []string{"import", "--dir", store, "-"}},
		"import: a table that does not end":  {endless(t, "id,name\n1,a\n"), []string{"import", "--dir", store, "--key-template", "{id}", "-"}},
		"import: an RDB that does not end":   {endless(t, "REDIS0011"), []string{"import", "--dir", store, "-"}},
		"import: a server that is silent":    {nil, []string{"import", "--dir", store, "--from", "redis://" + nobody}},
		"export: a server that is silent":    {nil, []string{"export", "--dir", store, "--to", "redis://" + nobody}},
		"exec: a script":                     {nil, []string{"exec", "--dir", store, "EVAL", loop, "0"}},
		"exec: a script, and no store":       {nil, []string{"exec", "--dir", filepath.Join(dir, "none"), "EVAL", loop, "0"}},
		"exec: a wait":                       {nil, []string{"exec", "--dir", store, "BLPOP", "x", "0"}},
		"exec: a wait, and no store":         {nil, []string{"exec", "--dir", filepath.Join(dir, "new"), "BLPOP", "x", "0"}},
		"exec: again and again":              {nil, []string{"exec", "--dir", store, "-r", "-1", "GET", "key"}},
		"exec: a server that is silent":      {nil, []string{"exec", "--addr", nobody, "PING"}},
		"exec: lines of a script":            {strings.NewReader(lineLoop), []string{"exec", "--dir", store}},
		"exec: lines that do not end":        {endless(t, "PING\n"), []string{"exec", "--dir", store}},
		"exec: lines, and a silent server":   {strings.NewReader("PING\n"), []string{"exec", "--addr", nobody}},
		"pipe: a script":                     {strings.NewReader(respLoop), []string{"exec", "--pipe", "--dir", store}},
		"pipe: a wait":                       {strings.NewReader("BLPOP x 0\n"), []string{"exec", "--pipe", "--dir", store}},
		"pipe: an input that does not end":   {endless(t, "PING\n"), []string{"exec", "--pipe", "--dir", store}},
		"pipe: a server that is silent":      {strings.NewReader(strings.Repeat("PING\n", 1<<20)), []string{"exec", "--pipe", "--addr", nobody}},
		"scan: a server that is silent":      {nil, []string{"exec", "--scan", "--addr", nobody}},
		"shell: a script":                    {strings.NewReader(lineLoop), []string{"shell", "--dir", store}},
		"shell: lines that do not end":       {endless(t, "PING\n"), []string{"shell", "--dir", store}},
		"top: a server that is silent":       {nil, []string{"top", "--addr", nobody}},
		"tail: commits to come":              {nil, []string{"tail", "--dir", store, "--follow"}},
		"stats: figures again and again":     {nil, []string{"stats", "--dir", store, "--watch"}},
		"restore: an archive without an end": {endless(t, ""), []string{"restore", "-", filepath.Join(dir, "restored")}},
		"bench":                              {nil, []string{"bench", "-n", "100000000", dir}},
		"serve":                              {nil, []string{"serve", "--dir", filepath.Join(dir, "served"), "--addr", "127.0.0.1:0"}},
	} {
		ends := t.Run(name, func(t *testing.T) {
			ended := make(chan int, 1)
			var stdout, stderr bytes.Buffer
			if test.input == nil {
				test.input = strings.NewReader("")
			}
			go func() { ended <- cli.Run(append([]string{"stave"}, test.args...), test.input, &stdout, &stderr) }()
			status, late := endsAfterSignal(t, ended)
			if late {
				t.Fatalf("stave %.200s goes on after a signal", strings.Join(test.args, " "))
			}
			want := 130
			switch test.args[0] {
			case "serve", "top", "tail", "stats": // they have no other end
				want = 0
			}
			if status != want {
				t.Errorf("stave %.200s: status %d, want %d: %.300s", strings.Join(test.args, " "), status, want, stderr.String())
			}
		})
		if !ends {
			return // what goes on would be in the way of the others
		}
	}
}

// endsAfterSignal sends the process a signal, once a command that runs in it has asked for that, and returns its status.
// It sends one after the other, because nobody says when the command asks: one that has been taken is the last that
// the command sees.
func endsAfterSignal(t *testing.T, ended <-chan int) (status int, late bool) {
	t.Helper()
	const within = 30 * time.Second
	ignored := make(chan os.Signal, 1) // those that no command has asked for
	ossignal.Notify(ignored, syscall.SIGINT, syscall.SIGTERM)
	defer ossignal.Stop(ignored)
	for i, start := 0, time.Now(); time.Since(start) < within; i++ {
		select {
		case status = <-ended:
			return status, false
		case <-time.After(100 * time.Millisecond):
			signal(t, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[i%2])
			<-ignored // it has come
		}
	}
	return 0, true
}

// TestImportNeverWaits: a command that would wait for another client does not in an import, and CLIENT REPLY hides no
// error of what follows it.
func TestImportNeverWaits(t *testing.T) {
	for _, test := range []struct {
		text, stderr string
		status       int
	}{
		{"BLPOP x 0\nXREAD BLOCK 0 STREAMS s $\nWAIT 1 0\nBZMPOP 0 1 z MIN\nBLMOVE a b LEFT LEFT 0\nSET k v\n", "", 0},
		{"CLIENT REPLY OFF\nSET k v\nNOPE\n", "unknown command", 1},
		{"CLIENT REPLY SKIP\nNOPE\n", "unknown command", 1},
		{"MULTI\nCLIENT REPLY OFF\nEXEC\nNOPE\n", "unknown command", 1},
	} {
		for _, form := range []func(string) string{func(s string) string { return s }, asClientsSend} {
			dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, []byte(form(test.text)), 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if _, stderr, status := run("", "import", "--dir", dir, file); status != test.status || !strings.Contains(stderr, test.stderr) {
					t.Errorf("%q: status %d, %s", form(test.text), status, stderr)
				}
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatalf("%q: the import waits", form(test.text))
			}
		}
	}
}

// asClientsSend writes lines of words as clients send commands.
func asClientsSend(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	return b.String()
}
