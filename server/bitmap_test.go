package server_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/server"
)

// Redis 7.0 looks at the key before the arguments; since 7.2 it is the other way round.
func TestBitmapRefusalsBeforeTheKey(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	const notInteger, syntax = "-ERR value is not an integer or out of range\r\n", "-ERR syntax error\r\n"
	ask(s, "LPUSH list x\r\n")
	for _, key := range []string{"none", "list"} {
		for cmd, want := range map[string]string{
			"BITCOUNT " + key + " x 1":        notInteger,
			"BITCOUNT " + key + " 1 x":        notInteger,
			"BITCOUNT " + key + " 1":          syntax,
			"BITCOUNT " + key + " 1 2 WORD":   syntax,
			"BITCOUNT " + key + " 1 2 BIT 3":  syntax,
			"BITPOS " + key + " 1 x":          notInteger,
			"BITPOS " + key + " 1 1 x":        notInteger,
			"BITPOS " + key + " 1 1 x WORD":   syntax,
			"BITPOS " + key + " 1 1 2 BIT 3":  syntax,
			"BITPOS " + key + " 2":            "-ERR The bit argument must be 1 or 0.\r\n",
			"BITFIELD " + key + " GET u64 0":  "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.\r\n",
			"GETBIT " + key + " -1":           "-ERR bit offset is not an integer or out of range\r\n",
			"SETBIT " + key + " 4294967296 1": "-ERR bit offset is not an integer or out of range\r\n",
		} {
			if got := ask(s, cmd+"\r\n"); got != want {
				t.Errorf("%s: %q, want %q", cmd, got, want)
			}
		}
	}
}

// TestRepeatedNamesTakeNoMemory: a request that names a long value many times has one of them in memory at a time, or
// as many as its reply may have.
func TestRepeatedNamesTakeNoMemory(t *testing.T) {
	v := newServer(t, openStore(t), &server.Options{MaxReply: 4 << 20})
	s := v.NewSession()
	defer s.Close()
	value := strings.Repeat("v", 1<<18)
	if got := ask(s, requestOf("SET", "k", value)+requestOf("HSET", "h", "f", value)+requestOf("RPUSH", "l", "1", "2", "3")); got != "+OK\r\n:1\r\n:3\r\n" {
		t.Fatal(got)
	}
	many := slices.Repeat([]string{"k"}, 1000)
	fields := slices.Repeat([]string{"f"}, 1000)
	gets := slices.Repeat([]string{"GET", "k*"}, 100_000)
	const tooLarge = "-ERR the reply is too large"
	for name, tt := range map[string]struct {
		request []string
		want    string
		most    int // MiB
	}{
		"BITOP OR":  {append([]string{"BITOP", "OR", "to"}, many...), ":262144\r\n", 40},
		"BITOP AND": {append([]string{"BITOP", "AND", "to"}, many...), ":262144\r\n", 40},
		"HMGET":     {append([]string{"HMGET", "h"}, fields...), tooLarge, 40},
		"HGETEX":    {append([]string{"HGETEX", "h", "FIELDS", "1000"}, fields...), tooLarge, 40},
		"SORT":      {append([]string{"SORT", "l"}, gets...), "", 160},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := ask(s, requestOf(tt.request...))
		runtime.ReadMemStats(&after)
		took := int(after.TotalAlloc-before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB allocated", name, took)
		if !strings.HasPrefix(got, tt.want) || took > tt.most {
			t.Errorf("%s: %d MiB allocated, %.100q", name, took, got)
		}
	}
}
