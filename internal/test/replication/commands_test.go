package replication_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// randomCommand is a command on one of few keys, of which some are refused.
func randomCommand(rng *rand.Rand) []string {
	n := func(most int) string { return strconv.Itoa(rng.IntN(most)) }
	key := func(typ string) string {
		if rng.IntN(40) == 0 {
			typ = []string{"string", "list", "set", "hash", "zset", "stream"}[rng.IntN(6)] // wrong type, or moved to another name
		}
		return typ + ":" + n(4)
	}
	id := func() string { return n(5) + "-" + n(50) }
	if rng.IntN(60) == 0 { // what is inserted into a long list gets a sub-index
		push := []string{"RPUSH", key("list")}
		for range 60 {
			push = append(push, n(20))
		}
		return push
	}
	of := [][]string{
		{"SET", key("string"), n(1000)}, {"SET", key("string"), n(1000), "PX", strconv.Itoa(1 + rng.IntN(50))}, {"APPEND", key("string"), n(1000)},
		{"SETRANGE", key("string"), n(70000), n(1000)}, {"INCR", key("string")}, {"SETBIT", key("string"), n(3000), n(2)}, {"GETEX", key("string"), "PX", "30"}, {"GETDEL", key("string")},
		{"RPUSH", key("list"), n(9), n(9)}, {"LPUSH", key("list"), n(9)}, {"LPOP", key("list")}, {"RPOP", key("list"), "2"}, {"LINSERT", key("list"), "BEFORE", n(9), n(9)},
		{"LREM", key("list"), n(3), n(9)}, {"LTRIM", key("list"), "1", []string{"8", "-2", "-2"}[rng.IntN(3)]}, {"LSET", key("list"), n(5), n(9)}, {"LMOVE", key("list"), key("list"), "LEFT", "RIGHT"},
		{"SADD", key("set"), n(20), n(20)}, {"SREM", key("set"), n(20)}, {"SPOP", key("set")}, {"SMOVE", key("set"), key("set"), n(20)}, {"SDIFFSTORE", key("set"), key("set"), key("set")},
		{"HSET", key("hash"), n(20), n(100)}, {"HDEL", key("hash"), n(20)}, {"HINCRBY", key("hash"), n(20), n(5)}, {"HINCRBYFLOAT", key("hash"), n(20), "0.5"}, {"HSETNX", key("hash"), n(20), n(5)},
		{"ZADD", key("zset"), n(9), n(20)}, {"ZADD", key("zset"), "GT", "CH", n(9), n(20)}, {"ZINCRBY", key("zset"), "0.25", n(20)}, {"ZREM", key("zset"), n(20)}, {"ZPOPMAX", key("zset")},
		{"ZREMRANGEBYRANK", key("zset"), "0", "1"}, {"ZUNIONSTORE", key("zset"), "2", key("zset"), key("set")},
		{"XADD", key("stream"), "*", n(9), n(9)}, {"XADD", key("stream"), id(), n(9), n(9)}, {"XADD", key("stream"), "MAXLEN", n(20), "*", n(9), n(9)}, {"XDEL", key("stream"), id()},
		{"XTRIM", key("stream"), "MINID", id()}, {"XGROUP", "CREATE", key("stream"), "g" + n(2), "0", "MKSTREAM"}, {"XGROUP", "DESTROY", key("stream"), "g" + n(2)},
		{"XREADGROUP", "GROUP", "g" + n(2), "c" + n(3), "COUNT", n(4), "STREAMS", key("stream"), ">"}, {"XACK", key("stream"), "g" + n(2), id(), id()},
		{"XCLAIM", key("stream"), "g" + n(2), "c" + n(3), "0", id(), id()}, {"XAUTOCLAIM", key("stream"), "g" + n(2), "c" + n(3), "0", "0"}, {"XGROUP", "DELCONSUMER", key("stream"), "g" + n(2), "c" + n(3)},
		{"XSETID", key("stream"), "9999999999999-" + n(9)}, {"XGROUP", "SETID", key("stream"), "g" + n(2), id()},
		{"PEXPIRE", key("hash"), n(60)}, {"EXPIRE", key("list"), "100"}, {"PERSIST", key("list")}, {"DEL", key("zset")}, {"RENAME", key("list"), key("list")},
		{"COPY", key("stream"), key("stream"), "REPLACE"}, {"MOVE", key("set"), n(3)}, {"SELECT", n(3)}, {"SELECT", "0"}, {"SWAPDB", n(3), n(3)}, {"SORT", key("list"), "ALPHA", "STORE", key("list")},
		{"EVAL", "redis.call('SADD', KEYS[1], ARGV[1]); redis.call('HSET', KEYS[2], ARGV[1], 1); return redis.call('INCR', KEYS[3])", "3", key("set"), key("hash"), key("string"), n(20)},
		{"MULTI"}, {"MULTI"}, {"EXEC"}, {"EXEC"}, {"EXEC"}, {"PUBLISH", "c", n(9)}, {"GET", key("string")}, {"PFADD", "hll:" + n(3), n(100)}, {"PFMERGE", "hll:0", "hll:1"}, {"PFCOUNT", "hll:0"},
	}
	if rng.IntN(400) == 0 {
		return []string{[]string{"FLUSHDB", "FLUSHALL"}[rng.IntN(2)]}
	}
	return of[rng.IntN(len(of))]
}

// work executes random commands of several clients at one address, each in pipelines.
func work(t *testing.T, address string, rng *rand.Rand, clients, commands int) {
	t.Helper()
	var running sync.WaitGroup
	for range clients {
		own := rand.New(rand.NewPCG(rng.Uint64(), 2))
		running.Go(func() {
			c := dial(t, address)
			for done := 0; done < commands/clients; {
				var some [][]string
				for range 1 + own.IntN(30) {
					some = append(some, randomCommand(own))
				}
				c.pipeline(some...)
				done += len(some)
			}
		})
	}
	running.Wait()
}

// expireAll waits until a master has deleted what random commands let expire. It is asked for it, since Redis deletes what it
// is asked for.
func expireAll(master *client) {
	master.t.Helper()
	time.Sleep(80 * time.Millisecond)
	await(master.t, "the master deletes what has expired", func() bool {
		shown, held := 0, 0
		for n := range 3 {
			master.must("SELECT", strconv.Itoa(n))
			keys := master.pipeline([]string{"KEYS", "*"})[0].Items
			for _, key := range keys {
				master.must("EXISTS", string(key.Text))
			}
			size, err := strconv.Atoi(master.must("DBSIZE"))
			if err != nil {
				master.t.Fatal(err)
			}
			shown, held = shown+len(keys), held+size
		}
		master.must("SELECT", "0")
		return shown == held
	})
}

// prepare makes keys of all types in two databases, and a library.
func prepare(c *client) {
	c.t.Helper()
	for _, args := range [][]string{
		{"SET", "large", strings.Repeat("0123456789", 9_000)}, {"SETRANGE", "sparse", "200000", "end"}, {"SET", "timed", "v", "PX", "1000000"},
		{"RPUSH", "fruits", "a", "b", "c"}, {"SADD", "tags", "x", "y"}, {"HSET", "user", "name", "n", "age", "3"}, {"ZADD", "scores", "0.1", "a", "-inf", "b"},
		{"XADD", "events", "1-1", "f", "v"}, {"XADD", "events", "2-1", "f", "v"}, {"XGROUP", "CREATE", "events", "workers", "0"},
		{"XREADGROUP", "GROUP", "workers", "w1", "COUNT", "1", "STREAMS", "events", ">"}, {"XDEL", "events", "2-1"},
		{"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('twice', function(keys, args) return redis.call('APPEND', keys[1], args[1]) end)"},
		{"FCALL", "twice", "1", "appended", "xy"}, {"SELECT", "1"}, {"SET", "other", "database"}, {"SELECT", "0"},
	} {
		c.must(args...)
	}
}

// everything is a script of commands of all kinds, whose keys begin with prefix.
func everything(prefix string) [][]string {
	k := func(name string) string { return prefix + name }
	long := strings.Repeat("0123456789", 9000)
	return [][]string{
		{"SET", k("string"), "v"}, {"SETRANGE", k("long"), "5", long}, {"APPEND", k("long"), "end"}, {"SETBIT", k("bits"), "1000", "1"},
		{"INCRBYFLOAT", k("float"), "1.1"}, {"PFADD", k("hll"), "a", "b", "c"}, {"SET", k("binary"), "\x00\xff\r\n"},
		{"RPUSH", k("list"), "a", "b", "c", "d"}, {"LPUSH", k("list"), "z"}, {"LINSERT", k("list"), "BEFORE", "b", "x"}, {"LREM", k("list"), "1", "c"},
		{"SADD", k("set"), "a", "b", "c"}, {"SPOP", k("set")}, {"SADD", k("numbers"), "1", "2", "3"},
		{"HSET", k("hash"), "f", "v", "g", "w"}, {"HINCRBYFLOAT", k("hash"), "n", "2.5"},
		{"ZADD", k("sorted"), "1", "a", "-inf", "b", "2.5", "c"}, {"ZINCRBY", k("sorted"), "0.1", "a"}, {"GEOADD", k("geo"), "13.3", "38.1", "Palermo"},
		{"XADD", k("stream"), "1-1", "f", "v"}, {"XADD", k("stream"), "*", "f", "w"}, {"XADD", k("stream"), "MAXLEN", "~", "100", "*", "g", "x"},
		{"XGROUP", "CREATE", k("stream"), "group", "0"}, {"XREADGROUP", "GROUP", "group", "alice", "COUNT", "2", "STREAMS", k("stream"), ">"},
		{"XACK", k("stream"), "group", "1-1"}, {"XGROUP", "CREATECONSUMER", k("stream"), "group", "bob"}, {"XAUTOCLAIM", k("stream"), "group", "bob", "0", "0"},
		{"XDEL", k("stream"), "1-1"}, {"XGROUP", "CREATE", k("empty"), "g", "$", "MKSTREAM"}, {"XSETID", k("empty"), "9-9"},
		{"SET", k("timed"), "v", "EX", "1000"}, {"EXPIRE", k("list"), "2000"}, {"SET", k("soon"), "v", "PX", "20"}, {"HSET", k("soonhash"), "f", "v"}, {"PEXPIRE", k("soonhash"), "15"},
		{"SET", k("persist"), "v", "EX", "100"}, {"PERSIST", k("persist")}, {"GETEX", k("string"), "EX", "500"},
		{"EVAL", "for i = 1, 100 do redis.call('RPUSH', KEYS[1], i) end redis.call('SELECT', 2) redis.call('SET', KEYS[2], 'x')", "2", k("scripted"), k("elsewhere")},
		{"FUNCTION", "LOAD", "REPLACE", "#!lua name=" + prefix + "lib\nredis.register_function('" + prefix + "f', function(keys, args) return redis.call('INCR', keys[1]) end)"},
		{"FCALL", prefix + "f", "1", k("called")},
		{"MULTI"}, {"SET", k("multi"), "1"}, {"SELECT", "5"}, {"SET", k("multi"), "2"}, {"INCR", k("counter")}, {"EXEC"}, {"SET", k("five"), "5"},
		{"MULTI"}, {"SWAPDB", "5", "6"}, {"SET", k("after"), "swap"}, {"EXEC"}, {"SWAPDB", "6", "7"}, {"SELECT", "9"}, {"SET", k("gone"), "1"}, {"FLUSHDB"}, {"SET", k("left"), "1"},
		{"SELECT", "0"}, {"COPY", k("hash"), k("copy"), "DB", "4"}, {"RENAME", k("numbers"), k("renamed")}, {"MOVE", k("renamed"), "4"},
		{"SORT", k("list"), "ALPHA", "STORE", k("sortedlist")}, {"ZRANGESTORE", k("range"), k("sorted"), "0", "1"}, {"SUNIONSTORE", k("union"), k("set")},
		{"PUBLISH", "channel", "message"}, {"BITOP", "NOT", k("notbits"), k("bits")}, {"GETDEL", k("float")}, {"UNLINK", k("binary")}, {"LPOP", k("list"), "2"},
		{"LMOVE", k("list"), k("moved"), "LEFT", "RIGHT"}, {"HDEL", k("hash"), "g"}, {"ZPOPMIN", k("sorted")}, {"SETEX", k("setex"), "300", "v"},
	}
}
