package server_test

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// clusterScripts are conversations with a cluster of one node.
var clusterScripts = map[string]string{
	"keys of several slots": `
		a: MSET a 1 b 2
		a: MSET {t}a 1 {t}b 2
		a: MGET a b
		a: MGET {t}b {t}a
		a: DEL a{x} b{x} c{y}
		a: RENAME a b
		a: BLPOP a b 0
		a: LMPOP 2 a b LEFT
		a: ZUNIONSTORE d 2 a b
		a: XREAD STREAMS a b 0 0
		a: SINTERCARD 2 {t}x {t}y
		a: OBJECT ENCODING {t}a
		a: WATCH a b
		a: PFCOUNT a b
		a: MSET a
		a: EVAL return(1) 2 a b
		a: EVAL return(1) 2 a{x} b{x}
		a: EVAL return(redis.pcall('mget','a','b').err) 0
		a: EVAL return(redis.pcall('get','a')) 0
		a: EVAL return(redis.pcall('select','1').err) 0
		a: SSUBSCRIBE a b
		a: SPUBLISH a x`,
	"transactions": `
		a: MULTI
		a: SET a 1
		a: SET b 1
		a: EXEC
		a: EXEC
		a: GET a
		a: MULTI
		a: SET {t}a 1
		a: SET {t}b 1
		a: EXEC
		a: MULTI
		a: MSET a 1 b 2
		a: SET a 1
		a: EXEC
		a: WATCH a
		a: WATCH b
		b: SET b 1
		a: MULTI
		a: SET c 1
		a: EXEC
		a: MULTI
		a: PING
		a: EXEC`,
	"several databases": `
		a: SELECT 0
		a: SELECT 1
		a: SELECT x
		a: MOVE k 1
		a: SWAPDB 0 1
		a: SET {t}k v
		a: COPY {t}k {t}l DB 1
		a: COPY {t}k {t}l
		a: COPY {t}k {t}m DB 0`,
	"sort": `
		a: RPUSH l 2 1
		a: SORT l
		a: SORT l BY w_*
		a: SORT l BY nosort
		a: SORT l GET #
		a: SORT_RO l GET x_*
		a: SORT l STORE d
		a: SORT {l} STORE l`,
	"slots": `
		a: CLUSTER KEYSLOT k
		a: CLUSTER KEYSLOT {}
		a: CLUSTER KEYSLOT {}k
		a: CLUSTER KEYSLOT {a}b
		a: CLUSTER KEYSLOT x{a}b{c}
		a: CLUSTER KEYSLOT x{{a}}b
		a: CLUSTER KEYSLOT x{a
		a: CLUSTER KEYSLOT 123456789
		a: MSET {t}a 1 {t}b 2
		a: SET other 1
		a: CLUSTER KEYSLOT t
		a: CLUSTER COUNTKEYSINSLOT 15891
		a: CLUSTER COUNTKEYSINSLOT 0
		a: CLUSTER COUNTKEYSINSLOT 16384
		a: CLUSTER COUNTKEYSINSLOT -1
		a: CLUSTER COUNTKEYSINSLOT x
		a: DEL {t}b
		a: CLUSTER GETKEYSINSLOT 15891 1
		a: CLUSTER GETKEYSINSLOT 15891 0
		a: CLUSTER GETKEYSINSLOT 16384 1
		a: CLUSTER GETKEYSINSLOT 1 -1
		a: CLUSTER GETKEYSINSLOT 1 x`,
	"the node": `
		a: CONFIG SET cluster-announce-ip 10.1.2.3 cluster-announce-port 7001 cluster-announce-bus-port 17001
		a: CLUSTER INFO
		a: CLUSTER NODES
		a: CLUSTER SLOTS
		a: CLUSTER SHARDS
		a: CLUSTER LINKS
		a: CLUSTER MYID
		a: CLUSTER REPLICAS x
		a: CLUSTER SLAVES x
		a: CLUSTER COUNT-FAILURE-REPORTS x
		a: CLUSTER NOPE
		a: CLUSTER
		a: READONLY
		a: READWRITE
		a: ASKING
		a: CONFIG GET cluster-enabled
		a: CONFIG SET cluster-enabled no
		a: CONFIG SET cluster-announce-hostname stave.example
		a: CLUSTER NODES
		a: CLUSTER SLOTS
		a: CLUSTER SHARDS
		a: CONFIG SET cluster-preferred-endpoint-type hostname
		a: CLUSTER SLOTS
		a: CONFIG SET cluster-preferred-endpoint-type unknown-endpoint
		a: CLUSTER SLOTS
		a: CLUSTER SHARDS
		a: HELLO3
		a: CLUSTER SLOTS
		a: CLUSTER SHARDS
		a: CLUSTER NODES
		a: CONFIG SET cluster-preferred-endpoint-type ip cluster-announce-hostname stave2.example`,
}

// TestClusterAgreesWithRedis compares with a redis-server that owns all slots. Ids differ, and so do the shas in errors
// of scripts.
func TestClusterAgreesWithRedis(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	bus := strconv.Itoa(20000 + port%40000)
	redis := startRedisServer(t, "--port", strconv.Itoa(port), "--cluster-enabled", "yes", "--cluster-port", bus).dial()
	if reply, err := redis.do(strings.Fields("cluster addslotsrange 0 16383")); err != nil || reply.IsError() {
		t.Fatal(reply, err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		info, err := redis.do([]string{"cluster", "info"})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(info.Text), "cluster_state:ok") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("redis-server makes no cluster")
		}
	}
	agreeWith(t, redis, server.Options{Cluster: true}, clusterScripts, regexp.MustCompile(`[0-9a-f]{40}|cluster_current_epoch.*?cluster_stats`))
}

// TestClusterEndpoint: without a setting a client is shown the address that it has connected to.
func TestClusterEndpoint(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Cluster: true, Transport: transport})
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, address)
		c.send("CLUSTER SLOTS\r\n")
		c.expect("*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$" + strconv.Itoa(len(host)) + "\r\n" + host + "\r\n:" + port + "\r\n$40\r\n")
	})
}

// TestNoCluster: by default there is none.
func TestNoCluster(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, line := range []string{"CLUSTER INFO", "CLUSTER SLOTS", "CLUSTER ADDSLOTS 1", "READONLY", "ASKING"} {
		if got := ask(s, line+"\r\n"); got != "-ERR This instance has cluster support disabled\r\n" {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := ask(s, "MSET a 1 b 2\r\nSELECT 1\r\n"); got != "+OK\r\n+OK\r\n" {
		t.Errorf("keys of several slots: %q", got)
	}
}

// TestClusterFunctions: the keys of FCALL must be of one slot, and a function must not touch others, unless it says
// that it does. The replies are those of redis-server 7.0.15.
func TestClusterFunctions(t *testing.T) {
	s := newSession(t, openStore(t), &server.Options{Cluster: true})
	library := `"#!lua name=lib\nlocal set = function(keys, args) return redis.call('SET', args[1], 'v') end\n` +
		`redis.register_function('strict', set)\nredis.register_function{function_name='loose', callback=set, flags={'allow-cross-slot-keys'}}\n` +
		`redis.register_function{function_name='alone', callback=set, flags={'no-cluster'}}"`
	for _, tt := range []struct{ ask, want string }{
		{"FUNCTION LOAD " + library, "$3\r\nlib\r\n"},
		{"FCALL strict 2 a b a", "-CROSSSLOT Keys in request don't hash to the same slot\r\n"},
		{"FCALL strict 2 {t}a {t}b {t}c", "+OK\r\n"},
		{"FCALL strict 1 a a", "+OK\r\n"},
		{"FCALL loose 2 a b a", "-CROSSSLOT Keys in request don't hash to the same slot\r\n"},
		{"FCALL loose 1 a b", "+OK\r\n"},
		{"GET b", "$1\r\nv\r\n"},
		{"FCALL alone 1 a a", "-ERR Can not run script on cluster, 'no-cluster' flag is set.\r\n"},
		{"EVAL \"return redis.call('SET', 'b', 'w')\" 1 a", "+OK\r\n"},
		{"EVAL \"#!lua flags=no-cluster\\nreturn 1\" 0", "-ERR Can not run script on cluster, 'no-cluster' flag is set.\r\n"},
	} {
		if got := ask(s, tt.ask+"\r\n"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.ask, got, tt.want)
		}
	}
	for _, line := range []string{"FCALL strict 1 a other", "EVAL \"#!lua\\nredis.call('SET', 'a', 'v') return redis.call('SET', 'other', 'v')\" 0"} {
		if got := ask(s, line+"\r\n"); !strings.HasPrefix(got, "-ERR Script attempted to access keys that do not hash to the same slot") {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := ask(s, "GET other\r\n"); got != "$-1\r\n" {
		t.Errorf("it wrote %q", got)
	}
}
