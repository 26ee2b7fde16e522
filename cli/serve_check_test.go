//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestServeJudgesFirst: whatever is wrong with the settings is status 2, before a store, a socket or a log file is made,
// and before anything is said to be ready; --check-config says the same.
func TestServeJudgesFirst(t *testing.T) {
	t.Setenv("STAVE_DIR", "")
	for _, tt := range []struct {
		file  string
		flags []string
		want  []string
	}{
		{"user bob on >x +@al ~*\n", nil, []string{"serve.conf:4: user: "}},
		{"user bob on >x +@al ~*\nuser eve on ~* +gett\nport x\n", nil, []string{"serve.conf:4: user: ", "serve.conf:5: user: ", "serve.conf:6: port: "}},
		{"", []string{"--http", "0.0.0.0:0"}, []string{"refusing to serve /metrics"}},
		{"", []string{"--http", ":0"}, []string{"refusing to serve /metrics"}},
		{"", []string{"--http", "nonsense"}, []string{"http: nonsense: "}},
		{"http-addr 192.0.2.1:0\n", nil, []string{"refusing to serve /metrics"}},
		{"http-addr 0.0.0.0:0\nbind 0.0.0.0\nport 1\n", nil, []string{"refusing to serve /metrics", "has no password"}},
		{"aclfile gone.acl\nhttp-addr 0.0.0.0:0\n", nil, []string{"gone.acl: no such file", "refusing to serve /metrics"}},
		{"tls-port 1\ntls-cert-file gone.pem\ntls-key-file gone.key\nhttp-addr 0.0.0.0:0\n", nil, []string{"gone.pem: no such file", "refusing to serve /metrics"}},
		{"", []string{"--port", "x", "--protected-mode", "perhaps"}, []string{"--port: ", "--protected-mode: "}},
		{"bind 999.0.0.1\nuser eve on\naclfile gone.acl\nport x\n", nil, []string{"serve.conf:4: bind: ", "serve.conf:5: users stand in ", "serve.conf:7: port: "}},
		{"segment-size 3gb\n", nil, []string{"serve.conf:4: segment-size: "}},
		{"databases 0\n", []string{"--port", "x"}, []string{"serve.conf:4: databases: ", "--port: "}},
	} {
		dir := t.TempDir()
		file, data, log := filepath.Join(dir, "serve.conf"), filepath.Join(dir, "data"), filepath.Join(dir, "log")
		if err := os.WriteFile(file, []byte("port 0\nunixsocket "+filepath.Join(dir, "s")+"\nlogfile "+log+"\n"+tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, option := range []string{"--config", "--check-config"} {
			for _, text := range tt.want {
				want(t, "", text, 2, "", append([]string{"serve", "--dir", data, option, file}, tt.flags...)...)
			}
		}
		if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
			t.Errorf("%q: made %v, %v", tt.file, names, err)
		}
	}
}

// TestCheckConfig: a file that is right is said to be, with its warnings, and nothing is made.
func TestCheckConfig(t *testing.T) {
	t.Setenv("STAVE_DIR", "")
	dir := t.TempDir()
	file := filepath.Join(dir, "redis.conf")
	text := "dir " + filepath.Join(dir, "data") + "\nlogfile " + filepath.Join(dir, "log") + "\ndaemonize yes\nport 6379\npidfile /run/p\nappendonly no\nhttp-addr 127.0.0.1:1\nuser default on >p4ss ~* &* +@all\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, file+": right, stave serve starts with it\n", "warning: "+file+":3: daemonize yes has no effect: ", 0, "", "serve", "--check-config", file)
	want(t, file+": right, stave serve starts with it\n", "warning: "+file+": 2 settings have no effect here: pidfile, appendonly\n", 0, "", "serve", "--check-config", file)
	want(t, "", "--check-config and --config both name the file", 2, "", "serve", "--check-config", file, "--config", file)
	want(t, "", "no such file", 2, "", "serve", "--check-config", file+"2")
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
		t.Errorf("made %v, %v", names, err)
	}
}
