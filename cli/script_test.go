package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/internal/resp"
)

var update = flag.Bool("update", false, "rewrite what the scripts in testdata expect")

// TestScripts runs testdata/*.txt. A script reads like a terminal session in an
// empty directory:
//
//	# a comment
//	$ stave exec --dir d SET k v        a command; quotes as in the shell
//	OK                                  what it prints
//	! stave: ERR ...                    what it says on the standard error
//	[1]                                 its status, unless 0
//	$ stave import --dir d - <<END      its input is the lines up to END
//	$ stave export --dir d > file       its output goes to a file
//	$ write file <<END                  makes a file
//	$ append file "\x00"                appends bytes to a file
//	$ cat file                          prints one, quoted where it is binary
//	$ patch file OFFSET "bytes"         overwrites bytes; negative: from the end
//	$ flip file OFFSET                  flips a bit of one byte
//	$ truncate file SIZE                cuts a file off; negative: so much shorter
//	$ mkdir DIR                         makes a directory, with its parents
//	$ link PATH NEW                     makes a symbolic link to an absolute path
//	$ copy DIR NEW                      copies a directory
//	$ ls DIR                            lists the names in a directory
//	$ rm path                           removes a file or a directory
//	$ env NAME VALUE                    sets a variable for the rest of the script
//
// A line that starts with ~ is a regular expression for one line. With -update
// whatever does not match is rewritten; review the diff.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) == "help.txt" {
				contribIsCurrent(t, "../contrib")
			}
			t.Chdir(t.TempDir())
			t.Setenv("STAVE_DIR", "")
			got := runScriptFile(t, filepath.Base(file), string(text))
			if *update && got != string(text) {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// contrib are the files that are made from the list of commands, and how.
var contrib = map[string][]string{
	"man/stave.1": {"man"}, "completion/stave.bash": {"completion", "bash"}, "completion/_stave": {"completion", "zsh"},
	"completion/stave.fish": {"completion", "fish"}, "completion/stave.ps1": {"completion", "powershell"},
}

// contribIsCurrent compares them with what the program prints. -update writes them again.
func contribIsCurrent(t *testing.T, root string) {
	for name, args := range contrib {
		var stdout, stderr bytes.Buffer
		if status := cli.Run(append([]string{"stave"}, args...), nil, &stdout, &stderr); status != 0 {
			t.Fatalf("%v: %d %s", args, status, stderr.String())
		}
		path := filepath.Join(root, name)
		if *update {
			if err := os.WriteFile(path, stdout.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, stdout.Bytes()) {
			t.Errorf("%s is not what stave %s prints (%v): go test ./cli -run Scripts/help -update writes it", name, strings.Join(args, " "), err)
		}
	}
}

// runScriptFile runs a script and returns it with what the commands did.
func runScriptFile(t *testing.T, name, text string) string {
	var result strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		result.WriteString(line + "\n")
		if !strings.HasPrefix(line, "$ ") {
			if line != "" && line[0] != '#' {
				t.Fatalf("%s:%d: neither a comment nor a command: %s", name, i, line)
			}
			continue
		}
		where := fmt.Sprintf("%s:%d: %s", name, i, line)
		var input strings.Builder
		if command, end, ok := strings.Cut(line, " <<"); ok {
			line = command
			for ; i < len(lines) && lines[i] != end; i++ {
				input.WriteString(lines[i] + "\n")
				result.WriteString(lines[i] + "\n")
			}
			result.WriteString(end + "\n")
			i++
		}
		got := runStep(t, where, line[2:], input.String())
		start := i
		for i < len(lines) && lines[i] != "" && !strings.HasPrefix(lines[i], "$ ") && !strings.HasPrefix(lines[i], "# ") {
			i++
		}
		result.WriteString(compare(t, where, lines[start:i], got))
	}
	return result.String()
}

// runStep runs one command and returns the lines it is compared by.
func runStep(t *testing.T, where, command, input string) []string {
	t.Helper()
	command, toFile, _ := strings.Cut(command, " > ")
	args, err := resp.SplitLine([]byte(command))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = string(arg)
	}
	var stdout, stderr bytes.Buffer
	status := 0
	if words[0] == "stave" {
		status = cli.Run(words, strings.NewReader(input), &stdout, &stderr)
	} else {
		runFileStep(t, where, words, input, &stdout)
	}
	if toFile != "" {
		if err := os.WriteFile(toFile, stdout.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		stdout.Reset()
	}
	got := outputLines(stdout.String(), "")
	got = append(got, outputLines(stderr.String(), "! ")...)
	if status != 0 {
		got = append(got, fmt.Sprintf("[%d]", status))
	}
	return got
}

// runFileStep runs one of the commands that are not stave.
func runFileStep(t *testing.T, where string, words []string, input string, stdout *bytes.Buffer) {
	t.Helper()
	var err error
	switch words[0] {
	case "write":
		if err = os.MkdirAll(filepath.Dir(words[1]), 0o755); err == nil {
			err = os.WriteFile(words[1], []byte(input), 0o644)
		}
	case "same":
		err = sameFiles(words[1], words[2])
	case "append":
		var f *os.File
		if f, err = os.OpenFile(words[1], os.O_APPEND|os.O_WRONLY, 0); err == nil {
			_, err = f.WriteString(words[2])
			f.Close()
		}
	case "cat":
		var data []byte
		data, err = os.ReadFile(words[1])
		stdout.Write(data)
	case "patch":
		err = edit(words[1], words[2], func(f *os.File, at int64) error {
			_, err := f.WriteAt([]byte(words[3]), at)
			return err
		})
	case "flip":
		err = edit(words[1], words[2], func(f *os.File, at int64) error {
			b := make([]byte, 1)
			if _, err := f.ReadAt(b, at); err != nil {
				return err
			}
			b[0] ^= 1
			_, err := f.WriteAt(b, at)
			return err
		})
	case "truncate":
		err = edit(words[1], words[2], func(f *os.File, at int64) error { return f.Truncate(at) })
	case "mkdir":
		err = os.MkdirAll(words[1], 0o755)
	case "link":
		var to string
		if to, err = filepath.Abs(words[1]); err == nil {
			err = os.Symlink(to, words[2])
		}
	case "copy":
		err = os.CopyFS(words[2], os.DirFS(words[1]))
	case "ls":
		var entries []os.DirEntry
		entries, err = os.ReadDir(words[1])
		for _, entry := range entries {
			fmt.Fprintln(stdout, entry.Name())
		}
	case "rm":
		if _, err = os.Lstat(words[1]); err == nil {
			err = os.RemoveAll(words[1])
		}
	case "env":
		t.Setenv(words[1], words[2])
	default:
		t.Fatalf("%s: no such command", where)
	}
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
}

// sameFiles fails unless two directories have the same files.
func sameFiles(a, b string) error {
	of := func(dir string) (map[string]string, error) {
		files := map[string]string{}
		entries, err := os.ReadDir(dir)
		for _, entry := range entries {
			data, readErr := os.ReadFile(filepath.Join(dir, entry.Name()))
			files[entry.Name()] = string(data)
			err = errors.Join(err, readErr)
		}
		return files, err
	}
	first, err := of(a)
	second, err2 := of(b)
	if err == nil && err2 == nil && !maps.Equal(first, second) {
		err = fmt.Errorf("%s and %s differ", a, b)
	}
	return errors.Join(err, err2)
}

// edit opens a file and changes it at an offset, which counts from the end if it is negative.
func edit(name, offset string, change func(f *os.File, at int64) error) error {
	var at int64
	if _, err := fmt.Sscan(offset, &at); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return err
	} else if at < 0 {
		at += info.Size()
	}
	return change(f, at)
}

// status is the line that stands for an exit status.
var status = regexp.MustCompile(`^\[\d+\]$`)

// outputLines turns output into lines of a script. A line that would not be
// taken for output there, or is not printable, is quoted with a bar.
func outputLines(text, mark string) []string {
	if text == "" {
		return nil
	}
	rest, ended := strings.CutSuffix(text, "\n")
	lines := strings.Split(rest, "\n")
	if !ended {
		lines[len(lines)-1] += `\c` // no line break at the end, as echo writes it
	}
	for i, line := range lines {
		special := line == "" || strings.ContainsAny(line[:1], "$#!~|") || status.MatchString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0xfffd })
		if special {
			line = "|" + string(resp.AppendQuoted(nil, []byte(line)))
		}
		lines[i] = mark + line
	}
	return lines
}

// compare reports lines that differ from the expected ones, and returns the expectation as it
// should be.
func compare(t *testing.T, where string, want, got []string) string {
	t.Helper()
	var result strings.Builder
	different := len(want) != len(got)
	for i, line := range got {
		if i < len(want) {
			if matches(t, where, want[i], line) {
				line = want[i]
			} else {
				different = true
			}
		}
		result.WriteString(line + "\n")
	}
	if different && !*update {
		t.Errorf("%s\n--- got\n%s\n--- want\n%s", where, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return result.String()
}

func matches(t *testing.T, where, want, got string) bool {
	if expression, ok := strings.CutPrefix(want, "~ "); ok {
		r, err := regexp.Compile("^(?:" + expression + ")$")
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		return r.MatchString(got)
	}
	return want == got
}
