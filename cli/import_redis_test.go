package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

var redisKeys = flag.Int("redis.keys", 20_000, "how many keys of all types go from a running redis-server to a store, and to another one")

// startRedis starts a redis-server, and returns its URL and a way to ask it.
func startRedis(t *testing.T) (url string, ask func(in *bytes.Buffer, args ...string) string) {
	t.Helper()
	s := redisserver.Start(t, "")
	return s.URL(), func(in *bytes.Buffer, args ...string) string {
		var stdin io.Reader
		if in != nil {
			stdin = in
		}
		out, _ := s.CLI(stdin, args...)
		return strings.TrimSpace(out)
	}
}

// manyKeys are commands that make keys of every type, a third of them with a deadline, in two databases.
func manyKeys(t *testing.T, n int) *bytes.Buffer {
	r := chance.Rand(t)
	var out bytes.Buffer
	command := func(args ...any) {
		fmt.Fprintf(&out, "*%d\r\n", len(args))
		for _, a := range args {
			text := fmt.Sprint(a)
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(text), text)
		}
	}
	for i := range n {
		if i == n/2 {
			command("SELECT", 3)
		}
		key := fmt.Sprintf("k:%d:%c", i, r.IntN(256))
		elements := 1 + r.IntN(1<<r.IntN(7))
		switch i % 7 {
		case 0, 1:
			command("SET", key, strings.Repeat(string(rune(r.IntN(300))), r.IntN(1<<r.IntN(10))))
		case 2:
			for j := range elements {
				command("HSET", key, j, r.Uint64())
			}
		case 3:
			for j := range elements {
				command("RPUSH", key, fmt.Sprint("e", j))
			}
		case 4:
			for range elements {
				command("SADD", key, r.IntN(1000))
			}
		case 5:
			for j := range elements {
				command("ZADD", key, r.NormFloat64(), j)
			}
		case 6:
			for j := range 1 + elements/8 {
				command("XADD", key, fmt.Sprintf("%d-%d", j+1, r.IntN(9)), "f", r.Uint64())
			}
		}
		if r.IntN(3) == 0 {
			command("PEXPIREAT", key, 4102444800000+r.Int64N(1e9))
		}
	}
	return &out
}

// stave runs a command and returns its status and what it printed.
func stave(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = cli.Run(append([]string{"stave"}, args...), strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// TestRedisAndBack takes the keys of a running redis-server into a store and brings them to another one: the digest of
// all keys, values and deadlines is the same, and a comparison key by key finds no difference, and finds one that is
// made.
func TestRedisAndBack(t *testing.T) {
	first, ask := startRedis(t)
	second, askSecond := startRedis(t)
	n := *redisKeys
	if testing.Short() {
		n = min(n, 2000)
	}
	if text := ask(manyKeys(t, n), "--pipe"); !strings.Contains(text, "errors: 0") {
		t.Fatal(text)
	}
	dir := filepath.Join(t.TempDir(), "d")
	began := time.Now()
	if status, out, errs := stave("import", dir, "--from", first, "--quiet"); status != 0 || out+errs != "" {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	t.Logf("%d keys in: %v", n, time.Since(began))
	began = time.Now()
	if status, out, errs := stave("import", dir, "--from", first, "--verify", "--json"); status != 0 || errs != "" || !strings.Contains(out, `"different":0,"keys":`) {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	t.Logf("compared: %v", time.Since(began))
	began = time.Now()
	if status, out, errs := stave("export", dir, "--to", second); status != 0 || errs != "" {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	t.Logf("out: %v", time.Since(began))
	if got, want := askSecond(nil, "DEBUG", "DIGEST"), ask(nil, "DEBUG", "DIGEST"); got != want || len(got) != 40 {
		t.Errorf("digest %s, was %s", got, want)
	}
	ask(nil, "SET", "new", "1")
	ask(nil, "-n", "3", "SET", "k:other", "1")
	ask(nil, "SET", "timed", "1")
	if status, _, errs := stave("exec", "--dir", dir, "SET", "timed", "1", "EX", "1000"); status != 0 {
		t.Fatal(errs)
	}
	if status, _, errs := stave("exec", "--dir", dir, "SET", "new", "2"); status != 0 {
		t.Fatal(errs)
	}
	status, out, errs := stave("import", dir, "--from", first, "--verify")
	for _, want := range []string{"key new has another value", "key k:other is on one side only", "key timed has another deadline: none and 2"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not said: %s", want, errs)
		}
	}
	if status != 5 || !strings.Contains(out, "3 differ") {
		t.Errorf("%d %s", status, out)
	}
	if status, _, errs := stave("check", dir, "--quiet"); status != 0 {
		t.Errorf("check: %s", errs)
	}
}

// Options narrow an import; a key that a store cannot hold is named, and skipped if that is asked for.
func TestRedisImportOptions(t *testing.T) {
	from, ask := startRedis(t)
	ask(bytes.NewBufferString("SET user:1 a\nSET user:2 b\nSET other c\nHSET user:h f v\nSELECT 2\nSET user:3 d\n"))
	keys := func(dir string, args ...string) string {
		t.Helper()
		dir = filepath.Join(t.TempDir(), dir)
		if status, _, errs := stave(append([]string{"import", dir, "--quiet"}, args...)...); status != 0 {
			t.Fatalf("%v: %d %s", args, status, errs)
		}
		_, out, _ := stave("export", dir, "--sort")
		var list []string
		for line := range strings.Lines(out) {
			var key struct {
				DB  int    `json:"db"`
				Key string `json:"key"`
			}
			if err := json.Unmarshal([]byte(line), &key); err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprint(key.DB, "/", key.Key))
		}
		return strings.Join(list, " ")
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--from", from}, "0/other 0/user:1 0/user:2 0/user:h 2/user:3"},
		{[]string{"--from", from, "--match", "user:*", "--rate", "100000"}, "0/user:1 0/user:2 0/user:h 2/user:3"},
		{[]string{"--from", from, "--type", "hash"}, "0/user:h"},
	} {
		if got := keys("d", test.args...); got != test.want {
			t.Errorf("%v: %s, want %s", test.args[2:], got, test.want)
		}
	}
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"import", "d", "--from", "http://x"}, 2, "is no URL of a Redis"},
		{[]string{"import", "d", "--from", "redis://127.0.0.1:1"}, 3, "refused"},
		{[]string{"import", "d", "file", "--from", from}, 2, "there is no FILE"},
		{[]string{"import", "file", "--match", "x"}, 2, "--match needs --from"},
		{[]string{"import", "d", "--from", from, "--verify", "--state", "x"}, 2, "it has no --state"},
		{[]string{"export", "d", "--rate", "3"}, 2, "need --to"},
		{[]string{"export", "d", "--to", from, "--sort"}, 2, "neither --format nor --sort"},
		{[]string{"export", "nothing", "--to", from}, 3, "no such file"},
	} {
		if status, _, errs := stave(test.args...); status != test.status || !strings.Contains(errs, test.want) {
			t.Errorf("%v: %d %s", test.args, status, errs)
		}
	}
}

func okay(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// An import that is interrupted goes on from where its state says, and its last run has the rest.
func TestRedisImportGoesOn(t *testing.T) {
	from, ask := startRedis(t)
	var in bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&in, "SET key:%d %d\r\n", i, i)
	}
	ask(&in, "--pipe")
	dir := t.TempDir()
	store, state := filepath.Join(dir, "d"), filepath.Join(dir, "state")
	// What an interrupted import leaves: some pages, and their cursor.
	page := ask(nil, "SCAN", "0", "COUNT", "2000")
	cursor, _, _ := strings.Cut(page, "\n")
	run := ""
	for line := range strings.Lines(ask(nil, "INFO", "server")) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			run = strings.TrimSpace(id)
		}
	}
	if status, out, errs := stave("import", store, "--from", from, "--match", "none*", "--state", state, "--json"); status != 0 {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	var left map[string]any // of an import of other keys, and then of this one
	if err := json.Unmarshal(okay(os.ReadFile(state)), &left); err != nil || left["run"] != run || left["match"] != "none*" {
		t.Fatal(left, err)
	}
	left["database"], left["cursor"], left["done"] = 0, cursor, false
	leave := func() {
		if err := os.WriteFile(state, okay(json.Marshal(left)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	for _, other := range [][]string{{"import", store}, {"import", store + "2", "--match", "none*"}} {
		if status, _, errs := stave(append(other, "--from", from, "--state", state)...); status != 1 || !strings.Contains(errs, "another store, or of other keys") {
			t.Errorf("%q: %d %s", other, status, errs)
		}
	}
	left["match"] = ""
	leave()
	status, out, errs := stave("import", store, "--from", from, "--state", state, "--json")
	var result struct{ Keys int64 }
	if err := json.Unmarshal([]byte(out), &result); err != nil || status != 0 || result.Keys < 500 || result.Keys > 1500 {
		t.Fatalf("%d %s%s %v", status, out, errs, err)
	}
	if text, err := os.ReadFile(state); err != nil || !strings.Contains(string(text), `"done":true`) {
		t.Errorf("%s, %v", text, err)
	}
	status, out, errs = stave("import", store, "--from", from, "--state", state, "--json")
	if err := json.Unmarshal([]byte(out), &result); err != nil || status != 0 || result.Keys != 3000 || !strings.Contains(errs, "starting from the beginning") {
		t.Errorf("%d %s%s %v", status, out, errs, err)
	}
	if err := os.WriteFile(state, []byte("not JSON"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := stave("import", store, "--from", from, "--state", state); status != 1 || !strings.Contains(errs, "is not the state of an import") {
		t.Errorf("%d %s", status, errs)
	}
}

// Libraries of functions go with the keys both ways, unless keys are chosen, and --verify compares them; it also names
// the keys that only the store has.
func TestRedisLibrariesAndStrangers(t *testing.T) {
	from, ask := startRedis(t)
	to, askSecond := startRedis(t)
	dir := filepath.Join(t.TempDir(), "d")
	const text = "#!lua name=mine\nredis.register_function('f', function() return 42 end)"
	ask(nil, "FUNCTION", "LOAD", text)
	ask(bytes.NewBufferString("SET a 1\nSET b 2\nSELECT 4\nSET c 3\n"))
	verify := func(status int, want ...string) {
		t.Helper()
		got, out, errs := stave("import", dir, "--from", from, "--verify")
		if got != status {
			t.Errorf("%d %s%s", got, out, errs)
		}
		for _, w := range want {
			if !strings.Contains(out+errs, w) {
				t.Errorf("%q is not said: %s%s", w, out, errs)
			}
		}
	}
	if status, out, errs := stave("import", dir, "--from", from, "--match", "*"); status != 0 || strings.Contains(out, "librar") {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	verify(5, "library mine is on one side only", "1 differ")
	if status, out, errs := stave("import", dir, "--from", from); status != 0 || !strings.Contains(out, "3 keys, 1 library") {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	if _, out, _ := stave("exec", "--dir", dir, "FCALL", "f", "0"); !strings.Contains(out, "42") {
		t.Error(out)
	}
	verify(0, " 0 differ")
	if status, out, errs := stave("export", dir, "--to", to); status != 0 || !strings.Contains(out, "3 keys, 1 library") {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	if out := askSecond(nil, "FCALL", "f", "0"); strings.TrimSpace(out) != "42" {
		t.Error(out)
	}
	ask(nil, "FUNCTION", "LOAD", "REPLACE", strings.Replace(text, "42", "43", 1))
	ask(nil, "DEL", "a")
	ask(bytes.NewBufferString("SELECT 4\nDEL c\n")) // the database has no key left: INFO does not name it
	verify(5, "library mine has another text", "key a is in the store only", "key c is in the store only", "3 differ")
	ask(nil, "FUNCTION", "LOAD", "REPLACE", "#!lua name=mine\nredis.register_function{function_name='f', callback=function() return redis.setresp(4) end}")
	if status, _, errs := stave("import", dir, "--from", from, "--match", "b", "--verify"); status != 0 {
		t.Errorf("the keys that were chosen are equal: %d %s", status, errs)
	}
}
