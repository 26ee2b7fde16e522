package scripting_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/script"
)

func newCache() *scripting.Cache {
	c := new(scripting.Cache)
	c.Init(func(word string) bool { return word == "set" })
	return c
}

func TestScriptsAreFoundAgain(t *testing.T) {
	c := newCache()
	source := "return redis.call('SET', KEYS[1], 'v')"
	p, err := c.Load(source, false)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Writes.Load() || p.AllKeys.Load() {
		t.Errorf("a script that names SET writes: %t; to all keys: %t", p.Writes.Load(), p.AllKeys.Load())
	}
	again, err := c.Load(source, true)
	if err != nil || again != p || c.OfSource([]byte(source)) != p || c.Lookup(script.SHA(source)) != p || c.OfSHA([]byte(strings.ToUpper(script.SHA(source)))) != p || c.Lookup(strings.Repeat("0", 40)) != nil {
		t.Errorf("the script is not the same again: %v", err)
	}
	if reader, err := c.Load("return redis.call('GET', KEYS[1])", false); err != nil || reader.Writes.Load() || reader.AllKeys.Load() {
		t.Errorf("a script that names GET: %v", err)
	}
	if n, bytes := c.Usage(); n != 2 || bytes <= len(source) {
		t.Errorf("%d scripts of %d bytes", n, bytes)
	}
	c.Flush()
	if n, bytes := c.Usage(); n != 0 || bytes != 0 || c.OfSource([]byte(source)) != nil {
		t.Errorf("after a flush: %d scripts of %d bytes", n, bytes)
	}
}

// Of scripts that only EVAL has brought the least recently used goes; one that was loaded stays.
func TestOldestEvaluatedScriptGoes(t *testing.T) {
	c := newCache()
	load := func(i int, keep bool) {
		t.Helper()
		if _, err := c.Load(fmt.Sprint("return ", i), keep); err != nil {
			t.Fatal(err)
		}
	}
	load(0, true)
	for i := 1; i <= 500; i++ {
		load(i, false)
	}
	load(1, false) // used again
	load(3, true)  // kept from now on
	load(501, false)
	load(502, false)
	for i, want := range map[int]bool{0: true, 1: true, 2: false, 3: true, 4: true, 501: true, 502: true} {
		if (c.Lookup(script.SHA(fmt.Sprint("return ", i))) != nil) != want {
			t.Errorf("script %d is known: %t", i, !want)
		}
	}
	if n, _ := c.Usage(); n != 502 {
		t.Errorf("%d scripts are kept", n)
	}
}

// What scripts are counted is what they take on the heap, whatever they are made of.
func TestScriptsTakeWhatIsCounted(t *testing.T) {
	heap := func() int {
		runtime.GC()
		runtime.GC() // pools release what they have in two steps
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
	for part, n := range map[string]int{"x=y ": 20_000, "f() ": 20_000, "local function f(a) return a end ": 190, "t={function() end,function() end} ": 2000, "t={{},{},{},{}} ": 5000, "x='a long text of some words' ": 5000, "x=1 --a comment\n": 20_000} {
		c := newCache()
		before := heap()
		if _, err := c.Load(strings.Repeat(part, n), false); err != nil {
			t.Fatal(err)
		}
		took := heap() - before
		_, counted := c.Usage()
		t.Logf("%d times %q: %d bytes, counted %d", n, part, took, counted)
		if took > 2*counted || counted > 2*took {
			t.Errorf("%d times %q takes %d bytes, and %d are counted", n, part, took, counted)
		}
		runtime.KeepAlive(c)
	}
}

// A full cache forgets what EVAL has brought, and then refuses.
func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	comment := " --" + strings.Repeat("x", 1<<20-64)
	load := func(i int, keep bool) error {
		_, err := c.Load(fmt.Sprint("return ", i, comment), keep)
		return err
	}
	for i := range 258 {
		if err := load(i, false); err != nil {
			t.Fatalf("script %d of EVAL: %v", i, err)
		}
	}
	refused := 0
	for i := range 258 {
		if load(1000+i, true) != nil {
			refused++
		}
	}
	if n, bytes := c.Usage(); bytes > 256<<20 || refused < 2 || n != 258-refused {
		t.Errorf("%d scripts of %d bytes, %d were refused", n, bytes, refused)
	}
}

func TestScriptsThatAreRefused(t *testing.T) {
	c := newCache()
	for source, want := range map[string]string{
		"return (":                       "Error compiling script",
		"#!js\nreturn 1":                 "Unexpected engine in script shebang",
		"#!lua nope=1\nreturn 1":         "Unknown lua shebang option",
		"#!lua flags=nonsense\nreturn 1": "Unexpected flag",
	} {
		if _, err := c.Load(source, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", source, err)
		}
	}
	if n, _ := c.Usage(); n != 0 {
		t.Errorf("%d refused scripts are kept", n)
	}
	if p, err := c.Load("#!lua flags=no-writes\nreturn 1", false); err != nil || p.Flags == 0 {
		t.Errorf("a script with a flag: %v", err)
	}
}

func TestRunsAfterALongOneAreMadeApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := newCache().Load("return 1", false)
		if err != nil {
			t.Fatal(err)
		}
		if p.RunsApart() {
			t.Error("a new script shuns the loop")
		}
		p.TookLong()
		time.Sleep(900 * time.Millisecond)
		if !p.RunsApart() {
			t.Error("a run soon after a long one is tried in the loop")
		}
		time.Sleep(time.Second)
		if p.RunsApart() {
			t.Error("it shuns the loop for good")
		}
	})
}

func TestSetsOfLibraries(t *testing.T) {
	engine := script.NewEngine("7.4.0")
	load := func(name, function string) *script.Library {
		t.Helper()
		lib, err := engine.Load("#!lua name="+name+"\nredis.register_function('"+function+"', function() return 1 end)", &script.Run{Name: name}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return lib
	}
	set := scripting.NewSet()
	a := load("a", "F")
	if err := set.Add(a, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := set.Add(load("a", "g"), false, nil); err == nil || err.Error() != "ERR Library 'a' already exists" {
		t.Errorf("a library of the same name: %v", err)
	}
	if err := set.Add(load("b", "f"), false, nil); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a function of the same name: %v", err)
	}
	copied := set.Clone()
	if err := copied.Add(load("a", "g"), true, set); err != nil {
		t.Fatal(err)
	}
	if set.Functions["f"] == nil || copied.Functions["f"] != nil || copied.Functions["g"] == nil {
		t.Error("replacing a library in a copy has changed the set, or not the copy")
	}
	kept := scripting.NewSet()
	if err := kept.Add(a, false, set); err != nil || kept.Functions["f"] != set.Functions["f"] {
		t.Errorf("what is known of a function was forgotten: %v", err)
	}
	if names := set.Clear(); !slices.Equal(names, []string{"a"}) || set.Has("a") || set.Bytes != 0 {
		t.Errorf("cleared %q, %d bytes are left", names, set.Bytes)
	}
	var libraries scripting.Libraries
	libraries.Init(dbtest.New(t), engine, slog.New(slog.DiscardHandler))
	if first := libraries.Current(); len(first.Names()) != 0 || libraries.Current() != first {
		t.Error("an empty store has libraries, or they are loaded twice")
	}
}
