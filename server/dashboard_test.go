package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// serveHTTP serves the dashboard of a server until the test ends, and returns its URL.
func serveHTTP(t *testing.T, v *server.Server) (base string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.ServeHTTP(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// page is a client of the dashboard.
type page struct {
	t              *testing.T
	base           string
	user, password string
}

// get requests a path and decodes the JSON that it replies into v, unless that is nil.
func (p page) get(path string, v any) (status int, body string, header http.Header) {
	p.t.Helper()
	r, err := http.NewRequest("GET", p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Close = true
	if p.user != "" || p.password != "" {
		r.SetBasicAuth(p.user, p.password)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if v != nil {
		if err := json.Unmarshal(text, v); err != nil || reply.StatusCode != http.StatusOK {
			p.t.Errorf("%s: %d, %v: %.300s", path, reply.StatusCode, err, text)
		}
	}
	return reply.StatusCode, string(text), reply.Header
}

// TestDashboardIsNotCounted: what the page asks for is in none of what it shows.
func TestDashboardIsNotCounted(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	ask(s, "SET a 1\r\nHSET h f v\r\nCONFIG SET slowlog-log-slower-than 0 latency-monitor-threshold 1\r\nSLOWLOG RESET\r\n")
	p := page{t: t, base: serveHTTP(t, v)}
	noted := func() string {
		lines := slices.DeleteFunc(strings.Split(v.Info("commandstats")+v.Info("latencystats")+v.Info("stats")+v.Metrics(), "\n"), func(line string) bool {
			return !regexp.MustCompile(`^(cmdstat_|latency_percentiles|keyspace_|total_commands|redis_commands_|redis_keyspace_|redis_slowlog_|redis_latency_)`).MatchString(line)
		})
		return strings.Join(lines, "\n")
	}
	before := noted()
	if !strings.Contains(before, "cmdstat_hset") {
		t.Fatalf("nothing is counted: %s", before)
	}
	for _, path := range []string{"/", "/api/segments", "/api/types", "/api/slowlog", "/api/clients", "/api/replication", "/api/keys", "/api/keys?match=none", "/api/key?key=aA"} {
		if status, body, _ := p.get(path, nil); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if after := noted(); after != before {
		t.Errorf("after:\n%s\nbefore:\n%s", after, before)
	}
}

// TestDashboardFiles: all that the page asks for by itself is there.
func TestDashboardFiles(t *testing.T) {
	p := page{t: t, base: serveHTTP(t, newServer(t, openStore(t), nil))}
	_, index, _ := p.get("/", nil)
	files := regexp.MustCompile(`(?:href|src)="(/[^"]*)"`).FindAllStringSubmatch(index, -1)
	if len(files) != 3 || !strings.Contains(index, `rel="icon"`) {
		t.Errorf("files: %q", files)
	}
	for _, file := range files {
		if status, body, header := p.get(file[1], nil); status != http.StatusOK || len(body) == 0 || header.Get("Content-Type") == "" {
			t.Errorf("%s: %d", file[1], status)
		}
	}
}

// TestDashboardReplication: the page gets the fields that it shows.
func TestDashboardReplication(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	p := page{t: t, base: serveHTTP(t, v)}
	script, err := os.ReadFile("internal/dashboard/assets/dashboard.js")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, command := range []string{"", "REPLICAOF 127.0.0.1 1\r\n"} {
		if command != "" {
			ask(v.NewSession(), command)
		}
		_, body, _ := p.get("/api/replication", nil)
		fields := map[string]string{}
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		maps.Copy(all, fields)
	}
	asked := regexp.MustCompile(`\bf\.([a-z_]+)`).FindAllStringSubmatch(string(script), -1)
	optional := []string{"master_link_error", "master_sync_read_bytes"} // while there is an error, and a synchronization
	for _, field := range asked {
		if _, has := all[field[1]]; !has && !slices.Contains(optional, field[1]) {
			t.Errorf("INFO has no %s", field[1])
		}
	}
	if len(asked) < 10 {
		t.Errorf("the page asks for %d fields", len(asked))
	}
}

type shownKey struct {
	Key, Name, Type string
	TTL, Bytes      int64
}

// keys are the names that the browser lists, over all pages.
func (p page) keys(query url.Values) (names []string) {
	p.t.Helper()
	cursor := "0"
	for range 1000 {
		query.Set("cursor", cursor)
		var one struct {
			Keys   []shownKey
			Cursor string
		}
		if status, _, _ := p.get("/api/keys?"+query.Encode(), &one); status != http.StatusOK {
			return names
		}
		for _, k := range one.Keys {
			names = append(names, k.Name)
		}
		if cursor = one.Cursor; cursor == "0" {
			slices.Sort(names)
			return slices.Compact(names)
		}
	}
	p.t.Error("the browser never ends")
	return names
}

// TestDashboardKeys: the browser finds every key once, of each type and with any name, and shows the beginning of its
// value; nothing that it does changes the store.
func TestDashboardKeys(t *testing.T) {
	store := openStore(t)
	v := newServer(t, store, nil)
	s := v.NewSession()
	binary := "\xff\x00key"
	for _, args := range [][]string{
		{"SET", "<b>name</b>", "<script>alert(1)</script>", "EX", "1000"}, {"SET", binary, "\xfe\xff"}, {"SET", "", "empty"}, {"SET", "long", strings.Repeat("x", 5000)},
		{"HSET", "h", "f", "v", "g", "w"}, {"RPUSH", "l", "a", "b", "c"}, {"SADD", "s", "m"}, {"ZADD", "z", "1.5", "m", "2", "n"}, {"XADD", "x", "1-1", "f", "v"},
		{"SELECT", "3"}, {"SET", "third", "1"},
	} {
		if reply := s.Do(byteArgs(args)); reply[0] == '-' {
			t.Fatalf("%q: %s", args, reply)
		}
	}
	p := page{t: t, base: serveHTTP(t, v)}
	before := store.Stats().Sequence
	if got, want := p.keys(url.Values{}), []string{"", `"\xff\x00key"`, "<b>name</b>", "h", "l", "long", "s", "x", "z"}; !slices.Equal(got, want) {
		t.Errorf("keys: %q", got)
	}
	for query, want := range map[string]string{"match=l*": "[l long]", "type=hash": "[h]", "db=3": "[third]", "match=no*": "[]"} {
		q, err := url.ParseQuery(query)
		if got := fmt.Sprint(p.keys(q)); err != nil || got != want {
			t.Errorf("%s: %s, %v", query, got, err)
		}
	}
	type shown struct {
		Type   string
		TTL    int64
		Length int64
		Rows   [][]string
		More   bool
	}
	for key, want := range map[string]shown{
		"<b>name</b>": {"string", 1, 25, [][]string{{"<script>alert(1)</script>"}}, false},
		binary:        {"string", -1, 2, [][]string{{`"\xfe\xff"`}}, false},
		"long":        {"string", -1, 5000, [][]string{{strings.Repeat("x", 4096)}}, true},
		"h":           {"hash", -1, 2, [][]string{{"f", "v"}, {"g", "w"}}, false},
		"l":           {"list", -1, 3, [][]string{{"a"}, {"b"}, {"c"}}, false},
		"s":           {"set", -1, 1, [][]string{{"m"}}, false},
		"z":           {"zset", -1, 2, [][]string{{"m", "1.5"}, {"n", "2"}}, false},
		"x":           {"stream", -1, 1, [][]string{{"1-1", "f = v"}}, false},
		"none":        {"none", 0, 0, [][]string{}, false},
	} {
		var got shown
		p.get("/api/key?key="+base64.RawURLEncoding.EncodeToString([]byte(key)), &got)
		if got.TTL > 0 {
			got.TTL = 1
		}
		slices.SortFunc(got.Rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, not %v", key, got, want)
		}
	}
	var types struct {
		Keys, Seen int
		Types      map[string]int
	}
	p.get("/api/types", &types)
	if types.Keys != 9 || types.Seen != 9 || fmt.Sprint(types.Types) != "map[hash:1 list:1 set:1 stream:1 string:4 zset:1]" {
		t.Errorf("types: %v", types)
	}
	if after := store.Stats().Sequence; after != before {
		t.Errorf("looking has made %d records", after-before)
	}
	for path, want := range map[string]int{"/api/key?key=!": 400, "/api/keys?db=99": 409, "/api/keys?cursor=x": 409, "/api/none": 404, "/none": 404} {
		if status, body, _ := p.get(path, nil); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// byteArgs are the arguments of a command.
func byteArgs(args []string) (list [][]byte) {
	for _, arg := range args {
		list = append(list, []byte(arg))
	}
	return list
}

// TestDashboardManyKeys: of many keys the browser has pages, and the shares of the types are a sample; of a long
// collection it shows the beginning, and of elements that are too long nothing.
func TestDashboardManyKeys(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	var want []string
	for i := range 1500 {
		name := fmt.Sprintf("k%04d", i)
		want = append(want, name)
		ask(s, fmt.Sprintf("SET %s v\r\nSADD %[1]s:set m\r\nRPUSH list e%[1]s\r\n", name))
	}
	s.Do(byteArgs([]string{"HSET", "heavy", "a", strings.Repeat("x", 3<<20), "b", strings.Repeat("x", 3<<20)}))
	p := page{t: t, base: serveHTTP(t, v)}
	if got := p.keys(url.Values{"match": {"k????"}}); !slices.Equal(got, want) {
		t.Errorf("%d keys of %d", len(got), len(want))
	}
	var types struct {
		Keys, Seen int
		Types      map[string]int
	}
	p.get("/api/types", &types)
	if types.Keys != 3002 || types.Seen != 400 || types.Types["string"] < 100 || types.Types["set"] < 100 {
		t.Errorf("types: %v", types)
	}
	var list struct {
		Length int
		Rows   [][]string
		More   bool
	}
	p.get("/api/key?key="+base64.RawURLEncoding.EncodeToString([]byte("list")), &list)
	if list.Length != 1500 || len(list.Rows) != 100 || !list.More || list.Rows[99][0] != "ek0099" {
		t.Errorf("list: %d of %d, %v", len(list.Rows), list.Length, list.More)
	}
	if status, body, _ := p.get("/api/key?key="+base64.RawURLEncoding.EncodeToString([]byte("heavy")), nil); status != http.StatusConflict || !strings.Contains(body, "reply") {
		t.Errorf("elements of 3 MiB: %d %.200s", status, body)
	}
}

// TestDashboardRights: whoever asks has the rights of the user that the request names, and a page of another origin
// gets nothing.
func TestDashboardRights(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	ask(s, "SET a:1 v\r\nSET b:1 v\r\nACL SETUSER ada on >pw ~a:* +@read +ping +select +dbsize +scan\r\nACL SETUSER off off >pw ~* +@all\r\n")
	base := serveHTTP(t, v)
	paths := []string{"/", "/api/segments", "/api/types", "/api/slowlog", "/api/clients", "/api/replication", "/api/keys", "/api/key?key=YTox"}
	check := func(who page, want ...int) {
		t.Helper()
		who.t, who.base = t, base
		for i, path := range paths {
			status, body, header := who.get(path, nil)
			if status != want[min(i, len(want)-1)] {
				t.Errorf("%q %q: %s: %d %.200s", who.user, who.password, path, status, body)
			}
			if !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") || header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", path, header)
			}
		}
	}
	check(page{}, 200)
	ask(s, "CONFIG SET requirepass secret\r\n")
	check(page{}, 401)
	check(page{user: "default", password: "secret"}, 200)
	check(page{password: "secret"}, 200)
	for _, who := range []page{{user: "default", password: "wrong"}, {user: "off", password: "pw"}} {
		who.t, who.base = t, base
		for _, path := range paths[:4] { // ten wrong passwords would make the address wait
			if status, body, header := who.get(path, nil); status != 401 || !strings.Contains(header.Get("WWW-Authenticate"), "Basic") {
				t.Errorf("%q %q: %s: %d %.200s", who.user, who.password, path, status, body)
			}
		}
	}
	ada := page{t: t, base: base, user: "ada", password: "pw"}
	check(ada, 200, 403, 200, 403, 403, 403, 200, 200)
	if got := ada.keys(url.Values{}); !slices.Equal(got, []string{"a:1"}) {
		t.Errorf("keys of a user with a pattern: %q", got)
	}
	if status, body, _ := ada.get("/api/key?key=YjoxCg", nil); status != 403 {
		t.Errorf("a key that is not the user's: %d %s", status, body)
	}
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		r, _ := http.NewRequest("GET", base+"/api/keys", nil)
		r.SetBasicAuth("default", "secret")
		r.Header.Set("Sec-Fetch-Site", site)
		r.Close = true
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("Sec-Fetch-Site: %s: %d", site, reply.StatusCode)
		}
	}
	guess := page{t: t, base: base, user: "default", password: "guess"}
	for range 30 {
		if status, body, _ := guess.get("/api/keys", nil); status == http.StatusTooManyRequests {
			return
		} else if status != 401 {
			t.Fatalf("a guess: %d %s", status, body)
		}
	}
	t.Error("thirty guesses in a row are all looked at")
}

// TestDashboardInABrowser: Chromium shows the figures, the segments, the types, the slow log and the keys, without an
// error in its console, and a name that is markup as text.
func TestDashboardInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	open := func(location string, virtual time.Duration) (dom, console string, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		var out, log bytes.Buffer
		cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
			fmt.Sprintf("--virtual-time-budget=%d", virtual.Milliseconds()), "--enable-logging=stderr", "--dump-dom", location)
		cmd.Stdout, cmd.Stderr = &out, &log
		err = cmd.Run()
		return out.String(), strings.Join(regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(log.String(), -1), "\n"), err
	}
	if dom, _, err := open("data:text/html,<p>works</p>", time.Second); err != nil || !strings.Contains(dom, "works") {
		t.Skipf("this chromium shows no page at all: %v", err)
	}
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	for _, line := range []string{"CONFIG SET slowlog-log-slower-than 0", "SADD set m", "CONFIG SET slowlog-log-slower-than -1", "HSET hash f v"} {
		ask(s, line+"\r\n")
	}
	s.Do(byteArgs([]string{"SET", `<img src=x onerror="document.title='attacked'">`, "v"}))
	base := serveHTTP(t, v)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		s := v.NewSession()
		for {
			select {
			case <-stop:
				return
			default:
				ask(s, "GET hash2\r\nSET n 1\r\n")
			}
		}
	}()
	wanted := []string{
		`<td>&lt;img src=x onerror`, `>takes writes<`, `000000001.data`, `<h2>Slow commands</h2>`, `<td class="">SADD set m</td>`, `>hash</td>`,
		`4 keys`, `<th class="n">per second</th>`, `<td class="">get</td>`, `1 segment,`,
	}
	var dom, console string
	var lacking []string
	// The page's time passes at once while it waits for nothing but its clock: on a busy machine it may end before a reply has come.
	for _, virtual := range []time.Duration{8 * time.Second, 30 * time.Second, 2 * time.Minute} {
		if dom, console, err = open(base+"/", virtual); err != nil {
			t.Fatal(err)
		}
		page := strings.ReplaceAll(dom, `<td><button type="button">`, "<td>")
		lacking = slices.DeleteFunc(slices.Clone(wanted), func(want string) bool { return strings.Contains(page, want) })
		if console != "" || len(lacking) == 0 {
			break
		}
	}
	if console != "" {
		t.Errorf("the console: %s", console)
	}
	for _, want := range lacking {
		t.Errorf("the page lacks %s", want)
	}
	if strings.Contains(dom, "<img") || strings.Contains(dom, "<title>attacked") {
		t.Error("a name has become markup")
	}
	if t.Failed() {
		t.Logf("%s", dom)
	}
}
