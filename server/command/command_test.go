package command_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
)

var table = command.NewTable(command.Data())

// host is the smallest that handlers work on.
func host(t *testing.T) *command.Host {
	t.Helper()
	s, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &command.Host{Store: s, Databases: 16, Context: context.Background(), Encodings: new(command.Encodings)}
}

// ask runs a request in a transaction of its own and returns its reply, an error as "-" and its text.
func ask(h *command.Host, version int, request string) string {
	var out resp.Writer
	out.SetVersion(version)
	var args command.Args
	for _, word := range strings.Fields(request) {
		args = append(args, []byte(strings.ReplaceAll(word, `""`, "")))
	}
	cmd, err := table.Resolve(args)
	if err == nil {
		err = h.Store.Update(func(tx *db.Tx) error {
			return cmd.Run(&command.Call{Host: h, Command: cmd, Args: args, Tx: tx, Out: &out})
		})
	}
	if err != nil {
		return "-" + err.Error()
	}
	return strings.ReplaceAll(string(out.Bytes()), "\r\n", " ")
}

// Replies differ between the protocols where RESP3 has a type of its own: null, double, map, set, pairs.
func TestReplyShapes(t *testing.T) {
	h := host(t)
	for _, request := range []string{"SET s v", "HSET h f v", "SADD t m", "ZADD z 1.5 a 2 b", "RPUSH l x y", "XADD x 1-1 f v"} {
		if got := ask(h, 2, request); got[0] == '-' {
			t.Fatal(request, got)
		}
	}
	for _, c := range []struct{ request, two, three string }{
		{"GET none", "$-1 ", "_ "},
		{"MGET s none", "*2 $1 v $-1 ", "*2 $1 v _ "},
		{"HGETALL h", "*2 $1 f $1 v ", "%1 $1 f $1 v "},
		{"HGETALL none", "*0 ", "%0 "},
		{"HRANDFIELD h 1 WITHVALUES", "*2 $1 f $1 v ", "*1 *2 $1 f $1 v "},
		{"HRANDFIELD none", "$-1 ", "_ "},
		{"SMEMBERS t", "*1 $1 m ", "~1 $1 m "},
		{"SUNION t none", "*1 $1 m ", "~1 $1 m "},
		{"SMISMEMBER t m n", "*2 :1 :0 ", "*2 :1 :0 "},
		{"ZSCORE z a", "$3 1.5 ", ",1.5 "},
		{"ZSCORE z none", "$-1 ", "_ "},
		{"ZRANGE z 0 -1 WITHSCORES", "*4 $1 a $3 1.5 $1 b $1 2 ", "*2 *2 $1 a ,1.5 *2 $1 b ,2 "},
		{"ZADD z XX INCR 1 none", "$-1 ", "_ "},
		{"ZRANK z none WITHSCORE", "*-1 ", "_ "},
		{"LPOP none 2", "*-1 ", "_ "},
		{"LMPOP 1 none LEFT", "*-1 ", "_ "},
		{"XRANGE x - +", "*1 *2 $3 1-1 *2 $1 f $1 v ", "*1 *2 $3 1-1 *2 $1 f $1 v "},
		{"XREAD STREAMS x 0", "*1 *2 $1 x *1 *2 $3 1-1 *2 $1 f $1 v ", "%1 $1 x *1 *2 $3 1-1 *2 $1 f $1 v "},
		{"LCS s none IDX", "*4 $7 matches *0 $3 len :0 ", "%2 $7 matches *0 $3 len :0 "},
		{"SCAN 0 MATCH s", "*2 $1 0 *1 $1 s ", "*2 $1 0 *1 $1 s "},
		{"HSCAN none 0", "*2 $1 0 *0 ", "*2 $1 0 *0 "},
	} {
		if got := ask(h, 2, c.request); got != c.two {
			t.Errorf("%s in RESP2: %q, want %q", c.request, got, c.two)
		}
		if got := ask(h, 3, c.request); got != c.three {
			t.Errorf("%s in RESP3: %q, want %q", c.request, got, c.three)
		}
	}
}

// What is wrong with a request is said in Redis's words and in its order; a request that is refused writes nothing.
func TestRefusals(t *testing.T) {
	h := host(t)
	for _, request := range []string{"SET s v", "RPUSH l x"} {
		ask(h, 2, request)
	}
	before := h.Store.Stats().Sequence
	const notInteger, syntax = "-ERR value is not an integer or out of range", "-ERR syntax error"
	for request, want := range map[string]string{
		"nope":                           "-ERR unknown command 'nope', with args beginning with: ",
		"GET":                            "-ERR wrong number of arguments for 'get' command",
		"OBJECT nope k":                  "-ERR unknown subcommand 'nope'. Try OBJECT HELP.",
		"SET k v NX XX":                  syntax,
		"SET k v EX 1 PX 1":              syntax,
		"SET k v KEEPTTL EX 1":           syntax,
		"SET k v EX":                     syntax,
		"SET k v EX 0":                   "-ERR invalid expire time in 'set' command",
		"SET k v EX 9223372036854775807": "-ERR invalid expire time in 'set' command",
		"SET k v EX 1.5":                 notInteger,
		"GETEX s EX 1 PERSIST":           syntax,
		"GETEX none EX x":                "$-1 ", // the deadline is read only if the key exists
		"GETEX s EX x":                   notInteger,
		"INCRBY s +1":                    notInteger,
		"INCRBY s 01":                    notInteger,
		"SETRANGE k -1 v":                "-ERR offset is out of range",
		"SETRANGE k x v":                 notInteger,
		"HSET h f":                       "-ERR wrong number of arguments for 'hset' command",
		"HSET h f v g":                   "-ERR wrong number of arguments for 'hset' command",
		"HRANDFIELD none x":              notInteger,
		"HRANDFIELD none 1 WITH":         syntax,
		"HRANDFIELD none 9223372036854775807 WITHVALUES": "-ERR value is out of range",
		"LPOP none -1":              "-ERR value is out of range, must be positive",
		"LMPOP 0 l LEFT":            "-ERR numkeys should be greater than 0",
		"LMPOP 2 l LEFT":            syntax,
		"LMPOP 1 l UP":              syntax,
		"LMPOP 1 l LEFT COUNT 0":    "-ERR count should be greater than 0",
		"LMPOP 1 l LEFT COUNT 1 x":  syntax,
		"SINTERCARD 1 t LIMIT -1":   "-ERR LIMIT can't be negative",
		"ZADD z NX XX 1 m":          "-ERR XX and NX options at the same time are not compatible",
		"ZADD z GT NX 1 m":          "-ERR GT, LT, and/or NX options at the same time are not compatible",
		"ZADD z INCR 1 a 2 b":       "-ERR INCR option supports a single increment-element pair",
		"ZADD z nan m":              "-ERR value is not a valid float",
		"ZADD z 1":                  "-ERR wrong number of arguments for 'zadd' command",
		"ZRANGE none 0 1 LIMIT 0 1": "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
		"ZRANGE none a b BYSCORE":   "-ERR min or max is not a float",
		"ZRANGE none a b BYLEX":     "-ERR min or max not valid string range item",
		"SCAN x":                    "-ERR invalid cursor",
		"SCAN 0 COUNT 0":            syntax,
		"SCAN 0 COUNT x":            notInteger,
		"LCS l s NOPE":              "-ERR The specified keys must contain string values", // before the words
		"LCS s s LEN IDX":           "-ERR If you want both the length and indexes, please just use IDX.",
		"XADD x 0-0 f v":            "-ERR The ID specified in XADD must be greater than 0-0",
		"XADD x 1-1 f":              "-ERR wrong number of arguments for 'xadd' command",
		"XRANGE x ( +":              "-ERR Invalid stream ID specified as stream command argument",
		"LPUSH s v":                 "-WRONGTYPE Operation against a key holding the wrong kind of value",
	} {
		if got := ask(h, 2, request); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
	if now := h.Store.Stats().Sequence; now != before {
		t.Errorf("%d records written by requests that are refused", now-before)
	}
}
