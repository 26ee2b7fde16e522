package cli

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// The script for bash completes commands and options, in bash.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	completion, err := completionScript(new(Program).newApp(terminal.Open(nil, nil, nil)), "bash")
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"stave ch":                  "check",
		"stave help insp":           "inspect",
		"stave check --j":           "--json",
		"stave check -":             "--dir --json --replay --quiet --help",
		"stave check $(touch oops)": "",
		"stave nosuch --":           "",
	} {
		script := completion + "\nCOMP_WORDS=(" + "\"${@}\"" + "); COMP_CWORD=$(( $# - 1 )); _stave; echo \"${COMPREPLY[*]}\""
		args := append([]string{"-c", script, "bash"}, strings.SplitN(words, " ", 3)...)
		cmd := exec.Command(bash, args...)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %q, want %q (%v)", words, got, want, err)
		}
		if left, _ := filepath.Glob(filepath.Join(cmd.Dir, "*")); len(left) > 0 {
			t.Errorf("%s: it ran %v", words, left)
		}
	}
}

// The manual page has every command and what its help says, and man can format it.
func TestManualPage(t *testing.T) {
	app := new(Program).newApp(terminal.Open(nil, nil, nil))
	page, err := manPage(app)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range app.Commands {
		if !strings.Contains(page, c.Name) {
			t.Errorf("%s is not in it", c.Name)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff")
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-rHY=0", "-rLL=2000n", "-P-cbou")
	cmd.Stdin = strings.NewReader(page)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Errorf("%v: %s", err, errs.String())
	}
	shown := strings.Join(strings.Fields(out.String()), " ")
	for _, c := range app.Commands {
		for _, text := range []string{c.UsageText, c.Description} {
			if text = strings.Join(strings.Fields(text), " "); !strings.Contains(shown, text) {
				t.Errorf("the page does not have, of %s: %s", c.Name, text)
			}
		}
	}
}

// What is made from the list of commands is the same whatever ran before in the process.
func TestMadeTwice(t *testing.T) {
	var before map[string]string
	for range 3 {
		texts := map[string]string{}
		for _, args := range []string{"completion bash", "completion zsh", "completion fish", "completion powershell", "man", "help", "help check"} {
			var out bytes.Buffer
			if status := Run(append([]string{"stave"}, strings.Fields(args)...), nil, &out, &out); status != 0 || out.Len() == 0 {
				t.Fatalf("%s: status %d, %s", args, status, out.String())
			}
			texts[args] = out.String()
			if before != nil && before[args] != texts[args] {
				t.Errorf("%s is another text the next time", args)
			}
		}
		before = texts
	}
}
