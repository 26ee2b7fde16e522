package replication_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// What masters that are later than the redis-server of the tests send is in testdata: the bytes after PSYNC in NAME.stream,
// what they hold then in NAME.json. The redis-server in PATH, which may be a valkey-server, is recorded by
//
//	go test ./internal/test/replication -run TestRecorded -record NAME
var record = flag.String("record", "", "the name under which TestRecorded records the redis-server in PATH")

// recordedBefore is what a master does before its replica asks: its file has it.
var recordedBefore = [][]string{
	{"SET", "string", "v"}, {"RPUSH", "list", "a", "b"}, {"SADD", "set", "x", "1"}, {"ZADD", "zset", "0.5", "m"}, {"XADD", "stream", "1-1", "f", "v"},
	{"XGROUP", "CREATE", "stream", "g", "0"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">"},
	{"HSET", "plain", "f", "v"}, {"HSET", "few", "a", "1", "b", "2", "c", "3"}, {"HPEXPIREAT", "few", "4102444800000", "FIELDS", "1", "b"},
	{"EVAL", "for i = 1, 600 do redis.call('HSET', KEYS[1], i, i) end; return redis.call('HPEXPIREAT', KEYS[1], '4102444800123', 'FIELDS', 2, '7', '500')", "1", "many"},
	{"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('twice', function(keys, args) return redis.call('APPEND', keys[1], args[1]) end)"},
}

// recordedAfter is what it does then. What one of them does not know it refuses.
var recordedAfter = [][]string{
	{"HSETEX", "h", "EX", "1000000000", "FIELDS", "2", "d", "4", "e", "5"}, {"HSETEX", "h", "KEEPTTL", "FIELDS", "1", "d", "44"}, {"HSETEX", "h", "FIELDS", "1", "x", "y"},
	{"HSETEX", "absent", "NX", "PX", "1000000000000", "FIELDS", "1", "a", "1"}, {"HSETEX", "absent", "XX", "PXAT", "4102444800002", "FIELDS", "1", "b", "1"},
	{"HSETEX", "few", "FNX", "EXAT", "4102444800", "FIELDS", "1", "new", "1"}, {"HSETEX", "few", "FXX", "PXAT", "4102444800001", "FIELDS", "1", "new", "2"},
	{"HEXPIRE", "h", "2000000000", "XX", "GT", "FIELDS", "1", "d"}, {"HEXPIRE", "h", "2000000000", "NX", "FIELDS", "2", "d", "x"}, {"HPEXPIREAT", "h", "4102444800003", "XX", "LT", "FIELDS", "2", "d", "e"},
	{"HGETEX", "few", "PXAT", "4102444800004", "FIELDS", "1", "a"}, {"HGETEX", "few", "PERSIST", "FIELDS", "1", "b"}, {"HGETDEL", "few", "FIELDS", "1", "c"},
	{"HINCRBY", "h", "d", "1"}, {"HINCRBYFLOAT", "h", "e", "0.5"}, {"HPERSIST", "h", "FIELDS", "1", "e"}, {"HPEXPIREAT", "h", "1", "FIELDS", "1", "x"}, {"HSETEX", "h", "PXAT", "1", "FIELDS", "1", "past", "1"},
	{"HSET", "shrinks", "f", "v", "stays", "v"}, {"HPEXPIRE", "shrinks", "5", "FIELDS", "1", "f"}, {"HSET", "goes", "f", "v"}, {"HPEXPIRE", "goes", "5", "FIELDS", "1", "f"},
	{"COPY", "h", "copy"}, {"RENAME", "absent", "renamed"}, {"MOVE", "copy", "3"},
	{"SET", "compared", "v"}, {"SET", "compared", "w", "IFEQ", "v"}, {"SET", "deleted", "v"}, {"DELIFEQ", "deleted", "v"}, {"MSETEX", "2", "m1", "1", "m2", "2", "EX", "1000000000"},
	{"MULTI"}, {"HSET", "multi", "f", "1"}, {"HEXPIRE", "multi", "1000000000", "FIELDS", "1", "f"}, {"SELECT", "2"}, {"INCR", "n"}, {"EXEC"}, {"SELECT", "0"},
	{"EVAL", "redis.call('HSET', KEYS[1], 'f', 1); return redis.call('HEXPIRE', KEYS[1], 1000000000, 'FIELDS', 1, 'f')", "1", "scripted"}, {"FCALL", "twice", "1", "string", "ww"},
}

// file reads the reply to PSYNC and the file that follows it, to its mark.
func (c *client) file() (all, file string) {
	c.t.Helper()
	buf := make([]byte, 4<<10)
	for {
		_, after, _ := strings.Cut(all, "$EOF:")
		mark, file, _ := strings.Cut(after, "\r\n")
		if file, _, ended := strings.Cut(file, mark); ended && mark != "" {
			return all, file
		}
		_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, err := c.conn.Read(buf)
		if all += string(buf[:n]); err != nil {
			c.t.Fatalf("%v after %d bytes of a file: %.200q", err, len(all), all)
		}
	}
}

// recordMaster writes what the redis-server in PATH sends.
func recordMaster(t *testing.T, file string) {
	t.Helper()
	r := redisserver.StartMaster(t, "", "--repl-ping-replica-period", "1000")
	master := dial(t, r.Socket)
	master.pipeline(recordedBefore...)
	replica := dial(t, "127.0.0.1:"+r.Port)
	replica.must("REPLCONF", "listening-port", "6380", "capa", "eof", "capa", "psync2")
	replica.do("REPLCONF", "version", "9.0.0")
	if _, err := replica.conn.Write(resp.AppendCommandStrings(nil, "PSYNC", "?", "-1")); err != nil {
		t.Fatal(err)
	}
	all, _ := replica.file()
	await(t, "the master has sent the file", func() bool { return strings.Contains(master.info("replication", "slave0"), "state=online") })
	if _, err := replica.conn.Write(resp.AppendCommandStrings(nil, "REPLCONF", "ACK", "0")); err != nil {
		t.Fatal(err)
	}
	for i, reply := range master.pipeline(recordedAfter...) {
		if reply.IsError() {
			t.Logf("%q: %s", recordedAfter[i], text(reply))
		}
	}
	time.Sleep(300 * time.Millisecond) // what is to expire does
	master.must("HGETALL", "shrinks")
	master.must("SET", "last", "end of the recording")
	all += replica.until("end of the recording\r\n")
	held, err := json.MarshalIndent(contents{fieldDeadlines: true}.of(master), "", "\t")
	if err == nil {
		err = os.WriteFile(file+".json", append(held, '\n'), 0o644)
	}
	if err == nil {
		err = os.WriteFile(file+".stream", []byte(all), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecorded: what a Valkey 9.1 and a Redis 8.0 send is applied, with the deadlines of fields.
func TestRecorded(t *testing.T) {
	if *record != "" {
		recordMaster(t, "testdata/"+*record)
	}
	for _, name := range []string{"valkey9", "redis8"} {
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile("testdata/" + name + ".stream")
			if err != nil {
				t.Fatal(err)
			}
			held, err := os.ReadFile("testdata/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]string
			if err := json.Unmarshal(held, &want); err != nil {
				t.Fatal(err)
			}
			port := playMaster(t, nil, stream)
			replica := startReplica(t)
			replica.must("REPLICAOF", "127.0.0.1", port)
			await(t, "all is applied", func() bool {
				if text := replica.info("replication", "master_link_error"); text != "" {
					t.Fatal(text)
				}
				return replica.do("GET", "last") == "end of the recording"
			})
			have := contents{fieldDeadlines: true}.of(replica)
			for key, content := range want {
				if have[key] != content {
					t.Errorf("%s:\nhas  %.600s\nwant %.600s", key, have[key], content)
				}
			}
			if len(have) != len(want) {
				t.Errorf("%d keys, want %d", len(have), len(want))
			}
		})
	}
}

// TestFileForValkey: a Valkey of 9 or later, which says so, gets deadlines of fields in a file of its own, and one before 9,
// which could load neither that nor a file of Redis 7.4, is refused while they are sent. Nothing is kept for it.
func TestFileForValkey(t *testing.T) {
	const hash, plain = `hash 4 [a b c d] [0 4102444800000]`, `hash 4 [a b c d] []`
	for _, tt := range []struct{ compat, version, begins, holds string }{
		{"7.4", "", "REDIS0012", hash}, {"7.4", "9.0.0", "VALKEY080", hash}, {"7.4", "9.1.2", "VALKEY080", hash}, {"7.4", "10.0.0", "VALKEY080", hash}, {"7.4", "8.1.4", "", ""},
		{"7.0", "", "REDIS0010", plain}, {"7.0", "9.1.2", "REDIS0010", plain}, {"7.0", "8.1.4", "REDIS0010", plain},
	} {
		t.Run(tt.compat+" "+tt.version, func(t *testing.T) {
			master := startReplica(t)
			master.must("CONFIG", "SET", "repl-compat", tt.compat)
			master.must("HSET", "hash", "a", "b", "c", "d")
			master.must("HPEXPIREAT", "hash", "4102444800000", "FIELDS", "1", "c")
			replica := dial(t, master.conn.RemoteAddr().String())
			replica.must("REPLCONF", "capa", "eof", "capa", "psync2")
			if tt.version != "" {
				replica.must("REPLCONF", "version", tt.version)
			}
			if tt.begins == "" {
				for _, ask := range [][]string{{"PSYNC", "?", "-1"}, {"SYNC"}} {
					again := dial(t, master.conn.RemoteAddr().String())
					again.must("REPLCONF", "capa", "eof", "version", tt.version)
					if reply := again.do(ask...); !strings.Contains(reply, "repl-compat 7.4") {
						t.Errorf("%q: %s", ask, reply)
					}
				}
				if active := master.info("replication", "repl_backlog_active"); active != "0" {
					t.Errorf("the backlog is active: %s", active)
				}
				return
			}
			if _, err := replica.conn.Write(resp.AppendCommandStrings(nil, "PSYNC", "?", "-1")); err != nil {
				t.Fatal(err)
			}
			_, file := replica.file()
			if !strings.HasPrefix(file, tt.begins) {
				t.Errorf("the file begins with %.20q, want %s", file, tt.begins)
			}
			holds := ""
			err := rdb.NewFileReader(strings.NewReader(file)).Visit(func(e *rdb.Entry) error {
				holds = fmt.Sprintf("%s %d %s %d", e.Name, e.Value.Kind, e.Value.Elements, e.Value.Deadlines)
				return nil
			})
			if err != nil || holds != tt.holds {
				t.Errorf("%s, %v, want %s", holds, err, tt.holds)
			}
		})
	}
}
