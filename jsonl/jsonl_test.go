package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/leak"
	"github.com/stavedb/stave/jsonl"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m) }

// open opens an empty store.
func open(t *testing.T) *db.Store {
	t.Helper()
	s, err := db.Open(t.TempDir(), &db.Options{Sync: db.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lines imports lines and fails on any error.
func lines(t *testing.T, s *db.Store, text ...string) jsonl.ImportResult {
	t.Helper()
	r, err := jsonl.Import(t.Context(), s, strings.NewReader(strings.Join(text, "\n")), jsonl.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// exported is the sorted export of a store.
func exported(t *testing.T, s *db.Store) string {
	t.Helper()
	var out strings.Builder
	if _, err := jsonl.Export(t.Context(), s, &out, jsonl.ExportOptions{Sort: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func str(key string) string { return fmt.Sprintf(`{"key":%q,"type":"string","value":"v"}`, key) }

// everything is one line of each kind, as an export writes it.
var everything = []string{
	`{"library":"mine","value":"#!lua name=mine\nredis.register_function('f', \"x\")\n"}`,
	`{"library":{"b64":"/w=="},"valueB64":"/gA="}`,
	`{"keyB64":"AP8=","type":"string","valueB64":"/gA="}`,
	`{"key":"hash","type":"hash","value":{"":"","a":"1","b":{"b64":"/w=="}},"field_expire_at_ms":{"a":4102444800000}}`,
	`{"key":"list","type":"list","value":["b","a","b",{"b64":"gA=="},""]}`,
	`{"key":"pairs","type":"hash","value":[["a","1"],[{"b64":"/w=="},"2"]],"field_expire_at_ms":[[{"b64":"/w=="},4102444800000]]}`,
	`{"key":"set","type":"set","value":["a","b",{"b64":"/w=="}]}`,
	`{"key":"stream","type":"stream","expire_at_ms":4102444800001,"value":{"last":"9-9","deleted":"6-0","added":7,"entries":[["1-2","f","v"],["7-0","f","","f",{"b64":"/w=="}]]}}`,
	`{"key":"stream:empty","type":"stream","value":{"last":"3-0","deleted":"0-0","added":2,"entries":[]}}`,
	`{"key":"stream:groups","type":"stream","value":{"last":"9-9","deleted":"0-0","added":1,"entries":[["9-9","f","v"]],"groups":[{"name":"","last":"0-0","read":-1,"consumers":[],"pending":[]},{"name":{"b64":"/w=="},"last":"9-9","read":1,"consumers":[["",3,-1],["c",5,7]],"pending":[["8-0","c",6,2],["9-9","",7,1]]}]}}`,
	`{"key":"string","type":"string","expire_at_ms":4102444800000,"value":"\"\\\n\t\u0000\u007f\u0085é😀"}`,
	`{"key":"zset","type":"zset","expire_at_ms":4102444800001,"value":[["low","-inf"],["a",-1.5],["b",0.1],["c",1e+300],[{"b64":"/w=="},"inf"]]}`,
	`{"db":15,"key":"far","type":"string","value":""}`,
}

// An exported store, imported and exported again, is the same, byte for byte.
func TestThereAndBack(t *testing.T) {
	want := strings.Join(everything, "\n") + "\n"
	first, second := open(t), open(t)
	if r := lines(t, first, everything...); r != (jsonl.ImportResult{Keys: 11, Libraries: 2, Bytes: int64(len(want)) - 1}) {
		t.Errorf("%+v", r)
	}
	got := exported(t, first)
	if got != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
	lines(t, second, got)
	if again := exported(t, second); again != want {
		t.Errorf("got:\n%s\nwant:\n%s", again, want)
	}
}

// An export of some namespaces, of the keys that match, in the order of the store.
func TestExportOptions(t *testing.T) {
	s := open(t)
	lines(t, s, str("a1"), str("a2"), str("b1"), `{"db":2,"key":"a3","type":"string","value":"v"}`)
	var visited []int64
	tests := []struct {
		name string
		o    jsonl.ExportOptions
		want []string
	}{
		{"all", jsonl.ExportOptions{}, []string{"a1", "a2", "a3", "b1"}},
		{"match", jsonl.ExportOptions{Match: "a*"}, []string{"a1", "a2", "a3"}},
		{"match sorted", jsonl.ExportOptions{Match: "*1", Sort: true}, []string{"a1", "b1"}},
		{"one namespace", jsonl.ExportOptions{Namespaces: []int{2}}, []string{"a3"}},
		{"an empty one", jsonl.ExportOptions{Namespaces: []int{7}}, nil},
		{"none", jsonl.ExportOptions{Namespaces: []int{}}, nil},
		{"progress", jsonl.ExportOptions{Progress: func(_, keys int64) { visited = append(visited, keys) }}, []string{"a1", "a2", "a3", "b1"}},
	}
	for _, test := range tests {
		var out strings.Builder
		r, err := jsonl.Export(t.Context(), s, &out, test.o)
		var got []string
		for line := range strings.Lines(out.String()) {
			_, rest, _ := strings.Cut(line, `"key":"`)
			key, _, _ := strings.Cut(rest, `"`)
			got = append(got, key)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, test.want) || r.Keys != int64(len(test.want)) || r.Bytes != int64(out.Len()) {
			t.Errorf("%s: %q, %+v, %v", test.name, got, r, err)
		}
	}
	if !slices.Equal(visited, []int64{0, 1, 2, 3}) {
		t.Errorf("progress %v", visited)
	}
	if _, err := jsonl.Export(t.Context(), s, io.Discard, jsonl.ExportOptions{Namespaces: []int{99}}); !errors.Is(err, db.ErrNamespace) || !strings.Contains(err.Error(), "db 99") {
		t.Errorf("%v", err)
	}
}

// A writer that fails ends the export with its error.
func TestExportIntoNothing(t *testing.T) {
	s := open(t)
	var text []string
	for i := range 5000 {
		text = append(text, str(fmt.Sprint("key with a long name, so that the buffer is full more than once, ", i)))
	}
	lines(t, s, text...)
	full := errors.New("disk full")
	for _, room := range []int{0, 300_000} {
		w := &limitedWriter{room: room, err: full}
		if _, err := jsonl.Export(t.Context(), s, w, jsonl.ExportOptions{}); !errors.Is(err, full) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
}

type limitedWriter struct {
	room int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// A context that ends, ends the export after a whole line.
func TestExportInterrupted(t *testing.T) {
	s := open(t)
	lines(t, s, str("a"), str("b"), str("c"))
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	r, err := jsonl.Export(ctx, s, &out, jsonl.ExportOptions{Progress: func(_, keys int64) {
		if keys == 1 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r.Keys != 2 || !strings.HasSuffix(out.String(), "}\n") {
		t.Errorf("%+v, %v: %s", r, err, out.String())
	}
}

// The first bad line ends an import; those before it are stored, those after it are not.
func TestBadLineEndsAnImport(t *testing.T) {
	s := open(t)
	r, err := jsonl.Import(t.Context(), s, strings.NewReader(str("a")+"\n\n# comment\n"+str("b")+"\n{}\n"+str("c")+"\n"), jsonl.ImportOptions{})
	e, ok := errors.AsType[*jsonl.LineError](err)
	if !ok || e.Line != 5 || err.Error() != "line 5: no key" || errors.Unwrap(err) != e.Err {
		t.Errorf("%v", err)
	}
	if r.Keys != 2 || r.Skipped != 0 || exported(t, s) != str("a")+"\n"+str("b")+"\n" {
		t.Errorf("%+v\n%s", r, exported(t, s))
	}
}

// BadLine gets every bad line in its turn, those that the store refuses as well, when all before are stored.
func TestBadLinesAreSkipped(t *testing.T) {
	s := open(t)
	long := strings.Repeat("k", 70_000)
	text := []string{str("a"), "{", str(long), str("b"), `{"key":"k","type":"string","value":"v","db":99}`, str("c")}
	var bad []int
	var stored []int
	r, err := jsonl.Import(t.Context(), s, strings.NewReader(strings.Join(text, "\n")), jsonl.ImportOptions{BadLine: func(e *jsonl.LineError) error {
		bad = append(bad, e.Line)
		stored = append(stored, strings.Count(exported(t, s), "\n"))
		return nil
	}})
	if err != nil || !slices.Equal(bad, []int{2, 3, 5}) || !slices.Equal(stored, []int{1, 1, 2}) {
		t.Errorf("%v, %v, %v", bad, stored, err)
	}
	if r.Keys != 3 || r.Skipped != 3 || exported(t, s) != str("a")+"\n"+str("b")+"\n"+str("c")+"\n" {
		t.Errorf("%+v\n%s", r, exported(t, s))
	}
}

// What BadLine returns is what the import returns.
func TestBadLineDecides(t *testing.T) {
	s := open(t)
	enough := errors.New("enough")
	n := 0
	_, err := jsonl.Import(t.Context(), s, strings.NewReader("{\n{\n{\n"+str("never")), jsonl.ImportOptions{BadLine: func(*jsonl.LineError) error {
		if n++; n == 2 {
			return enough
		}
		return nil
	}})
	if err != enough || n != 2 || exported(t, s) != "" {
		t.Errorf("%v after %d lines", err, n)
	}
}

func TestImportOptions(t *testing.T) {
	s := open(t)
	var bytes, keys []int64
	r, err := jsonl.Import(t.Context(), s, strings.NewReader(str("a")+"\n"+`{"db":0,"key":"b","type":"string","value":"v"}`+"\n"), jsonl.ImportOptions{
		Namespace: 3,
		Progress: func(b, k int64) {
			bytes, keys = append(bytes, b), append(keys, k)
		},
	})
	if err != nil || r.Keys != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.Equal(bytes, []int64{40, 87}) || !slices.Equal(keys, []int64{0, 0}) { // both in one batch
		t.Errorf("progress: %v bytes, %v keys", bytes, keys)
	}
	if got := exported(t, s); got != str("b")+"\n"+`{"db":3,"key":"a","type":"string","value":"v"}`+"\n" {
		t.Errorf("%s", got)
	}
}

// What an input gave before it failed is stored, and its error is the import's.
func TestInputThatFails(t *testing.T) {
	s := open(t)
	broken := errors.New("broken pipe")
	r := io.MultiReader(strings.NewReader(str("a")+"\n"+str("half")[:10]), iotest.ErrReader(broken))
	if _, err := jsonl.Import(t.Context(), s, r, jsonl.ImportOptions{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if got := exported(t, s); got != str("a")+"\n" {
		t.Errorf("%s", got)
	}
}

// An import whose context ends has stored the lines it has read.
func TestImportInterrupted(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := jsonl.Import(ctx, s, strings.NewReader(str("a")+"\n"+str("b")+"\n"+str("c")), jsonl.ImportOptions{Progress: func(int64, int64) {
		if n++; n == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || exported(t, s) != str("a")+"\n"+str("b")+"\n" {
		t.Errorf("%v\n%s", err, exported(t, s))
	}
}

// A store that takes no writes fails the import with the first line that is not stored, and asks BadLine nothing.
func TestStoreThatFails(t *testing.T) {
	s := open(t)
	im := jsonl.NewImporter(s, jsonl.ImportOptions{BadLine: func(e *jsonl.LineError) error {
		t.Errorf("asked about %v", e)
		return nil
	}})
	for i, key := range []string{"a", "b"} {
		if err := im.Add(10+i, []byte(str(key))); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	err := im.Flush()
	e, ok := errors.AsType[*jsonl.LineError](err)
	if !ok || e.Line != 10 || !errors.Is(err, db.ErrClosed) || !strings.Contains(err.Error(), "storing lines 10 to 11") {
		t.Errorf("%v", err)
	}
	if r := im.Result(); r != (jsonl.ImportResult{}) {
		t.Errorf("%+v", r)
	}
}

// Lines that were added are in the store once they were flushed, or once there are a thousand.
func TestImporter(t *testing.T) {
	s := open(t)
	im := jsonl.NewImporter(s, jsonl.ImportOptions{})
	line := []byte(str("a"))
	if err := im.Add(1, line); err != nil {
		t.Fatal(err)
	}
	copy(line, "overwritten by the caller")
	if got := exported(t, s); got != "" || im.Result().Keys != 0 {
		t.Errorf("stored at once: %s", got)
	}
	im.SetNamespace(1)
	if err := im.Add(2, []byte(str("b"))); err != nil {
		t.Fatal(err)
	}
	if err := im.Flush(); err != nil {
		t.Fatal(err)
	}
	want := str("a") + "\n" + `{"db":1,"key":"b","type":"string","value":"v"}` + "\n"
	if got := exported(t, s); got != want || im.Result().Keys != 2 {
		t.Errorf("%s", got)
	}
	for i := range 1500 {
		if err := im.Add(i, []byte(str(fmt.Sprint(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if got := im.Result().Keys; got != 1002 {
		t.Errorf("%d keys", got)
	}
	if err := im.Refuse(7, errors.New("of the caller")); err == nil || err.Error() != "line 7: of the caller" || im.Result().Keys != 1502 {
		t.Errorf("%v, %d keys", err, im.Result().Keys)
	}
	if err := im.Flush(); err != nil {
		t.Errorf("nothing to flush: %v", err)
	}
}

// A deadline that has passed means no key, as does a collection of nothing; ttl_ms counts from now.
func TestDeadlinesOfAnImport(t *testing.T) {
	s := open(t)
	lines(t, s, str("past"), str("empty"), str("in"))
	r := lines(t, s,
		`{"key":"past","type":"string","value":"v","expire_at_ms":1}`,
		`{"key":"empty","type":"set","value":[],"ttl_ms":1000}`,
		`{"key":"in","type":"string","value":"v","ttl_ms":3600000}`,
		`{"key":"fields","type":"hash","value":{"a":"1","b":"2"},"field_expire_at_ms":{"a":1}}`)
	if r.Keys != 3 || r.Expired != 1 {
		t.Errorf("%+v", r)
	}
	for key, want := range map[string]bool{"past": false, "empty": false, "in": true, "fields": true} {
		if got, err := s.Key(key).Exists(); err != nil || got != want {
			t.Errorf("%s: %v, %v", key, got, err)
		}
	}
	if left, err := s.Key("in").TTL(); err != nil || left <= 59*time.Minute || left > time.Hour {
		t.Errorf("%v, %v", left, err)
	}
	if fields, err := s.Hash("fields").Fields(); err != nil || !slices.Equal(fields, []string{"b"}) {
		t.Errorf("%q, %v", fields, err)
	}
}

// An export is possible while others write: each key is whole, and no key that stays is missed.
func TestExportBesideWriters(t *testing.T) {
	s := open(t)
	var stay []string
	for i := range 3000 {
		stay = append(stay, str(fmt.Sprint("stays", i)))
	}
	lines(t, s, stay...)
	stop := make(chan struct{})
	done := make(chan error)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := s.Hash("h").PutAll(db.Field{Name: "a", Value: fmt.Append(nil, i)}, db.Field{Name: "b", Value: fmt.Append(nil, i)}); err != nil {
				done <- err
				return
			}
			if err := s.String(fmt.Sprint("comes", i%5000)).Put([]byte("v")); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 3 {
		var out strings.Builder
		if _, err := jsonl.Export(t.Context(), s, &out, jsonl.ExportOptions{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), `"stays`); n != len(stay) {
			t.Errorf("%d of %d keys", n, len(stay))
		}
		if _, hash, ok := strings.Cut(out.String(), `"h","type":"hash","value":{"a":"`); ok {
			a, rest, _ := strings.Cut(hash, `"`)
			if !strings.HasPrefix(rest, `,"b":"`+a+`"`) {
				t.Errorf("half of a hash: %.60s", hash)
			}
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestLibraries: a library replaces one of its name, an export of chosen keys has none, and a caller can take and
// refuse them.
func TestLibraries(t *testing.T) {
	store := open(t)
	lines(t, store, `{"library":"a","value":"1"}`, str("k"), `{"library":"b","value":"2"}`, `{"value":"3","library":"a"}`)
	if got, err := serverside.DB.Libraries(store); err != nil || !maps.Equal(got, map[string]string{"a": "3", "b": "2"}) {
		t.Errorf("%q, %v", got, err)
	}
	var out strings.Builder
	for _, o := range []jsonl.ExportOptions{{Namespaces: []int{0}}, {Match: "*"}} {
		out.Reset()
		if r, err := jsonl.Export(context.Background(), store, &out, o); err != nil || out.String() != str("k")+"\n" || r.Libraries != 0 {
			t.Errorf("%+v, %v: %s", r, err, out.String())
		}
	}
	out.Reset()
	if r, err := jsonl.Export(context.Background(), store, &out, jsonl.ExportOptions{}); err != nil || r.Libraries != 2 || r.Bytes != int64(out.Len()) {
		t.Errorf("%+v, %v", r, err)
	}
	taken := map[string]string{}
	second := open(t)
	r, err := jsonl.Import(context.Background(), second, strings.NewReader(str("before")+"\n"+out.String()), jsonl.ImportOptions{
		Library: func(name, text string) error {
			if there, err := second.Key("before").Exists(); !there || err != nil {
				t.Errorf("the key before a library is there: %v, %v", there, err)
			}
			if name == "b" {
				return errors.New("refused")
			}
			taken[name] = text
			return nil
		},
		BadLine: func(*jsonl.LineError) error { return nil },
	})
	if err != nil || r.Keys != 2 || r.Libraries != 1 || r.Skipped != 1 || !maps.Equal(taken, map[string]string{"a": "3"}) {
		t.Errorf("%+v, %v, %q", r, err, taken)
	}
}
