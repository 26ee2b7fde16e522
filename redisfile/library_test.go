package redisfile_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/redisfile"
)

// libraries are two libraries of functions: one that Redis compresses in its files, and one with bytes that are no
// text.
var libraries = map[string]string{
	"long":  "#!lua name=long\nredis.register_function('twice', function(_, args) return args[1] .. args[1] end)\n" + strings.Repeat("-- a comment\n", 1000),
	"bytes": "#!LUA  'name=bytes'\nredis.register_function('one', function() return '\x01\xff' end)\n",
}

// put stores libraries without looking into them.
func put(t *testing.T, store *db.Store, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		if err := store.Update(func(tx *db.Tx) error {
			return serverside.DB.PutLibrary(tx, name, text)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// holds reports an error unless the libraries of a store are want.
func holds(t *testing.T, store *db.Store, want map[string]string) {
	t.Helper()
	if got, err := serverside.DB.Libraries(store); err != nil || !maps.Equal(got, want) {
		t.Errorf("libraries %.300q, %v; want %.300q", got, err, want)
	}
}

// TestLibrariesThroughRedis takes libraries from a redis-server through a store to others: by a file and by commands.
func TestLibrariesThroughRedis(t *testing.T) {
	first := startRedis(t, "")
	for _, text := range libraries {
		first.Do("FUNCTION", "LOAD", text)
	}
	first.Do("SET", "k", "v")
	store := memory(t)
	put(t, store, map[string]string{"long": "what was there"})
	in, err := os.Open(first.Save())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	result, err := redisfile.ImportRDB(context.Background(), store, in, redisfile.ImportOptions{})
	if err != nil || result.Keys != 1 || result.Libraries != 2 || len(result.LeftOut) > 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	holds(t, store, libraries)

	path := filepath.Join(t.TempDir(), "out.rdb")
	var file, commands bytes.Buffer
	if r, err := redisfile.ExportRDB(context.Background(), store, &file, redisfile.ExportOptions{}); err != nil || r.Libraries != 2 || r.LibrariesLeftOut != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("redis-check-rdb", path).CombinedOutput(); err != nil {
		t.Errorf("redis-check-rdb: %s, %v", text, err)
	}
	byFile, byCommands := startRedis(t, path), startRedis(t, "")
	if r, err := redisfile.ExportAOF(context.Background(), store, &commands, redisfile.ExportOptions{}); err != nil || r.Libraries != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for range 2 { // the second time over what the first has made
		if text, err := byCommands.CLI(bytes.NewReader(commands.Bytes()), "--pipe"); err != nil || !strings.Contains(text, "errors: 0") {
			t.Fatalf("%s, %v", text, err)
		}
	}
	for _, second := range []redis{byFile, byCommands} {
		for name := range libraries {
			list := []string{"FUNCTION", "LIST", "LIBRARYNAME", name, "WITHCODE"}
			if got, want := second.Do(list...), first.Do(list...); got != want {
				t.Errorf("%.400s\nwas\n%.400s", got, want)
			}
		}
		if got := second.Do("FCALL", "twice", "0", "x") + second.Do("GET", "k"); got != "xxv" {
			t.Errorf("a function and a key are %q", got)
		}
	}
}

// TestLibraryVersions writes libraries in every version: the first one cannot hold them, and is not the default then.
func TestLibraryVersions(t *testing.T) {
	for version := 0; version <= redisfile.NewestVersion; version++ {
		if version > 0 && version < redisfile.OldestVersion {
			continue
		}
		store, again := memory(t), memory(t)
		put(t, store, libraries)
		var file bytes.Buffer
		r, err := redisfile.ExportRDB(context.Background(), store, &file, redisfile.ExportOptions{Version: version})
		want, left := libraries, int64(0)
		if version == 9 {
			want, left = map[string]string{}, 2
		}
		if err != nil || r.Libraries != int64(len(want)) || r.LibrariesLeftOut != left {
			t.Errorf("version %d: %+v, %v", version, r, err)
		}
		if version == 0 && !strings.HasPrefix(file.String(), "REDIS0010") {
			t.Errorf("the default is %.9q", file.String())
		}
		if _, err := redisfile.ImportRDB(context.Background(), again, &file, redisfile.ImportOptions{}); err != nil {
			t.Error(err)
		}
		holds(t, again, want)
	}
}

// TestSomeKeysOnly: who chooses keys gets no libraries, and a store without any has the oldest version by default.
func TestSomeKeysOnly(t *testing.T) {
	store := memory(t)
	put(t, store, libraries)
	for _, o := range []redisfile.ExportOptions{{Namespaces: []int{0}}, {Match: "*"}} {
		var file bytes.Buffer
		r, err := redisfile.ExportRDB(context.Background(), store, &file, o)
		if err != nil || r.Libraries != 0 || r.LibrariesLeftOut != 0 || !strings.HasPrefix(file.String(), "REDIS0009") {
			t.Errorf("%+v, %v, %.9q", r, err, file.String())
		}
		if r, err := redisfile.ExportAOF(context.Background(), store, &file, o); err != nil || r.Libraries != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestLibraryRefused: the store, or the caller, refuses a library, which BadKey may skip; keys before it and after it
// are stored.
func TestLibraryRefused(t *testing.T) {
	source := memory(t)
	if err := source.String("k").Put([]byte("v")); err != nil {
		t.Fatal(err)
	}
	put(t, source, map[string]string{"good": "#!lua name=good\n", "bad": "no first line", "worse": "#!lua name=a.b\n"})
	var file bytes.Buffer
	if _, err := redisfile.ExportRDB(context.Background(), source, &file, redisfile.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	store := memory(t)
	_, err := redisfile.ImportRDB(context.Background(), store, bytes.NewReader(file.Bytes()), redisfile.ImportOptions{})
	if e, ok := errors.AsType[*redisfile.KeyError](err); !ok || !e.Library || e.Key != "" || e.Offset == 0 {
		t.Errorf("%v", err)
	}
	skip := func(*redisfile.KeyError) error { return nil }
	r, err := redisfile.ImportRDB(context.Background(), store, bytes.NewReader(file.Bytes()), redisfile.ImportOptions{BadKey: skip})
	if err != nil || r.Keys != 1 || r.Libraries != 1 || r.Skipped != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, store, map[string]string{"good": "#!lua name=good\n"})
	refuse := func(text string) error { return errors.New("not " + text) }
	store = memory(t)
	r, err = redisfile.ImportRDB(context.Background(), store, bytes.NewReader(file.Bytes()), redisfile.ImportOptions{BadKey: skip, Library: refuse})
	if err != nil || r.Keys != 1 || r.Libraries != 0 || r.Skipped != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, store, map[string]string{})
}
