package server_test

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stavedb/stave/server"
)

// hostileTexts would end a line, a field, a label or a section, if they reached a line format as they are.
var hostileTexts = []string{
	"FAKE\r\nrole:slave\r\n# Injected\r\nx:1", "FA\r\n\nfoo{x=1} 2", "FA\nfoo 2\n", "A\"} 1\nfoo 2\n", `back\slash"quote`, "#x:y z", "a=b c=d",
	"\x00\x1b[31m", "\xff\xfe text", "\u0085\u2028 text", "MISCONF\tx y", strings.Repeat("x", 40) + " y", "", " ", "é ü",
}

// waysIn sends a text every way in that ends in a counter, a log, a list of clients or a file.
func waysIn(t *testing.T, s *server.Session, text string) {
	for _, args := range [][]string{
		{"EVAL", "error({err=ARGV[1]})", "0", text},
		{"EVAL", "return redis.error_reply(ARGV[1])", "0", text},
		{"EVAL", "error(ARGV[1])", "0", text},
		{"EVAL", "redis.log(redis.LOG_WARNING, ARGV[1])", "0", text},
		{"EVAL", text, "0"},
		{text}, {text, text}, {"GET", text, text}, {"CLIENT", text}, {"CLIENT", "KILL", text}, {"CONFIG", "SET", text, text}, {"CONFIG", "SET", "dir", text},
		{"CLIENT", "SETNAME", text}, {"CLIENT", "SETINFO", "LIB-NAME", text}, {"CLIENT", "SETINFO", "LIB-VER", text},
		{"HELLO", "3", "SETNAME", text}, {"HELLO", "3", text}, {"AUTH", text, text}, {"AUTH", text},
		{"ACL", "SETUSER", text, "on", "nopass", "+@all", "~*"}, {"ACL", "SETUSER", "other", "~" + text, "&" + text}, {"AUTH", text, ""},
		{"SET", text, text}, {"EVAL", "return redis.call(ARGV[1])", "0", text}, {"SUBSCRIBE", text}, {"UNSUBSCRIBE", text}, {"PUBLISH", text, text},
		{"FUNCTION", "LOAD", "#!lua name=" + text + "\nredis.register_function('f', function() end)"}, {"FUNCTION", "RESTORE", text},
		{"RESTORE", "k", "0", text}, {"XGROUP", "CREATE", "k", text, text}, {"MULTI"}, {text}, {"EXEC"},
		{"LATENCY", text}, {"SLOWLOG", text}, {"INFO", text}, {"AUTH", "default", "nothing"},
	} {
		call(t, s, args...)
	}
}

// TestNothingEndsALine: whatever a client says, INFO, /metrics, CLIENT LIST, MONITOR, the log and the files of settings
// and users have the lines that they are to have.
func TestNothingEndsALine(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	users := filepath.Join(dir, "users.acl")
	if err := os.WriteFile(users, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), &server.Options{ACLFile: users, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	fresh := infoFields(v.Info("everything"))
	monitor := v.NewSession()
	defer monitor.Close()
	ask(monitor, "MONITOR\r\n")
	s := v.NewSession()
	defer s.Close()
	call(t, s, "CONFIG", "SET", "slowlog-log-slower-than", "0")
	for _, text := range hostileTexts {
		waysIn(t, s, text)
		lineOfClient(t, strings.TrimSuffix(v.NewSession().ClientLine(), "\n"))
		lineOfClient(t, s.ClientLine())
		shown := 0
		for line := range strings.SplitSeq(ask(monitor, ""), "\r\n") {
			if shown++; line != "" && line != "+OK" && !monitorLine.MatchString(line) {
				t.Errorf("MONITOR shows %q", line)
			}
		}
		if shown < 10 {
			t.Errorf("MONITOR shows %d lines", shown)
		}
	}
	linesOfInfo(t, v.Info("everything"), fresh)
	linesOfMetrics(t, v.Metrics())
	for line := range strings.Lines(log.String()) {
		if !logLine.MatchString(line) {
			t.Errorf("the log has %q", line)
		}
	}
	before := call(t, s, "ACL", "LIST")
	expect(t, s, `+"OK"`, "ACL", "SAVE")
	expect(t, s, `+"OK"`, "ACL", "LOAD")
	if after := call(t, s, "ACL", "LIST"); after != before {
		t.Errorf("users %s are read from the file as %s", before, after)
	}
}

var (
	monitorLine = regexp.MustCompile(`^\+\d+\.\d{6} \[\d+ [^\]]*\]( "([ !#-\[\]-~]|\\[nrtab"\\]|\\x[0-9a-f]{2})*")+$`)
	logLine     = regexp.MustCompile(`^time=\S+ level=[A-Z]+ msg=(\S+|"([^"\\\n]|\\.)*")( [a-z]+=([^" \n]\S*|"([^"\\\n]|\\.)*"|))*\n$`)
)

// lineOfClient fails unless a line of CLIENT LIST has its fields, and nothing else.
func lineOfClient(t *testing.T, line string) {
	t.Helper()
	const names = "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver"
	var found []string
	for field := range strings.SplitSeq(line, " ") {
		name, value, ok := strings.Cut(field, "=")
		if !ok || strings.ContainsFunc(value, func(r rune) bool { return r < '!' || r == utf8.RuneError || r == 0x7f }) {
			t.Errorf("CLIENT LIST has the field %q", field)
		}
		found = append(found, name)
	}
	if strings.Join(found, " ") != names {
		t.Errorf("CLIENT LIST has the line %q", line)
	}
}

// linesOfInfo fails unless INFO has sections of fields of its own. fresh are the fields of a server that has seen nothing.
func linesOfInfo(t *testing.T, info string, fresh map[string]bool) {
	t.Helper()
	counted := regexp.MustCompile(`^(cmdstat_[a-z_|-]+|latency_percentiles_usec_[a-z_|-]+|db\d+|errorstat_[!"$-9;-~]{0,30})$`)
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSuffix(info, "\r\n"), "\r\n") {
		name, value, isField := strings.Cut(line, ":")
		switch {
		case line == "" || strings.HasPrefix(line, "# ") && !strings.Contains(line, "Injected"):
		case !isField || strings.ContainsAny(value, "\r\n") || !fresh[name] && !counted.MatchString(name):
			t.Errorf("INFO has the line %q", line)
		case seen[name]:
			t.Errorf("INFO has %s twice", name)
		}
		seen[name] = seen[name] || isField
	}
}

// linesOfMetrics fails unless a page is in the text format of Prometheus, version 0.0.4: comments, and samples whose
// labels are quoted UTF-8 in which a backslash escapes itself, a quotation mark and a line feed.
func linesOfMetrics(t *testing.T, page string) {
	t.Helper()
	if !strings.HasSuffix(page, "\n") || !utf8.ValidString(page) {
		t.Error("the page has no end, or is not UTF-8")
	}
	comment := regexp.MustCompile(`^# (TYPE [a-zA-Z_:][a-zA-Z0-9_:]* (counter|gauge|histogram|summary|untyped)|HELP [a-zA-Z_:][a-zA-Z0-9_:]* ([^\\\n]|\\[\\n])*)$`)
	sample := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]\w*="([^"\\\n]|\\[\\"n])*"(,[a-zA-Z_]\w*="([^"\\\n]|\\[\\"n])*")*\})? (\S+)$`)
	for line := range strings.SplitSeq(strings.TrimSuffix(page, "\n"), "\n") {
		if strings.HasPrefix(line, "#") && comment.MatchString(line) {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || !strings.HasPrefix(m[1], "redis_") && !strings.HasPrefix(m[1], "stave_") {
			t.Errorf("/metrics has the line %q", line)
			continue
		}
		if _, err := strconv.ParseFloat(m[len(m)-1], 64); err != nil {
			t.Errorf("/metrics: %q: %v", line, err)
		}
	}
}

// TestErrorCodesAreCountedAsInRedis: the code is the first word, without what cannot stand in INFO; a long one is ERR.
func TestErrorCodesAreCountedAsInRedis(t *testing.T) {
	redis := startRedis(t)
	s := newSession(t, openStore(t), nil)
	for _, text := range []string{"NOSPACE", "A:B#C x", strings.Repeat("x", 29) + " y", strings.Repeat("x", 30) + " y", strings.Repeat("x", 31) + " y",
		"FAKE\r\nrole:slave", " lead", "", `a"b\c d`, "A\rB", "A\nB", strings.Repeat("x", 4096)} {
		args := []string{"EVAL", "error({err=ARGV[1]})", "0", text}
		call(t, s, args...)
		if _, err := redis.do(args); err != nil {
			t.Fatal(err)
		}
	}
	theirs, err := redis.do([]string{"INFO", "errorstats"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := codes(string(s.Do(bytesOf([]string{"INFO", "errorstats"})))), codes(string(theirs.Text)); !maps.Equal(got, want) {
		t.Errorf("errors %v, redis-server has %v", got, want)
	}
}

// codes are the counts of INFO errorstats.
func codes(info string) map[string]string {
	found := map[string]string{}
	for line := range strings.SplitSeq(info, "\r\n") {
		if name, count, ok := strings.Cut(line, ":"); ok {
			found[name] = count
		}
	}
	return found
}
