package replica_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/redisserver"
)

// TestFollow: a full synchronization, and what the master does after it.
func TestFollow(t *testing.T) {
	r := redisserver.StartMaster(t, "")
	master := dial(t, "unix", r.Socket)
	replica := startReplica(t)
	replica.must("SET", "old", "of the replica alone")
	master.must("SET", "a", "1")
	master.must("RPUSH", "list", "a", "b")
	replica.must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	master.must("SET", "b", "2")
	master.must("INCR", "a")
	master.must("SELECT", "3")
	master.must("SADD", "s", "x", "y")
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
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

// TestEverything: all types and ways to write, as a file, as a stream, and both again by a second synchronization.
func TestEverything(t *testing.T) {
	for _, counted := range []string{"yes", "no"} { // repl-diskless-sync: the file ends with a marker, or has a length
		t.Run("diskless "+counted, func(t *testing.T) {
			r := redisserver.StartMaster(t, "", "--repl-diskless-sync", counted)
			master := dial(t, "unix", r.Socket)
			master.pipeline(everything("file_")...)
			replica := startReplica(t)
			replica.must("REPLICAOF", "127.0.0.1", r.Port)
			awaitCaughtUp(t, master, replica)
			for _, reply := range master.pipeline(everything("stream_")...) {
				if reply.IsError() {
					t.Error(text(reply))
				}
			}
			time.Sleep(30 * time.Millisecond) // what is to expire does
			master.must("GET", "stream_soon")
			master.must("GET", "stream_soonhash")
			awaitCaughtUp(t, master, replica)
			wantSame(t, master, replica)
			replica.must("REPLICAOF", "NO", "ONE")
			replica.must("SET", "own", "1")
			replica.must("REPLICAOF", "127.0.0.1", r.Port)
			awaitCaughtUp(t, master, replica)
			wantSame(t, master, replica)
		})
	}
}
