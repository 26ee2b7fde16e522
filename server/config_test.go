package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// settingScripts are conversations about settings, whose errors are Redis's.
var settingScripts = map[string]string{
	"settings": `
		a: CONFIG SET timeout 99999999999
		a: CONFIG SET timeout x
		a: CONFIG SET timeout 10 timeout 20
		a: CONFIG SET timeout 10 nope 20
		a: CONFIG SET timeout 10 tcp-keepalive -1
		a: CONFIG GET timeout
		a: CONFIG SET timeout 10 tcp-keepalive 60
		a: CONFIG GET timeout TIMEOUT t?meout
		a: CONFIG GET tcp-keepalive
		a: CONFIG SET timeout 0 tcp-keepalive 300
		a: CONFIG SET timeout
		a: CONFIG SET timeout 1 tcp-keepalive
		a: CONFIG SET maxmemory x
		a: CONFIG SET maxmemory 100%
		a: CONFIG SET maxmemory -1
		a: CONFIG SET maxmemory 100mb
		a: CONFIG GET maxmemory
		a: CONFIG SET maxmemory 0
		a: CONFIG SET maxmemory-clients 5%
		a: CONFIG GET maxmemory-clients
		a: CONFIG SET maxmemory-clients 101%
		a: CONFIG SET maxmemory-clients 1x
		a: CONFIG SET maxmemory-policy nope
		a: CONFIG SET maxmemory-policy NOEVICTION
		a: CONFIG GET maxmemory-policy
		a: CONFIG SET maxmemory-samples 0
		a: CONFIG SET maxmemory-samples 3
		a: CONFIG SET appendonly nope
		a: CONFIG SET save abc
		a: CONFIG GET save
		a: CONFIG SET databases 3
		a: CONFIG SET dir /
		a: CONFIG SET dbfilename x
		a: CONFIG SET maxclients 0
		a: CONFIG SET maxclients x
		a: CONFIG SET client-output-buffer-limit nope
		a: CONFIG SET enable-debug-command yes
		a: CONFIG SET list-compress-depth -1
		a: CONFIG SET list-max-ziplist-size 7
		a: CONFIG GET list-max-listpack-size
		a: CONFIG SET list-max-listpack-size -2
		a: CONFIG SET slowlog-max-len -1
		a: CONFIG SET set-max-intset-entries -1
		a: CONFIG SET stream-node-max-bytes -1
		a: CONFIG SET hash-max-listpack-entries x
		a: CONFIG SET hash-max-ziplist-entries -1
		a: CONFIG SET lua-time-limit -1
		a: CONFIG SET latency-tracking-info-percentiles a
		a: CONFIG SET latency-tracking-info-percentiles 101
		a: CONFIG SET shutdown-on-sigterm nope
		a: CONFIG SET hz 20
		a: CONFIG SET loglevel nope
		a: CONFIG SET loglevel warning
		a: CONFIG GET loglevel
		a: CONFIG SET hash-max-listpack-entries 5 hash-max-ziplist-entries 6
		a: CONFIG SET a b c
		a: CONFIG GET a b
		a: CONFIG GET HASH-max-listp*-value hash-max-listpack-value
		a: CONFIG REWRITE`,
	"encodings follow their settings": `
		a: CONFIG SET hash-max-ziplist-entries 2 hash-max-listpack-value 10 set-max-intset-entries 2 zset-max-ziplist-entries 2 zset-max-listpack-value 10
		a: HSET h a 1 b 2
		a: OBJECT ENCODING h
		a: HSET h c 3
		a: OBJECT ENCODING h
		a: HSET h2 a 12345678901
		a: OBJECT ENCODING h2
		a: SADD s 1 2
		a: OBJECT ENCODING s
		a: ZADD z 1 a 2 b
		a: OBJECT ENCODING z
		a: ZADD z 3 c
		a: OBJECT ENCODING z
		a: ZADD z2 1 12345678901
		a: OBJECT ENCODING z2
		a: CONFIG SET hash-max-ziplist-entries 512 hash-max-listpack-value 64 set-max-intset-entries 512 zset-max-ziplist-entries 128 zset-max-listpack-value 64`,
}

func TestSettingsAgreeWithRedis(t *testing.T) {
	agreeWithRedis(t, settingScripts, regexp.MustCompile(`^$`))
}

// TestSettingsOfRedisAreKnown: whatever CONFIG GET * of redis-server lists.
func TestSettingsOfRedisAreKnown(t *testing.T) {
	redis := startRedis(t)
	all, err := redis.do([]string{"config", "get", "*"})
	if err != nil {
		t.Fatal(err)
	}
	peer := &stavePeer{newSession(t, openStore(t), nil)}
	for i := 0; i < len(all.Items); i += 2 {
		name := string(all.Items[i].Text)
		reply, err := peer.do([]string{"config", "get", name})
		if err != nil || len(reply.Items) != 2 {
			t.Errorf("%s is unknown", name)
		}
	}
}

// load writes a file of settings and loads it.
func load(t *testing.T, text string) (c *server.Config, path string, warnings []string, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "stave.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c = server.NewConfig()
	warnings, err = c.Load(path)
	return c, path, warnings, err
}

// TestConfigPrecedence: default, file, environment, flag.
func TestConfigPrecedence(t *testing.T) {
	c, _, warnings, err := load(t, "maxclients 1\ntimeout 1\nhz 20\nSAVE 900 1\nsave 300 10\nslowlog-max-len 1\nbind 127.0.0.1 -::1\n"+
		"client-output-buffer-limit pubsub 1mb 1kb 5\nclient-output-buffer-limit normal 1 2 3\nhash-max-ziplist-entries 3\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.HasSuffix(warnings[0], "stave.conf: 2 settings have no effect here: hz, save") {
		t.Errorf("%q", warnings)
	}
	warnings, err = c.Environment([]string{"HOME=/x", "STAVE_TIMEOUT=2", "STAVE_SLOWLOG_MAX_LEN=2", "STAVE_HZ=30", "STAVE_PASSWORD=x", "STAVE_DIR=", "STAVE_SERVER_CPULIST=1"})
	if err != nil || len(warnings) != 2 {
		t.Errorf("%q, %v", warnings, err)
	}
	if err := c.Set("slowlog-max-len", "3"); err != nil {
		t.Error(err)
	}
	s := newSession(t, openStore(t), &server.Options{Config: c, MaxClients: 77})
	for name, want := range map[string]string{
		"maxclients": "1", "timeout": "2", "slowlog-max-len": "3", "hz": "30", "save": "900 1 300 10", "tcp-keepalive": "300", "server_cpulist": "1",
		"client-output-buffer-limit": "normal 1 2 3 slave 0 0 0 pubsub 1048576 1024 5", "hash-max-listpack-entries": "3",
	} {
		if got := ask(s, "CONFIG GET "+name+"\r\n"); !strings.HasSuffix(got, fmt.Sprintf("$%d\r\n%s\r\n", len(want), want)) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestConfigRefusals: a wrong line is named, and nothing is taken.
func TestConfigRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"timeout 1\n\nmaxclient 3\n":              `stave.conf:3: unknown directive "maxclient": did you mean "maxclients"?`,
		"timeout x\n":                             `stave.conf:1: timeout: argument couldn't be parsed into an integer, not "x"`,
		"timeout 1 2\n":                           "stave.conf:1: timeout takes one argument, not 2",
		"timeout\n":                               "stave.conf:1: timeout takes one argument, not 0",
		"replicaof 1.2.3.4 x\n":                   "stave.conf:1: replicaof: \"1.2.3.4 x\" is not HOST PORT",
		"cluster-enabled maybe\n":                 "cluster-enabled: argument must be 'yes' or 'no'",
		"rename-command FLUSHALL \"\"\n":          `"rename-command" is not supported: commands have fixed names`,
		"loadmodule x.so\n":                       "there are no modules",
		"timeout \"1\n":                           "stave.conf:1: unbalanced quotes",
		"client-query-buffer-limit 1mb\n":         "cannot be lowered",
		"user bob on >x +@al ~*\nuser eve +@al\n": "stave.conf:2: user: ",
		"user default on >p4ss ~* +@all\nport 0\nuser #x on #p4ss\n": "stave.conf:3: user: ",
		"client-output-buffer-limit x 1 2 3":                         "Invalid client class",
	} {
		c, _, _, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if c.IsSet("timeout") {
			t.Errorf("%q: a part is taken", text)
		}
	}
	c := server.NewConfig()
	for _, pair := range []string{"STAVE_TIMEUOT=1", "STAVE_TIMEOUT=x", "STAVE_MAXMEMORY_POLICY=lru"} {
		if _, err := c.Environment([]string{pair}); err == nil || !strings.HasPrefix(err.Error(), "$STAVE_") {
			t.Errorf("%s: %v", pair, err)
		}
	}
	if err := c.Set("requirepass", "secret"); err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("a password is repeated: %v", err)
	}
}

// TestConfigRewrite: what has been set is in the file, comments and order stay.
func TestConfigRewrite(t *testing.T) {
	c, path, _, err := load(t, "# ours\ntimeout 5 \n\n# saves\nsave 900 1\nsave 300 10\nslowlog-max-len 9\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set("port", "7000"); err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), &server.Options{Config: c})
	s := v.NewSession()
	if got := ask(s, "CONFIG REWRITE\r\n"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	ask(s, "CONFIG SET timeout 6 save '60 1' notify-keyspace-events KEA maxmemory-clients 50mb list-max-ziplist-size 7\r\n")
	ask(s, "CONFIG SET maxclients 50 maxclients 60\r\n") // refused, so nothing of it
	if got := ask(s, "CONFIG REWRITE\r\n"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	text, err := os.ReadFile(path)
	want := "# ours\ntimeout 6\n\n# saves\nsave 60 1\nslowlog-max-len 9\n# Generated by CONFIG REWRITE\nport 7000\nlist-max-listpack-size 7\nmaxmemory-clients 52428800\nnotify-keyspace-events AKE\n"
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	again := server.NewConfig()
	if _, err := again.Load(path); err != nil || again.Get("timeout") != "6" || again.Get("notify-keyspace-events") != "AKE" {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("nope 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(s, "CONFIG REWRITE\r\n"); !strings.HasPrefix(got, "-ERR Rewriting config file") || strings.Contains(got, path) {
		t.Error(got)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "nope 1\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestReload: what the file says otherwise than before holds; what a client has set holds against a line that stays.
func TestReload(t *testing.T) {
	c, path, _, err := load(t, "timeout 5\nslowlog-max-len 9\nmaxclients 50\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set("maxclients", "40"); err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), &server.Options{Config: c})
	s := v.NewSession()
	hooked := 0
	v.OnReload(func() error { hooked++; return nil })
	get := func(name string) string {
		t.Helper()
		parts := strings.Split(ask(s, "CONFIG GET "+name+"\r\n"), "\r\n")
		return parts[len(parts)-2]
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask(s, "CONFIG SET timeout 7 hz 20\r\n")
	write("timeout 5\nslowlog-max-len 10\nmaxclients 60\nport 1\n")
	if err := v.Reload(); err != nil {
		t.Error(err)
	}
	if get("timeout") != "7" || get("slowlog-max-len") != "10" || get("maxclients") != "40" || get("hz") != "20" {
		t.Error(get("timeout"), get("slowlog-max-len"), get("maxclients"), get("hz"))
	}
	write("timeout 8\nslowlog-max-len nope\n")
	if err := v.Reload(); err == nil || !strings.Contains(err.Error(), "the settings stay as they are") || get("timeout") != "7" {
		t.Error(err, get("timeout"))
	}
	write("timeout 8\n")
	if err := v.Reload(); err != nil || get("timeout") != "8" || get("slowlog-max-len") != "128" || hooked != 3 {
		t.Error(err, get("timeout"), get("slowlog-max-len"), hooked)
	}
}

// TestWatchConfig: a change of the file is noticed, before the watch begins, in place, or by a rename.
func TestWatchConfig(t *testing.T) {
	c, path, _, err := load(t, "timeout 1\n")
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), &server.Options{Config: c})
	s := v.NewSession()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	inPlace := func(text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	for i, replace := range []func(text string) error{
		func(text string) error {
			err := inPlace(text)
			go func() { done <- v.WatchConfig(ctx) }()
			return err
		},
		inPlace,
		func(text string) error {
			if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
				return err
			}
			return os.Rename(path+"~", path)
		},
	} {
		want := fmt.Sprint(i + 10)
		if err := replace("timeout " + want + "\n"); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); !strings.Contains(ask(s, "CONFIG GET timeout\r\n"), "\r\n"+want+"\r\n"); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not noticed: change", i)
			}
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
