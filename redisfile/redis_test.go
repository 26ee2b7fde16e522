package redisfile_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
	"github.com/stavedb/stave/jsonl"
	"github.com/stavedb/stave/redisfile"
)

var keys = flag.Int("transfer.keys", 10_000, "how many keys of all types go through a real redis-server")

// A redis is a redis-server of a test.
type redis struct {
	redisserver.Server
	t *testing.T
}

// startRedis starts a redis-server that loads a file, unless that is "".
func startRedis(t *testing.T, file string) redis {
	t.Helper()
	return redis{redisserver.Start(t, file), t}
}

// A filling writes commands for a Redis.
type filling struct {
	out *bytes.Buffer
	r   *rand.Rand
}

func (f filling) command(args ...any) {
	fmt.Fprintf(f.out, "*%d\r\n", len(args))
	for _, arg := range args {
		text := fmt.Sprint(arg)
		fmt.Fprintf(f.out, "$%d\r\n%s\r\n", len(text), text)
	}
}

// repeat is a command with n times what one returns.
func (f filling) repeat(n int, command, key string, one func(i int) []any) {
	args := []any{command, key}
	for i := range n {
		args = append(args, one(i)...)
	}
	f.command(args...)
}

func (f filling) number() int64 { return f.r.Int64N(1<<(1+f.r.IntN(62))) - 1<<f.r.IntN(61) }

func (f filling) text() string {
	return strings.Repeat(fmt.Sprintf("\x00\xff%x", f.r.Uint32()), 1+f.r.IntN(12))
}

// size is how many elements a collection has: few, so that it is packed, or now and then many.
func (f filling) size() int {
	if f.r.IntN(50) == 0 {
		return 600
	}
	return 1 + f.r.IntN(8)
}

// key makes a key of a random type and encoding.
func (f filling) key(i int) {
	key := fmt.Sprintf("key:%d", i)
	switch f.r.IntN(11) {
	case 0:
		f.command("SET", key, f.number())
	case 1:
		f.command("SET", key, f.text())
	case 2:
		f.command("SET", key, strings.Repeat("abc", f.r.IntN(1000)))
	case 3:
		f.repeat(f.size(), "RPUSH", key, func(int) []any { return []any{f.number()} })
	case 4:
		f.repeat(f.size(), "RPUSH", key, func(int) []any { return []any{f.text()} })
	case 5:
		f.repeat(f.size(), "SADD", key, func(int) []any { return []any{f.number()} })
	case 6:
		f.repeat(f.size(), "SADD", key, func(i int) []any { return []any{fmt.Sprint("member ", i)} })
	case 7, 8:
		f.repeat(f.size(), "HSET", key, func(i int) []any { return []any{fmt.Sprint("field ", i), f.text()} })
	case 9:
		f.repeat(f.size(), "ZADD", key, func(i int) []any {
			return []any{[]any{f.r.NormFloat64(), i, "inf", "-inf", 1e300}[f.r.IntN(5)], fmt.Sprint("member ", i)}
		})
	case 10:
		for j := range f.size() {
			f.command("XADD", key, fmt.Sprintf("%d-%d", j/3, j%3+1), "field", f.text(), []string{"a", "b"}[f.r.IntN(2)], j)
		}
		f.command("XDEL", key, "0-2")
	}
	if f.r.IntN(4) == 0 {
		f.command("PEXPIREAT", key, 4102444800000+f.r.Int64N(1e9))
	}
}

// fill puts keys of every type and encoding into several databases.
func (r redis) fill(n int) {
	f := filling{&bytes.Buffer{}, chance.Rand(r.t)}
	for i := range n {
		if i%max(n/5, 1) == 0 {
			f.command("SELECT", i/max(n/5, 1)*3)
		}
		f.key(i)
		if f.out.Len() > 16<<20 || i == n-1 {
			if out, err := r.CLI(f.out, "--pipe"); err != nil || !strings.Contains(out, "errors: 0") {
				r.t.Fatalf("%s, %v", out, err)
			}
			f.out.Reset()
			f.command("SELECT", i/max(n/5, 1)*3)
		}
	}
}

// TestThroughRedis takes what a redis-server has saved, gives it to another one, and has both judge all keys, values
// and deadlines.
func TestThroughRedis(t *testing.T) {
	first := startRedis(t, "")
	if testing.Short() {
		*keys = min(*keys, 1000)
	}
	first.fill(*keys)
	first.fillGroup()
	digest, saved := first.Do("DEBUG", "DIGEST"), first.Save()
	store, err := db.Open(t.TempDir(), &db.Options{Sync: db.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	in, err := os.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	began := time.Now()
	result, err := redisfile.ImportRDB(context.Background(), store, in, redisfile.ImportOptions{})
	if err != nil || result.Keys < int64(*keys)*99/100 || len(result.LeftOut) > 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	t.Logf("%d keys, %d bytes in: %v", result.Keys, result.Bytes, time.Since(began))
	for _, version := range []int{9, 10} {
		path := filepath.Join(t.TempDir(), "out.rdb")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		exported, err := redisfile.ExportRDB(context.Background(), store, out, redisfile.ExportOptions{Version: version})
		if err != nil || out.Close() != nil || exported.Keys != result.Keys {
			t.Fatalf("%+v, %v", exported, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != exported.Bytes {
			t.Errorf("%v, %v, said %d", info, err, exported.Bytes)
		}
		t.Logf("version %d, %d bytes out: %v", version, exported.Bytes, time.Since(began))
		if text, err := exec.Command("redis-check-rdb", path).CombinedOutput(); err != nil {
			t.Errorf("redis-check-rdb: %s, %v", text, err)
		}
		second := startRedis(t, path)
		if got := second.Do("DEBUG", "DIGEST"); got != digest {
			t.Errorf("version %d: the digest of all keys is %s, was %s", version, got, digest)
		}
		if got, want := second.Do("XPENDING", "grouped", "g"), first.Do("XPENDING", "grouped", "g"); got != want {
			t.Errorf("version %d: what is pending is %s, was %s", version, got, want)
		}
	}
}

// TestCommandsIntoRedis has a redis-server run the commands that make all keys of another one.
func TestCommandsIntoRedis(t *testing.T) {
	first := startRedis(t, "")
	first.fill(1000)
	first.fillGroup()
	store := memory(t)
	in, err := os.Open(first.Save())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := redisfile.ImportRDB(context.Background(), store, in, redisfile.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exported, err := redisfile.ExportAOF(context.Background(), store, &out, redisfile.ExportOptions{})
	if err != nil || exported.Bytes != int64(out.Len()) {
		t.Fatalf("%+v of %d bytes, %v", exported, out.Len(), err)
	}
	second := startRedis(t, "")
	if text, err := second.CLI(&out, "--pipe"); err != nil || !strings.Contains(text, "errors: 0") {
		t.Fatalf("%s, %v", text, err)
	}
	if got, want := second.Do("DEBUG", "DIGEST"), first.Do("DEBUG", "DIGEST"); got != want {
		t.Errorf("the digest of all keys is %s, was %s", got, want)
	}
	if got, want := second.group(), first.group(); got != want {
		t.Errorf("the group is %s, was %s", got, want)
	}
}

// fillGroup makes a stream with a group, which a digest does not show.
func (r redis) fillGroup() {
	r.t.Helper()
	for _, command := range []string{"XADD grouped 1-1 f v", "XADD grouped 2-1 f v", "XGROUP CREATE grouped g 0", "XREADGROUP GROUP g c COUNT 1 STREAMS grouped >"} {
		r.Do(strings.Fields(command)...)
	}
}

// group is all of that group but times.
func (r redis) group() string {
	r.t.Helper()
	return r.Do("XINFO", "GROUPS", "grouped") + r.Do("XPENDING", "grouped", "g")
}

// lines is a store as sorted lines of JSON.
func lines(t *testing.T, store *db.Store) string {
	t.Helper()
	var out strings.Builder
	if _, err := jsonl.Export(context.Background(), store, &out, jsonl.ExportOptions{Sort: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func memory(t *testing.T) *db.Store {
	t.Helper()
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

const everyType = `{"key":"string","type":"string","value":"x","expire_at_ms":4102444800000}
{"key":"empty","type":"string","value":""}
{"key":"list","type":"list","value":["a","-5",""]}
{"key":"set","type":"set","value":["a","12"]}
{"key":"zset","type":"zset","value":[["low","-inf"],["a",0.1],["b",1.5]]}
{"key":"hash","type":"hash","value":{"a":"1","b":"2"}}
{"key":"timed","type":"hash","value":{"a":"1","b":"2","c":"3"},"field_expire_at_ms":{"b":4102444800000,"c":4102444800005}}
{"key":"stream","type":"stream","value":{"last":"9-1","deleted":"8-0","added":7,"entries":[["7-0","temp","21"],["7-1","temp","22","also","x"]]}}
{"key":"bare","type":"stream","value":{"last":"9-1","deleted":"8-0","added":7,"entries":[]}}
{"key":"groups","type":"stream","value":{"last":"9-9","deleted":"0-0","added":1,"entries":[["9-9","f","v"]],"groups":[{"name":"g","last":"9-9","read":1,"consumers":[["c",5,5],["d",7,7]],"pending":[["9-9","c",6,2]]}]}}
{"db":5,"key":"far","type":"string","value":"x"}
`

// TestRoundTrip writes every version and reads it again.
func TestRoundTrip(t *testing.T) {
	store := memory(t)
	if _, err := jsonl.Import(context.Background(), store, strings.NewReader(everyType), jsonl.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	want := lines(t, store)
	for _, version := range []int{9, 10, 11, 12, redisfile.ValkeyVersion} {
		var file bytes.Buffer
		exported, err := redisfile.ExportRDB(context.Background(), store, &file, redisfile.ExportOptions{Version: version})
		if err != nil || exported.Keys != 11 || exported.Bytes != int64(file.Len()) {
			t.Fatalf("version %d: %+v, %v", version, exported, err)
		}
		want := want
		if version < 12 {
			want = strings.Replace(want, `,"field_expire_at_ms":{"b":4102444800000,"c":4102444800005}`, "", 1)
		}
		if lost := map[bool]int64{true: 2}[version < 12]; exported.FieldDeadlines != lost {
			t.Errorf("version %d: %d deadlines of fields are lost, want %d", version, exported.FieldDeadlines, lost)
		}
		if version < 10 { // which does not know what was deleted
			want = strings.ReplaceAll(want, `"deleted":"8-0","added":7,"entries":[[`, `"deleted":"0-0","added":2,"entries":[[`)
			want = strings.ReplaceAll(want, `"deleted":"8-0","added":7`, `"deleted":"0-0","added":0`)
		}
		again := memory(t)
		if _, err := again.String("far").Append([]byte("what was there")); err != nil {
			t.Fatal(err)
		}
		if _, err := again.Key("far").Delete(); err != nil {
			t.Fatal(err)
		}
		if _, err := again.List("string").PushBack([]byte("what was there")); err != nil {
			t.Fatal(err)
		}
		result, err := redisfile.ImportRDB(context.Background(), again, &file, redisfile.ImportOptions{})
		if got := lines(t, again); err != nil || result.Keys != 11 || got != want {
			t.Errorf("version %d: %+v, %v\n%s\nwant\n%s", version, result, err, got, want)
		}
	}
	for _, version := range []int{8, 13, 79, 81} {
		if _, err := redisfile.ExportRDB(context.Background(), store, io.Discard, redisfile.ExportOptions{Version: version}); err == nil {
			t.Errorf("version %d was written", version)
		}
	}
}

// TestLarge carries values that take several pieces, over keys that hold something else.
func TestLarge(t *testing.T) {
	store := memory(t)
	element := strings.Repeat("e", 1000)
	if err := store.String("string").Put([]byte(strings.Repeat("0123456789", 1e6))); err != nil {
		t.Fatal(err)
	}
	err := store.Update(func(tx *db.Tx) error {
		for i := range 9000 {
			name := fmt.Sprint(element, i)
			if _, err := tx.List("list").PushBack([]byte(name)); err != nil {
				return err
			}
			if _, err := tx.Set("set").Add(name); err != nil {
				return err
			}
			if _, err := tx.Hash("hash").Put(name, []byte("v")); err != nil {
				return err
			}
			if _, err := tx.SortedSet("zset").Add(db.Scored{Member: name, Score: float64(i)}); err != nil {
				return err
			}
			if _, err := tx.Stream("stream").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: uint64(i + 1)}}, db.Field{Name: "f", Value: []byte(name)}); err != nil {
				return err
			}
		}
		for _, key := range []string{"string", "list", "set", "hash", "zset", "stream"} {
			if _, err := tx.Key(key).ExpireAt(time.UnixMilli(4102444800000)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := redisfile.ExportRDB(context.Background(), store, &file, redisfile.ExportOptions{Version: 10}); err != nil {
		t.Fatal(err)
	}
	data, want := file.Bytes(), lines(t, store)
	again := memory(t)
	for _, key := range []string{"string", "list", "set", "hash", "zset", "stream"} {
		if _, err := again.Set(key).Add("what was there"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := redisfile.ImportRDB(context.Background(), again, bytes.NewReader(data), redisfile.ImportOptions{}); err != nil || lines(t, again) != want {
		t.Errorf("a copy is different, %v", err)
	}
	// Cut within its values, no key is there in part.
	for at := 3 << 20; at < len(data); at += 13 << 20 {
		cut := memory(t)
		if _, err := redisfile.ImportRDB(context.Background(), cut, bytes.NewReader(data[:at]), redisfile.ImportOptions{}); err == nil {
			t.Errorf("cut at %d: no error", at)
		}
		for line := range strings.Lines(lines(t, cut)) {
			if !strings.Contains(want, line) {
				t.Errorf("cut at %d: a part of a key is stored: %s", at, line[:60])
			}
		}
	}
}
