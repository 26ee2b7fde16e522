package script_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/script"
)

const counting = "#!lua name=l\nlocal n = 0\nredis.register_function('Next', function(keys, args) n = n + (args[1] or 1) return n end)"

// callFunction is the reply of a function of a library, or its error.
func callFunction(t *testing.T, e *script.Engine, lib *script.Library, i int, args ...string) string {
	t.Helper()
	r := script.Run{Name: lib.Functions[i].Name}
	for _, arg := range args {
		r.Args = append(r.Args, []byte(arg))
	}
	var out resp.Writer
	if err := e.RunFunction(lib.Functions[i], &r, &out); err != nil {
		return err.Error()
	}
	return string(out.Bytes())
}

func load(t *testing.T, e *script.Engine, source string) *script.Library {
	t.Helper()
	lib, err := e.Load(source, &script.Run{}, script.MaxLoad)
	if err != nil {
		t.Fatalf("%q: %v", source, err)
	}
	return lib
}

// TestLibraryOfMachine: a machine keeps the locals of a library between calls, and gives them up when the library is
// another one.
func TestLibraryOfMachine(t *testing.T) {
	e := script.NewEngine("7.2.4")
	lib := load(t, e, counting)
	if len(lib.Functions) != 1 || lib.Functions[0].Name != "Next" || lib.Functions[0].Library != lib {
		t.Fatalf("%+v", lib)
	}
	for range 3 { // a machine that the pool has dropped begins again
		if got := callFunction(t, e, lib, 0); !strings.HasPrefix(got, ":") {
			t.Errorf("%q", got)
		}
	}
	other := load(t, e, strings.Replace(counting, "n = 0", "n = 100", 1))
	if got := callFunction(t, e, other, 0, "5"); got != ":105\r\n" {
		t.Errorf("the new library replied %q", got)
	}
	if got := callFunction(t, e, lib, 0, "5"); got != ":5\r\n" {
		t.Errorf("the old library, which somebody still calls, replied %q", got)
	}
	if got := callFunction(t, e, lib, 0, "x"); !strings.Contains(got, "script: Next, on @user_function:3.") {
		t.Errorf("an error: %q", got)
	}
}

// TestHostileLibraries: a library that does not end, or takes all memory, is refused in time, and one whose functions
// do is stopped as a script is.
func TestHostileLibraries(t *testing.T) {
	e := script.NewEngine("7.2.4")
	for source, want := range map[string]string{
		"while true do end":                         "FUNCTION LOAD timeout",
		"local function f() return f() + 1 end f()": "stack overflow",
		"local t, s = {}, ('x'):rep(99) while true do s = s .. s t[#t+1] = s end": "not enough memory",
		"local t = {} for i = 1, 1e9 do t[i] = {} end":                            "not enough memory",
		strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000):               "user_function",
		"local x = redis x = x.call":                                              "nonexistent global variable 'call'",
		"local m = ('').x.y":                                                      "attempt to index",
	} {
		began := time.Now()
		limit := time.Duration(0)
		if strings.HasPrefix(want, "FUNCTION") {
			limit = script.MaxLoad
		}
		_, err := e.Load("#!lua name=l\n"+source, &script.Run{Memory: 32 << 20}, limit)
		var refused script.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", source, err, want)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%.60q took %v", source, took)
		}
	}
	if _, err := e.Load("#!lua name=l\n"+strings.Repeat(" ", script.MaxSource), &script.Run{}, 0); err == nil {
		t.Error("a source that is too long was loaded")
	}
	lib := load(t, e, "#!lua name=l\nredis.register_function('spin', function() while true do end end)")
	r := script.Run{Name: "spin"}
	time.AfterFunc(20*time.Millisecond, func() { r.Stop(script.ErrKilled) })
	var out resp.Writer
	if err := e.RunFunction(lib.Functions[0], &r, &out); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("killed: %v", err)
	}
	if got := callFunction(t, e, load(t, e, counting), 0); got != ":1\r\n" {
		t.Errorf("after all that: %q", got)
	}
}

// FuzzLibrary: any source is loaded or refused, and what is loaded can be called.
func FuzzLibrary(f *testing.F) {
	for _, seed := range []string{
		counting, "#!lua name=a\nredis.register_function{function_name='f', callback=function() return 1 end, flags={'no-writes'}, description='d'}",
		"#!lua name=", "#!lua name='a'\nlocal t = redis.x", "#!lua name=a\nredis.register_function('f', redis.log)", "#!lua name=a\nredis.log(1, 'x') redis.register_function()",
	} {
		f.Add(seed)
	}
	e := script.NewEngine("7.2.4")
	f.Fuzz(func(t *testing.T, source string) {
		lib, err := e.Load(source, &script.Run{Memory: 64 << 20}, 100*time.Millisecond)
		if err != nil {
			var refused script.Error
			if !errors.As(err, &refused) || strings.Contains(err.Error(), "runtime error") {
				t.Errorf("%q: %v", source, err)
			}
			return
		}
		if name, err := script.LibraryName(source); err != nil || name != lib.Name {
			t.Errorf("%q: name %q, %v", source, name, err)
		}
		for _, fn := range lib.Functions {
			r := script.Run{Name: fn.Name, Memory: 64 << 20}
			time.AfterFunc(100*time.Millisecond, func() { r.Stop(script.ErrKilled) })
			var out resp.Writer
			if err := e.RunFunction(fn, &r, &out); err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Errorf("%q: %s: %v", source, fn.Name, err)
			}
		}
	})
}
