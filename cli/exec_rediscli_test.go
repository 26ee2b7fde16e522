//go:build unix

package cli_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shapes are commands with replies of every shape, over keys that they make themselves.
var shapes = [][]string{
	{"PING"}, {"PING", "hello there"}, {"ECHO", ""}, {"ECHO", "\xff\"quoted\"\\\t\x1b[31m"}, {"ECHO", "two\nlines\r\n"}, {"ECHO", "grüße"},
	{"SET", "k", "v"}, {"GET", "k"}, {"GET", "none"}, {"SET", "k", "w", "NX"}, {"SET", "k", "w", "GET"}, {"STRLEN", "k"}, {"INCR", "n"}, {"DECRBY", "n", "9"},
	{"INCRBYFLOAT", "f", "10.5"}, {"APPEND", "k", "x"}, {"TYPE", "k"}, {"TYPE", "none"}, {"TTL", "k"}, {"OBJECT", "ENCODING", "n"}, {"MGET", "k", "none", "n"},
	{"DEL", "none"}, {"EXISTS", "k", "k"}, {"SETBIT", "b", "7", "1"}, {"BITFIELD", "b", "INCRBY", "u2", "100", "1", "OVERFLOW", "FAIL", "SET", "u2", "102", "9"},
	{"RPUSH", "l", "a", "", "with space", "\xfe", "e", "f", "g", "h", "i", "j", "k"}, {"LRANGE", "l", "0", "-1"}, {"LRANGE", "l", "5", "1"}, {"LPOP", "l"}, {"LPOP", "none"},
	{"LPOP", "none", "2"}, {"LPOS", "l", "nope"}, {"LMPOP", "1", "l", "LEFT", "COUNT", "2"}, {"BLPOP", "l", "0"}, {"BLPOP", "none", "0.01"}, {"LCS", "k", "f", "IDX"},
	{"HSET", "h", "field", "value"}, {"HGETALL", "h"}, {"HGETALL", "none"}, {"HKEYS", "h"}, {"HVALS", "none"}, {"HMGET", "h", "field", "none"}, {"HRANDFIELD", "h", "1", "WITHVALUES"},
	{"HSCAN", "h", "0"}, {"HINCRBYFLOAT", "h", "d", "1e3"}, {"SADD", "s", "one"}, {"SMEMBERS", "s"}, {"SMEMBERS", "none"}, {"SMISMEMBER", "s", "one", "two"}, {"SPOP", "none"},
	{"SINTERCARD", "1", "s"}, {"SSCAN", "s", "0", "COUNT", "100"}, {"ZADD", "z", "1.5", "a", "inf", "b", "-3", "c"}, {"ZADD", "z", "INCR", "1", "a"}, {"ZADD", "z", "NX", "INCR", "1", "a"},
	{"ZRANGE", "z", "0", "-1", "WITHSCORES"}, {"ZSCORE", "z", "b"}, {"ZSCORE", "z", "none"}, {"ZMSCORE", "z", "a", "none"}, {"ZRANK", "z", "none"}, {"ZRANK", "z", "c", "WITHSCORE"},
	{"ZRANDMEMBER", "z", "0"}, {"ZPOPMIN", "z"}, {"ZMPOP", "1", "z", "MAX"}, {"ZMPOP", "1", "none", "MAX"}, {"BZPOPMIN", "z", "0"}, {"ZSCAN", "none", "0"},
	{"GEOADD", "g", "13.361389", "38.115556", "Palermo"}, {"GEOPOS", "g", "Palermo", "none"}, {"GEODIST", "g", "Palermo", "Palermo"}, {"GEOHASH", "g", "Palermo"},
	{"GEOSEARCH", "g", "FROMMEMBER", "Palermo", "BYRADIUS", "1", "km", "WITHCOORD", "WITHDIST", "WITHHASH"}, {"PFADD", "p", "x"}, {"PFCOUNT", "p"},
	{"SCAN", "0", "MATCH", "none"}, {"KEYS", "none"}, {"SELECT", "3"}, {"SORT", "l", "ALPHA", "LIMIT", "0", "2"}, {"CLIENT", "GETNAME"}, {"CONFIG", "GET", "save"},
	{"COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"}, {"COMMAND", "INFO", "get", "nope"}, {"COMMAND", "DOCS", "nope"}, {"HELLO", "9"}, {"EXEC"},
	{"nonsense", "a"}, {"GET"}, {"INCR", "k"}, {"LPUSH", "k", "x"}, {"SET", "k", "v", "EX", "0"}, {"CLIENT", "nope"}, {"ZADD", "z", "nan", "m"}, {"SELECT", "99"}, {"FLUSHDB"}, {"DBSIZE"},
}

// TestOutputOfRedisCLI compares what redis-cli and stave exec print for the same commands, bare and with types, in both
// protocols. Errors stand elsewhere here, on the standard error, with the same words.
func TestOutputOfRedisCLI(t *testing.T) {
	client, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("redis-cli is not installed: nothing to compare with")
	}
	t.Setenv("STAVE_DIR", "")
	t.Setenv("STAVE_PASSWORD", "")
	addr, stop := serve(t, t.TempDir(), filepath.Join(t.TempDir(), "s"))
	defer stop()
	modes := [][]string{{"--no-raw"}, nil, {"-3"}, {"-3", "--no-raw"}}
	ways := [][]string{{"--addr", addr, "-n", "1"}, {"--dir", t.TempDir()}}
	if testing.Short() {
		modes, ways = modes[:1], ways[:1]
	}
	for _, mode := range modes {
		for _, command := range shapes {
			theirs, err := exec.Command(client, slices.Concat([]string{"-s", addr}, mode, command)...).Output()
			if err != nil {
				t.Fatalf("redis-cli %q: %v", command, err)
			}
			for _, from := range ways {
				ours, refusal, status := run("", slices.Concat([]string{"exec"}, from, mode, []string{"--"}, command)...)
				want := string(theirs)
				if status == 1 {
					ours = strings.TrimPrefix(refusal, "stave: ")
					want = strings.TrimRight(strings.TrimPrefix(want, "(error) "), "\n") + "\n"
				}
				if ours != want || status > 1 {
					t.Errorf("%v %q, %s: stave prints %q (status %d, %q), redis-cli %q", mode, command, from[0], ours, status, refusal, want)
				}
			}
		}
		ways = ways[:1] // a store of its own has shown enough
	}
}
