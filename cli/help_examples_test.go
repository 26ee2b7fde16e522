//go:build unix

package cli_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/redisserver"
)

// TestHelpExamples runs the examples of the help of every sub-command, as they stand there but for exampleNames, with a
// shell, in a directory that has what they use. The examples of one command run one after another in one directory. A
// command without an example fails.
func TestHelpExamples(t *testing.T) {
	x := newExampleMachine(t)
	commands := helpCommands(t)
	if len(commands) < 20 {
		t.Fatalf("the help lists %q", commands)
	}
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			examples := helpExamples(t, command)
			if len(examples) == 0 {
				t.Fatalf("stave %s --help has no example", command)
			}
			dir := x.room(t, exampleBefore[command])
			for _, example := range examples {
				x.run(t, dir, command, example)
			}
		})
	}
}

// exampleNames are the names in examples that cannot be what they are on every machine. REDIS and SERVER are the
// addresses of a redis-server and of a stave serve, FREE is one at which nothing listens.
var exampleNames = []struct{ command, from, to string }{
	{"", "/mnt/", "mnt/"},
	{"", "/var/lib/", "var/"},
	{"", "/usr/local/share/", "share/"},
	{"", "redis://127.0.0.1:6379", "REDIS"},
	{"", "redis-cli", "redis-cli -s REDIS-SOCKET"},
	{"", "/run/stave.sock", "SERVER-SOCKET"},
	{"serve", "127.0.0.1:6380", "FREE"},
	{"serve", "127.0.0.1:6381", "FREE"},
	{"serve", "127.0.0.1:8080", "FREE"},
	{"", "127.0.0.1:6380", "SERVER"},
	{"top", "-p 6380", "-p SERVER-PORT"},
	{"cli", "-p 6380", "-p SERVER-PORT"},
	{"tail", "--since 4711", "--since 3"},
	{"bench", "-n 1000000", "-n 100"},
}

// exampleBefore makes what the examples of a command need beyond the directory that all have.
var exampleBefore = map[string]string{
	"orphans": `mkdir data/orphans && printf '*2\r\n$4\r\nECHO\r\n$163\r\n{"version":1,"replid":"2c1f00112233445566778899aabbccddeeff0011","from":4711,"to":4810,"before":300,"commands":2,"time":"2026-11-29T00:00:00Z","crc32c":1027894747}\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$6\r\nuser:1\r\n$12\r\nAda Lovelace\r\n*2\r\n$4\r\nINCR\r\n$6\r\nvisits\r\n*1\r\n$4\r\nEXEC\r\n' > data/orphans/2c1f00112233445566778899aabbccddeeff0011-4411.resp`,
	"restore": "stave backup data - | gzip > data.tar.gz && stave backup data mnt/backups/tuesday && rm -r data",
	"serve":   "cat stave.conf >> settings && mv settings stave.conf",
}

// exampleForever are the examples that go on until they are interrupted: by what they begin, what they print when they
// work, and their status after Ctrl-C.
var exampleForever = []struct {
	begin, prints string
	status        int
}{
	{"stave serve ", ` ready on `, 0},
	{"stave tail data --since 4711 --follow", `"key":"user:2"`, 0},
	{"stave top -p", `(?m)^ops|ops/s|operations`, 0},
	{"stave stats data --watch", `(?m)^namespace `, 0},
	{"stave exec -a 127.0.0.1:6380 -r 60", `(?m)^0\n`, 130},
}

// helpCommands are the sub-commands that the help lists.
func helpCommands(t *testing.T) (names []string) {
	t.Helper()
	text, _, _ := run("", "help")
	_, text, _ = strings.Cut(text, "COMMANDS:\n")
	text, _, _ = strings.Cut(text, "\n\n")
	for line := range strings.Lines(text) {
		if name := strings.Fields(line)[0]; name != "help," {
			names = append(names, name)
		}
	}
	return names
}

// helpExamples are the lines of a command's help that are set in and name the program. A line that is set in and is
// neither an example nor data is an error, for it may be an example with a mistake.
func helpExamples(t *testing.T, command string) (examples []string) {
	t.Helper()
	text, stderr, status := run("", command, "--help")
	if status != 0 || stderr != "" {
		t.Fatalf("stave %s --help: status %d, %s", command, status, stderr)
	}
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "      ")
		switch {
		case !ok || line == "" || line[0] == ' ' || line[0] == '{':
		case regexp.MustCompile(`(^|\| )stave ` + command + `\b`).MatchString(line):
			examples = append(examples, line)
		default:
			t.Errorf("stave %s --help: not an example of the command: %s", command, line)
		}
	}
	return examples
}

// An exampleMachine has the program in its path, and servers.
type exampleMachine struct {
	bash, bin, sample string
	names             map[string]string // REDIS and the like
	redisOf           string            // the command whose redis-server it is
}

// newExampleMachine makes the program, which is this test, and the directory of which each command gets a copy.
func newExampleMachine(t *testing.T) *exampleMachine {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	short, err := os.MkdirTemp("", "x") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	x := &exampleMachine{bash: bash, bin: t.TempDir(), sample: t.TempDir(), names: map[string]string{"FREE": "127.0.0.1:0"}}
	program, err := os.Executable()
	if err == nil {
		err = os.Symlink(program, filepath.Join(x.bin, "stave"))
	}
	if err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("../docs/stave.conf")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"settings":                              string(settings), // with stave.conf after it, for serve
		"stave.conf":                            "dir data\nport 0\nunixsocket " + filepath.Join(short, "c") + "\n",
		"people.csv":                            "id,name,born\n3,Cy,1990\n4,Di,\n",
		"scores.csv":                            "game,player,points\nchess,Ada,10\nchess,Bob,20\n",
		"picture.png":                           "\x89PNG\r\n\x1a\n\x00",
		"script.lua":                            "return redis.call('TYPE', KEYS[1])\n",
		"commands":                              "SET a 1\nINCR a\n",
		"commands.txt":                          "SET greeting hi\nHSET user:1 name Ada\nHSET user:2 name Bob\nZADD board 1 Ada\nSADD tags a b\nXADD log 1-1 a b\nSET gone 1 PX 3600000\n",
		"appendonlydir/appendonly.aof.manifest": "file appendonly.aof.1.incr.aof seq 1 type i\n",
	} {
		path := filepath.Join(x.sample, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	x.must(t, x.sample, `stave exec --dir data < commands.txt && stave export data > keys.jsonl && stave export data --format rdb > dump.rdb
		stave export data --match 'user:*' --format aof > appendonlydir/appendonly.aof.1.incr.aof
		mkdir -p mnt/backups mnt/disk var share/man/man1 .zfunc .local/share/bash-completion/completions .config/fish/completions
		cp -r data stave-data; cp -r data var/stave`)
	for name, addr := range map[string]string{"SERVER": "127.0.0.1:0", "SERVER-SOCKET": filepath.Join(short, "s")} {
		running := x.start(t, t.TempDir(), "stave serve --dir d --addr "+addr, `ready on (\S+):`)
		x.names[name] = running.seen[1]
		t.Cleanup(func() {
			if status := running.interrupt(t); status != 0 {
				t.Errorf("%s: status %d, %s", running.line, status, running.output(t))
			}
		})
	}
	x.must(t, x.sample, "mkdir -p .config/stave && echo connection prod redis://"+x.names["SERVER"]+" > .config/stave/config")
	x.names["SERVER-PORT"] = x.names["SERVER"][strings.LastIndex(x.names["SERVER"], ":")+1:]
	return x
}

// room makes a copy of the sample.
func (x *exampleMachine) room(t *testing.T, before string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(x.sample)); err != nil {
		t.Fatal(err)
	}
	x.must(t, dir, before)
	return dir
}

// shell is a command of the shell in a directory, which is its home too. What it prints goes to a file.
func (x *exampleMachine) shell(t *testing.T, dir, line string) *exampleRun {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	r := &exampleRun{Cmd: exec.Command(x.bash, "-c", "set -o pipefail; unset STAVE_PASSWORD REDISCLI_AUTH STAVE_CLIENT_CONFIG XDG_CONFIG_HOME; "+line), line: line, out: out.Name()}
	r.Dir, r.Stdout, r.Stderr = dir, out, out
	r.Env = append(os.Environ(), "PATH="+x.bin+":"+os.Getenv("PATH"), "HOME="+dir, "PROFILE="+filepath.Join(dir, "profile.ps1"),
		"STAVE_TEST_AS_PROGRAM=1", "STAVE_DIR=", "STAVE_HISTFILE=", "TERM=dumb")
	return r
}

// must runs a line that prepares something.
func (x *exampleMachine) must(t *testing.T, dir, line string) {
	t.Helper()
	r := x.shell(t, dir, line)
	if err := r.Run(); err != nil {
		t.Fatalf("%s: %v, %s", line, err, r.output(t))
	}
}

// run runs one example, and fails the test unless it ends as it should.
func (x *exampleMachine) run(t *testing.T, dir, command, example string) {
	t.Helper()
	line := example
	for _, n := range exampleNames {
		if n.command == "" || n.command == command {
			line = strings.ReplaceAll(line, n.from, n.to)
		}
	}
	if strings.Contains(line, "REDIS") && !x.redis(t, command) {
		t.Logf("not run, for there is no Redis: %s", example)
		return
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(x.names))) { // the longer one of two that begin alike comes first
		line = strings.ReplaceAll(line, name, x.names[name])
	}
	for _, program := range strings.Split(line, "| ")[1:] {
		if name := strings.Fields(program)[0]; name != "stave" {
			if _, err := exec.LookPath(name); err != nil {
				t.Logf("not run, for there is no %s: %s", name, example)
				return
			}
		}
	}
	for _, f := range exampleForever {
		if strings.HasPrefix(example, f.begin) {
			r := x.start(t, dir, line, f.prints)
			if status := r.interrupt(t); status != f.status {
				t.Errorf("%s: status %d after Ctrl-C, want %d\n%s", example, status, f.status, r.output(t))
			}
			return
		}
	}
	r := x.shell(t, dir, line)
	if err := r.Run(); err != nil || regexp.MustCompile(`(?m)^stave: `).MatchString(r.output(t)) {
		t.Errorf("%s: %v\n%s", example, err, r.output(t))
	}
}

// redis makes sure that the examples of a command have a redis-server of their own. What reads it finds the keys of the
// sample.
func (x *exampleMachine) redis(t *testing.T, command string) bool {
	t.Helper()
	_, err := exec.LookPath("redis-server")
	if _, clientErr := exec.LookPath("redis-cli"); err != nil || clientErr != nil {
		return false
	}
	if x.redisOf == command {
		return true
	}
	redis := redisserver.Start(t, "")
	if command == "import" {
		x.must(t, x.sample, "stave export data --to "+redis.URL())
	}
	x.redisOf, x.names["REDIS"], x.names["REDIS-SOCKET"] = command, redis.URL(), redis.Socket
	return true
}

// An exampleRun is a line that the shell runs.
type exampleRun struct {
	*exec.Cmd
	line, out string
	seen      []string // what of the output has matched
}

// start starts a line that goes on, and returns when its output matches an expression.
func (x *exampleMachine) start(t *testing.T, dir, line, prints string) *exampleRun {
	t.Helper()
	r := x.shell(t, dir, "exec "+line)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	expression := regexp.MustCompile(prints)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if r.seen = expression.FindStringSubmatch(r.output(t)); r.seen != nil {
			return r
		}
		if time.Since(began) > time.Minute {
			r.Process.Kill()
			r.Wait()
			t.Fatalf("%s: it does not print what matches %s:\n%s", line, prints, r.output(t))
		}
	}
}

// interrupt is Ctrl-C. It returns the status.
func (r *exampleRun) interrupt(t *testing.T) int {
	t.Helper()
	if err := r.Process.Signal(syscall.SIGINT); err != nil {
		t.Errorf("%s has ended by itself: %v", r.line, err)
	}
	if exit := (*exec.ExitError)(nil); errors.As(r.Wait(), &exit) {
		return exit.ExitCode()
	}
	return 0
}

// output is what it has printed by now.
func (r *exampleRun) output(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
