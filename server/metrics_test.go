package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// infoFields are the names of the fields of INFO.
func infoFields(info string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(info) {
		if name, _, found := strings.Cut(line, ":"); found {
			names[name] = true
		}
	}
	return names
}

// TestInfoHasRedisFields: monitors find every field that redis-server has.
func TestInfoHasRedisFields(t *testing.T) {
	redis := startRedis(t)
	theirs, err := redis.do([]string{"info", "everything"})
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), nil)
	ours := infoFields(v.Info("everything"))
	for name := range infoFields(string(theirs.Text)) {
		if !ours[name] && !strings.HasPrefix(name, "cmdstat_") && !strings.HasPrefix(name, "latency_") {
			t.Errorf("INFO lacks %s", name)
		}
	}
}

var sampleLine = regexp.MustCompile(`^([a-z_]+)(\{([a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? (-?[0-9.e+-]+|\+Inf)$`)

// TestMetrics: the text format, one help and one type for a name, in this order, no series twice, counters in _total, and the names that dashboards for Redis ask for.
func TestMetrics(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	ask(s, "CONFIG SET slowlog-log-slower-than 0\r\nSET a 1 EX 100\r\nGET a\r\nGET b\r\nnope\r\nSAVE\r\nPING\r\n")
	text := v.Metrics()
	types, seen := map[string]bool{}, map[string]bool{}
	helped := "" // the name of the line before
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, isHelp := strings.CutPrefix(line, "# HELP "); isHelp {
			name, says, _ := strings.Cut(rest, " ")
			if helped = name; !strings.HasSuffix(says, ".") {
				t.Errorf("%s has no help: %q", name, says)
			}
			continue
		}
		if rest, isType := strings.CutPrefix(line, "# TYPE "); isType {
			name, kind, _ := strings.Cut(rest, " ")
			if types[name] || helped != name {
				t.Errorf("two types for %s, or no help before", name)
			}
			if (kind == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %s", name, kind)
			}
			types[name] = true
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no sample: %q", line)
			continue
		}
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(m[1], "")
		if !types[m[1]] && !types[base] {
			t.Errorf("%s has no type", m[1])
		}
		if series := m[1] + m[2]; seen[series] {
			t.Errorf("%s stands twice", series)
		} else {
			seen[series] = true
		}
	}
	for _, want := range []string{
		"redis_up 1\n", `redis_db_keys{db="db0"} 1` + "\n", `redis_db_keys_expiring{db="db0"} 1` + "\n", `redis_commands_total{cmd="get"} 2` + "\n",
		"redis_keyspace_hits_total 1\n", "redis_keyspace_misses_total 1\n", `redis_errors_total{err="ERR"} 1` + "\n", "redis_connected_clients 0\n",
		`redis_commands_latencies_usec_bucket{cmd="get",le="+Inf"} 2` + "\n", "redis_memory_max_bytes 0\n", "stave_maxmemory_counted_bytes ", "redis_evicted_keys_total 0\n",
		"stave_segments ", "stave_fsync_seconds_count ", `stave_fsync_seconds_bucket{le="0.0001"} `, `stave_state{state="ok"} 1` + "\n", "stave_merges_total 0\n",
		"redis_uptime_in_seconds ", "redis_blocked_clients 0\n", "redis_slowlog_length ", "redis_net_input_bytes_total ", "redis_memory_used_bytes ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
}

// TestMetricsOfContrib: the dashboard and the alerts of contrib ask for figures that there are.
func TestMetricsOfContrib(t *testing.T) {
	writer := openStore(t)
	v := newServer(t, writer, nil)
	s := v.NewSession()
	ask(s, "SET a 1 EX 100\r\nnope\r\nSAVE\r\n")
	follower, err := db.Open(writer.Stats().Dir, &db.Options{Follow: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = follower.Close() }() // it has nothing to write
	have := map[string]bool{}
	for line := range strings.Lines(v.Metrics() + newServer(t, follower, nil).Metrics() + replicationMetrics(t)) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), "{"); !strings.HasPrefix(name, "#") {
			name, _, _ = strings.Cut(name, " ")
			have[name] = true
		}
	}
	for _, file := range []string{"grafana/stave.json", "prometheus/alerts.yml"} {
		text, err := os.ReadFile(filepath.Join("..", "contrib", file))
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "expr") {
				continue
			}
			for _, name := range regexp.MustCompile(`\b(stave|redis)_[a-z_]+`).FindAllString(line, -1) {
				if asked++; !have[name] {
					t.Errorf("%s: there is no %s", file, name)
				}
			}
		}
		if asked < 9 {
			t.Errorf("%s asks for %d figures", file, asked)
		}
	}
}

// replicationMetrics are those of a master with a replica, and of the replica of a master that is not there.
func replicationMetrics(t *testing.T) string {
	t.Helper()
	master, address := serve(t, nil)
	replica, _ := serve(t, nil)
	_, port, _ := net.SplitHostPort(address)
	ask(replica.NewSession(), "REPLICAOF 127.0.0.1 "+port+"\r\n")
	for end := time.Now().Add(time.Minute); !strings.Contains(replica.Metrics(), "redis_master_last_io_seconds_ago") || !strings.Contains(master.Metrics(), "slave_state"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain for a minute: a replica follows")
		}
	}
	alone := newServer(t, openStore(t), nil)
	if got := ask(alone.NewSession(), "REPLICAOF 127.0.0.1 1\r\n"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	metrics := alone.Metrics()
	if want := `redis_master_link_up{master_host="127.0.0.1",master_port="1"} 0` + "\n"; !strings.Contains(metrics, want) || !strings.Contains(metrics, `role="slave"`) {
		t.Errorf("a replica without its master lacks %q", want)
	}
	return master.Metrics() + replica.Metrics() + metrics
}

// TestAlertsHaveRunbooks: each alert names a paragraph of OPERATIONS.md that is about it, and there is none besides.
func TestAlertsHaveRunbooks(t *testing.T) {
	alerts, err := os.ReadFile("../contrib/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, runbook, _ := strings.Cut(string(manual), "\n## Alerts\n")
	paragraphs := map[string]string{}
	for part := range strings.SplitSeq(runbook, "\n### ") {
		name, text, _ := strings.Cut(part, "\n")
		paragraphs[name] = text
	}
	rules := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?\n          runbook: "([^"]*)"`).FindAllStringSubmatch(string(alerts), -1)
	if len(rules) != strings.Count(string(alerts), "- alert:") || len(rules) != len(paragraphs)-1 || len(rules) < 10 {
		t.Errorf("%d alerts with a runbook, %d paragraphs", len(rules), len(paragraphs)-1)
	}
	for _, rule := range rules {
		if want := "docs/OPERATIONS.md#" + strings.ToLower(rule[1]); rule[2] != want || len(paragraphs[rule[1]]) < 200 {
			t.Errorf("%s: runbook %s, should be %s, which has %d bytes", rule[1], rule[2], want, len(paragraphs[rule[1]]))
		}
	}
}

// TestHTTP: the endpoint answers its own machine, and nobody whom a web page has led here.
func TestHTTP(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.ServeHTTP(ctx, ln) }()
	get := func(method, path, host string) (status int, body string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+ln.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Close = true
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	for _, tt := range []struct {
		method, path, host string
		status             int
		body               string
	}{
		{"GET", "/metrics", "", 200, "redis_up 1\n"},
		{"GET", "/metrics", "localhost:9121", 200, "redis_up 1\n"},
		{"GET", "/metrics", "LocalHost", 200, "redis_up 1\n"},
		{"GET", "/metrics", "[::1]:9121", 200, "redis_up 1\n"},
		{"GET", "/metrics", "[::1]", 200, "redis_up 1\n"},
		{"GET", "/metrics", "attacker.example", 403, "this endpoint is for its own machine"},
		{"GET", "/healthz", "", 200, "ok, the store is ok\n"},
		{"GET", "/readyz", "", 200, "the store is ok\n"},
		{"GET", "/", "", 200, "<title>stave</title>"}, {"GET", "/none", "", 404, ""},
		{"POST", "/metrics", "", 405, ""},
	} {
		if status, body := get(tt.method, tt.path, tt.host); status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%v: %d, %.100q", tt, status, body)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	public, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.ServeHTTP(context.Background(), public); err == nil {
		t.Error("served for everybody")
	}
}

// TestMaxMemory: commands that may add data are refused while index and buffers take more, and no others.
func TestMaxMemory(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	const oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
	for i := range 200 {
		ask(s, fmt.Sprintf("SET key:%d v\r\n", i))
	}
	for _, tt := range [][2]string{
		{"CONFIG SET maxmemory 1gb", "+OK\r\n"},
		{"SET a 1", "+OK\r\n"},
		{"CONFIG SET maxmemory 100", "+OK\r\n"},
		{"SET a 2", oom},
		{"RPUSH l 2", oom},
		{"GET a", "$1\r\n1\r\n"},
		{"DEL key:1", ":1\r\n"},
		{"MULTI", "+OK\r\n"},
		{"SET a 3", oom},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{"CONFIG SET maxmemory 1gb", "+OK\r\n"},
		{"MULTI", "+OK\r\n"},
		{"SET a 3", "+QUEUED\r\n"},
		{"CONFIG SET maxmemory 100", "+QUEUED\r\n"},
		{"EXEC", "*2\r\n+OK\r\n+OK\r\n"},
		{"SET a 4", oom},
		{"CONFIG SET maxmemory 0", "+OK\r\n"},
		{"SET a 5", "+OK\r\n"},
	} {
		if got := ask(s, tt[0]+"\r\n"); got != tt[1] {
			t.Errorf("%s: %q, want %q", tt[0], got, tt[1])
		}
	}
	// A script may not add data either, unless it has changed some before memory was looked at: as in Redis, at its
	// beginning.
	for _, tt := range [][2]string{
		{"CONFIG SET maxmemory 100", "+OK\r\n"},
		{`EVAL "return redis.call('get', KEYS[1])" 1 a`, "$1\r\n5\r\n"},
		{`EVAL "return redis.pcall('set', KEYS[1], 'x').err" 1 a`, "$" + fmt.Sprint(len(oom)-3) + "\r\n" + oom[1:]},
		{`EVAL "redis.call('del', KEYS[2]) return redis.call('set', KEYS[1], '5')" 2 a key:2`, "+OK\r\n"},
		{"CONFIG SET maxmemory 0", "+OK\r\n"},
	} {
		if got := ask(s, tt[0]+"\r\n"); got != tt[1] {
			t.Errorf("%s: %q, want %q", tt[0], got, tt[1])
		}
	}
	// An EXEC is refused as a whole if memory has become short since its commands were queued.
	other := v.NewSession()
	ask(s, "MULTI\r\nSET a 6\r\n")
	ask(other, "CONFIG SET maxmemory 100\r\n")
	if got := ask(s, "EXEC\r\n"); !strings.HasPrefix(got, "-EXECABORT Transaction discarded because of: OOM command not allowed") {
		t.Errorf("EXEC: %q", got)
	}
	if got := ask(other, "GET a\r\n"); got != "$1\r\n5\r\n" {
		t.Errorf("%q", got)
	}
}

// debugScript is what DEBUG replies where it is allowed. Digests must be those of Redis.
const debugScript = `
	a: SET s value EX 1000
	a: SET empty |
	a: RPUSH l 1 2 2 3
	a: SADD set a b c
	a: ZADD z 1 a 1.5 b -inf c 3e100 d 0.1 e inf f
	a: HSET h f v g w
	a: SELECT 3
	a: SET s other
	a: HSET h2 a b
	a: SELECT 0
	a: DEBUG DIGEST
	a: DEBUG DIGEST-VALUE s l set z h none
	a: XADD x 1-1 a b c d
	a: XADD x 18446744073709551615-18446744073709551615 e f
	a: XGROUP CREATE x g 0
	a: DEBUG DIGEST-VALUE x
	a: XDEL x 1-1
	a: DEBUG DIGEST-VALUE x
	a: DEBUG DIGEST
	a: DEBUG DIGEST-VALUE
	a: DEBUG DIGEST x
	a: DEBUG SET-ACTIVE-EXPIRE 0
	a: DEBUG SET-ACTIVE-EXPIRE 1
	a: DEBUG SET-ACTIVE-EXPIRE
	a: DEBUG RELOAD
	a: DEBUG RELOAD NOSAVE NOFLUSH MERGE
	a: DEBUG RELOAD nope
	a: DEBUG CHANGE-REPL-ID
	a: DEBUG ERROR text
	a: DEBUG LOG text
	a: DEBUG OBJECT none
	a: DEBUG POPULATE 3 k 5
	a: DEBUG POPULATE x
	a: DEBUG POPULATE 2
	a: MGET k:0 k:2 key:0 key:1 key:2
	a: DEBUG DIGEST
	a: DEBUG QUICKLIST-PACKED-THRESHOLD 10b
	a: DEBUG PAUSE-CRON 0
	a: DEBUG PROTOCOL
	a: DEBUG PROTOCOL nope
	a: DEBUG PROTOCOL string
	a: DEBUG PROTOCOL integer
	a: DEBUG PROTOCOL double
	a: DEBUG PROTOCOL null
	a: DEBUG PROTOCOL array
	a: DEBUG PROTOCOL set
	a: DEBUG PROTOCOL map
	a: DEBUG PROTOCOL attrib
	a: DEBUG PROTOCOL push
	a: DEBUG PROTOCOL verbatim
	a: DEBUG PROTOCOL true
	a: DEBUG PROTOCOL false
	a: DEBUG PROTOCOL bignum
	a: HELLO3
	a: DEBUG PROTOCOL double
	a: DEBUG PROTOCOL null
	a: DEBUG PROTOCOL set
	a: DEBUG PROTOCOL map
	a: DEBUG PROTOCOL push
	a: <
	a: DEBUG PROTOCOL verbatim
	a: DEBUG PROTOCOL true
	a: DEBUG PROTOCOL bignum
	a: DEBUG nope`

func TestDebugAgreesWithRedis(t *testing.T) {
	address := startRedisServer(t, "--enable-debug-command", "yes").dial().conn.RemoteAddr().String()
	theirs := talk(t, address, debugScript)
	config := server.NewConfig()
	if err := config.Set("enable-debug-command", "yes"); err != nil {
		t.Fatal(err)
	}
	ours := talk(t, serveUnixWith(t, &server.Options{Config: config}), debugScript)
	for i := range ours {
		if ours[i] != theirs[i] {
			t.Errorf("stave %s, redis %s", ours[i], theirs[i])
		}
	}
	s := newSession(t, openStore(t), &server.Options{Debug: true})
	if got := ask(s, "DEBUG STRINGMATCH-LEN 3 A*\r\nDEBUG STRINGMATCH-LEN 3 A\r\nDEBUG JMAP\r\n"); got != ":1\r\n:0\r\n+OK\r\n" {
		t.Errorf("%q", got)
	}
}
