package script_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/leak"
	"github.com/stavedb/stave/server/script"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m) }

// run runs a script whose commands answer with their own arguments, and returns the reply.
func run(t *testing.T, source string, change ...func(*script.Run)) string {
	t.Helper()
	return runOn(t, script.NewEngine("7.2.4"), source, change...)
}

func runOn(t *testing.T, e *script.Engine, source string, change ...func(*script.Run)) string {
	t.Helper()
	p, err := script.Compile(source, "user_script")
	if err != nil {
		return "-" + err.Error() + "\r\n"
	}
	r := script.Run{Name: "sha", Keys: [][]byte{[]byte("k1")}, Args: [][]byte{[]byte("a1"), []byte("a2")}, Host: script.Host{
		Call: func(args [][]byte, out *resp.Writer) error {
			out.Array(len(args))
			for _, arg := range args {
				out.Bulk(arg)
			}
			return nil
		},
		Context: context.Background(),
	}}
	for _, f := range change {
		f(&r)
	}
	var out resp.Writer
	if err := e.Run(p, &r, &out); err != nil {
		return "-" + err.Error() + "\r\n"
	}
	return string(out.Bytes())
}

func TestScripts(t *testing.T) {
	e := script.NewEngine("7.2.4")
	for _, tt := range []struct{ source, want string }{
		{`return 1`, ":1\r\n"},
		{`return KEYS[1] .. ARGV[2] .. 1.5 .. 1e15`, "$12\r\nk1a21.51e+15\r\n"},
		{`return {1, 2.9, "x", true, false, {ok="fine"}, nil, 4}`, "*6\r\n:1\r\n:2\r\n$1\r\nx\r\n:1\r\n$-1\r\n+fine\r\n"},
		{`return redis.call("get", KEYS[1], 3, 1.5)`, "*4\r\n$3\r\nget\r\n$2\r\nk1\r\n$1\r\n3\r\n$3\r\n1.5\r\n"},
		{`return foo`, "-ERR user_script:1: Script attempted to access nonexistent global variable 'foo' script: sha, on @user_script:1.\r\n"},
		{`foo = 1`, "-ERR user_script:1: Attempt to modify a readonly table script: sha, on @user_script:1.\r\n"},
		{`string.rep = 1`, "-ERR user_script:1: Attempt to modify a readonly table script: sha, on @user_script:1.\r\n"},
		{`rawset(string, "rep", 1)`, "-ERR Attempt to modify a readonly table script: sha, on @user_script:1.\r\n"},
		{`getmetatable("").__index = nil`, "-ERR user_script:1: Attempt to modify a readonly table script: sha, on @user_script:1.\r\n"},
		{"\n\nerror('x')", "-ERR user_script:3: x script: sha, on @user_script:3.\r\n"},
		{`error("x", 2)`, "-ERR x script: sha, on @user_script:1.\r\n"},
		{`local function f() error("x", 2) end local function g() return f() end return g()`, "-ERR x script: sha, on @user_script:1.\r\n"},
		{`return select(2, pcall(string.rep))`, "$54\r\nbad argument #1 to '?' (string expected, got no value)\r\n"},
		{`error({err="My err"})`, "-My err script: sha, on @user_script:1.\r\n"},
		{`return {tostring(10/3), tostring(2^53), tostring(-0), tostring(1/0), 010 + 0}`, "*5\r\n$15\r\n3.3333333333333\r\n$18\r\n9.007199254741e+15\r\n$2\r\n-0\r\n$3\r\ninf\r\n:10\r\n"},
		{`return {tonumber("1e3"), tonumber("010"), tonumber("0x10"), "1e1" + "1", -"2"}`, "*5\r\n:1000\r\n:10\r\n:16\r\n:11\r\n:-2\r\n"},
		{`local t = {} for i = 1, 100000 do t[i] = i end return {#t, t[70000], select("#", unpack(t, 1, 7000))}`, "*3\r\n:100000\r\n:70000\r\n:7000\r\n"},
		{`local t = {} t[50000000] = 1 return t[50000000]`, ":1\r\n"},
		{`local s = 0 for i, v in ipairs({1, 2, 3}) do s = s + v end for k, v in pairs({a=1, b=2}) do s = s + v end return s`, ":9\r\n"},
		{`return {("x"):rep(3), ("abc"):upper(), #"four", ("a,b,c"):gsub(",", ";")}`, "*5\r\n$3\r\nxxx\r\n$3\r\nABC\r\n:4\r\n$5\r\na;b;c\r\n:2\r\n"},
		{`return {string.find("hello world", "o w"), string.match("key=val", "(%w+)=(%w+)")}`, "*3\r\n:5\r\n$3\r\nkey\r\n$3\r\nval\r\n"},
		{`local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return {co(1), co(10)}`, "*2\r\n:2\r\n:20\r\n"},
		{`return cjson.encode({1, "a/b", {x = cjson.null}})`, "$21\r\n[1,\"a\\/b\",{\"x\":null}]\r\n"},
		{`return cjson.decode('{"a":[1,2.5,"\\u00e9"]}').a[3]`, "$2\r\né\r\n"},
		{`return {cmsgpack.unpack(cmsgpack.pack(1, "x", {1, 2}, -5))}`, "*4\r\n:1\r\n$1\r\nx\r\n*2\r\n:1\r\n:2\r\n:-5\r\n"},
		{`return {struct.unpack(">I2c0", struct.pack(">I2c0", 3, "abc"))}`, "*2\r\n$3\r\nabc\r\n:6\r\n"},
		{`return {bit.band(0xff, 0x0f), bit.tohex(255), bit.bnot(0)}`, "*3\r\n:15\r\n$8\r\n000000ff\r\n:-1\r\n"},
		{`return pcall(redis.call) and 1 or 2`, ":2\r\n"},
		{`return redis.pcall().err`, "$64\r\nERR Please specify at least one argument for this redis lib call\r\n"},
		{`return {pcall(redis.call)}`, "*2\r\n$-1\r\n$64\r\nERR Please specify at least one argument for this redis lib call\r\n"},
		{`local t = setmetatable({}, {__index = function(_, k) return k .. "!" end, __concat = function(a, b) return "c" end}) return {t.x, t .. 1, 1 .. t}`, "*3\r\n$2\r\nx!\r\n$1\r\nc\r\n$1\r\nc\r\n"},
		{`local f f = function(n) if n == 0 then return 0 end return f(n - 1) end return f(100000)`, ":0\r\n"},
		{`return loadstring("return 1 .. 2")()`, "$2\r\n12\r\n"},
		{`local x = 'a' local y = x .. 'b' .. (function(...) return ... end)('c', 'd') return y`, "$3\r\nabc\r\n"},
		{`local x = 1 local f = function() return x end pcall(error, "e") pcall(function() local y y.z = 1 end) x = 2 return f()`, ":2\r\n"},
		{`local f pcall(function() local y = 5 f = function() return y end error("x") end) local a, b, c = 1, 2, 3 return f()`, ":5\r\n"},
		{`return {xpcall(function() return 1, 2 end, print and 1)}`, "-ERR user_script:1: Script attempted to access nonexistent global variable 'print' script: sha, on @user_script:1.\r\n"},
		{`return {select("#", xpcall(function() return 1, 2 end, tostring)), select(2, xpcall(function() error("x", 0) end, function(e) return e .. "!" end))}`, "*2\r\n:3\r\n$2\r\nx!\r\n"},
		{`x x`, "-user_script:1: unexpected symbol near 'x'\r\n"},
	} {
		for range 2 { // the second time with a machine that was used
			if got := runOn(t, e, tt.source); got != tt.want {
				t.Errorf("%s\n got %q\nwant %q", tt.source, got, tt.want)
			}
		}
	}
}

// TestHostileScripts: scripts that would take all memory, all stack or all time end with an error, whatever they catch.
func TestHostileScripts(t *testing.T) {
	limit := func(r *script.Run) { r.Memory = 12 << 20 }
	for _, tt := range []struct{ name, source, want string }{
		{"strings", `local s = "x" while true do s = s .. s end`, "not enough memory"},
		{"caught strings", `while true do pcall(function() local s = ("x"):rep(1e6) while true do s = s .. s end end) end`, "not enough memory"},
		{"rep", `return ("x"):rep(1e10)`, "not enough memory"},
		{"rep of rep", `local t = {} for i = 1, 1e6 do t[i] = ("x"):rep(1e6) end`, "not enough memory"},
		{"table", `local t = {} while true do t[#t + 1] = {} end`, "not enough memory"},
		{"sparse tables", `local k = {} while true do local t = {} t[65535] = 1 k[#k + 1] = t end`, "not enough memory"},
		{"concat", `local t = {} for i = 1, 1e5 do t[i] = ("x"):rep(1000) end return table.concat(t)`, "not enough memory"},
		{"gsub", `return (("x"):rep(1e6):gsub("x", ("y"):rep(1000)))`, "not enough memory"},
		{"format", `local s = ("x"):rep(1e6) local f = ("%s"):rep(7000) return f:format(unpack((function() local t = {} for i = 1, 7000 do t[i] = s end return t end)()))`, "not enough memory"},
		{"closures", `local t = {} while true do t[#t + 1] = function() return t end end`, "not enough memory"},
		{"coroutines", `local t = {} while true do t[#t + 1] = coroutine.create(function() end) end`, "not enough memory"},
		{"recursion", `local function f() return 1 + f() end return f()`, "stack overflow"},
		{"recursion through pcall", `local function f() pcall(f) error("x") end f()`, ""},
		{"recursion through metatables", `local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. "x"] end return t.x`, ""},
		{"recursion through coroutines", `local function f() return coroutine.wrap(f)() end f()`, "C stack overflow"},
		{"recursion through gsub", `local function f() return ("x"):gsub("x", f) end f()`, ""},
		{"recursion through sort", `local function f() table.sort({1, 2, 3}, f) end f()`, ""},
		{"nesting of the source", `return ` + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000), ""},
		{"operators of the source", `return ` + strings.Repeat("-", 1) + strings.Repeat("not ", 100000) + "1", ""},
		{"concatenations of the source", `return "a"` + strings.Repeat(`.."a"`, 50000), ""},
		{"deep pattern", `return ("x"):rep(100000):find(("x?"):rep(100000))`, ""},
		{"captures", `return ("x"):find(("()"):rep(100))`, "too many captures"},
		{"cycle in the reply", `local t = {} t[1] = t return t`, "stack limit"},
		{"cycle in json", `local t = {} t[1] = t return cjson.encode(t)`, "excessive nesting"},
		{"depth of msgpack", `return cmsgpack.unpack(("\145"):rep(1e6))`, "too many nested"},
		{"length of msgpack", `return cmsgpack.unpack("\221\255\255\255\255")`, "Missing bytes"},
		{"own loader", `return load(function() return "x = 1 " end)`, ""},
		{"unpack", `return unpack({}, 1, 1e9)`, "too many results"},
		{"struct", `return struct.pack("!1073741824i", 1)`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, tt.source, limit)
			if !strings.HasPrefix(got, "-") && tt.want != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %.200q, want %q", got, tt.want)
			}
		})
	}
}

// TestNestingEndsNoProcess: the stack of a goroutine has an end that nothing can catch. No script comes near it.
func TestNestingEndsNoProcess(t *testing.T) {
	const inChild = "STAVE_TEST_NESTING"
	if os.Getenv(inChild) == "" { // the stack of a goroutine ends the process
		child := exec.Command(os.Args[0], "-test.run", "^TestNestingEndsNoProcess$")
		child.Env = append(os.Environ(), inChild+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%.2000s", err, out)
		}
		return
	}
	metamethods := `local f, t = nil, {} t.__index = function(_, k) if k == 7000 then %s end return _[k + 1] end
		f = function() return setmetatable({}, t)[1] end return f()`
	for _, tt := range []struct{ name, source, want string }{
		{"lists to decode", `cjson.decode_max_depth(1e9) return cjson.decode(("["):rep(5e6))`, "too many nested data structures"},
		{"objects to decode", `cjson.decode_max_depth(1e9) return cjson.decode(('{"a":'):rep(5e6))`, "too many nested data structures"},
		{"to encode", `cjson.encode_max_depth(1e9) local t = {} for i = 1, 3e6 do t = {t} end return cjson.encode(t)`, "excessive nesting"},
		{"metamethods within pcall", fmt.Sprintf(metamethods, "return select(2, pcall(f))"), "C stack overflow"},
		{"metamethods within coroutines", fmt.Sprintf(metamethods, "return select(2, coroutine.resume(coroutine.create(f)))"), "C stack overflow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := run(t, tt.source); !strings.Contains(got, tt.want) {
				t.Errorf("got %.200q, want %q", got, tt.want)
			}
		})
	}
}

// TestStop: a script is stopped from another goroutine, and by the end of its context, wherever it is.
func TestStop(t *testing.T) {
	for _, source := range []string{
		`while true do end`,
		`while true do pcall(function() while true do end end) end`,
		`local co = coroutine.wrap(function() while true do end end) co()`,
		`while true do local co = coroutine.create(function() while true do end end) coroutine.resume(co) end`,
		`return ("a"):rep(100000):find(".-.-.-.-b")`,
		`return (("a"):rep(50) .. "c"):match(("a*"):rep(50) .. "b")`,
		`while true do redis.pcall("x") end`,
		`local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x`,
		`table.sort({1, 2, 3}, function() while true do end end)`,
		`local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 0) table.remove(t, 1) end`,
		`local s = ("[%a]"):rep(1000) while true do ("a"):rep(2000):gsub(s, "") end`,
		`table.insert({}, -2^31, 1)`,
		`local t = {} for i = 1, 3e4 do t[i] = i end while true do table.foreach(t, redis.debug) end`,
		`while true do cjson.decode(cjson.encode({1, 2, 3})) end`,
		`repeat local ok = xpcall(function() while true do end end, function() while true do end end) until false`,
	} {
		long := make(chan *script.Run, 1)
		go func() {
			r := <-long
			r.Stop(script.ErrKilled)
		}()
		got := run(t, source, func(r *script.Run) { r.Host.Long = func(r *script.Run) { long <- r } })
		if !strings.Contains(got, "Script killed by user") {
			t.Errorf("%s: got %q", source, got)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	got := run(t, `while true do pcall(error, "x") end`, func(r *script.Run) { r.Host.Context = ctx })
	if !strings.Contains(got, context.DeadlineExceeded.Error()) {
		t.Errorf("after the end of the context: %q", got)
	}
}

// TestHostErrorCannotBeCaught: an error of the host ends the run, and comes back as it is.
func TestHostErrorCannotBeCaught(t *testing.T) {
	failed := errors.New("failed")
	p, err := script.Compile(`while true do pcall(redis.call, "x") redis.pcall("x") end`, "user_script")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	r := script.Run{Name: "sha", Host: script.Host{Call: func([][]byte, *resp.Writer) error { calls++; return failed }}}
	var out resp.Writer
	if err := script.NewEngine("7.2.4").Run(p, &r, &out); err != failed || calls != 1 || out.Len() != 0 {
		t.Errorf("error %v after %d calls, %d bytes of a reply", err, calls, out.Len())
	}
}

func BenchmarkRun(b *testing.B) {
	e := script.NewEngine("7.2.4")
	for _, tt := range []struct{ name, source string }{
		{"constant", `return 1`},
		{"call", `return redis.call("incr", KEYS[1])`},
		{"loop of 1000", `local s = 0 for i = 1, 1000 do s = s + i end return s`},
		{"concat", `local t = KEYS[1] .. ":" .. ARGV[1] return t`},
		{"pcall", `return select(2, pcall(tonumber, "1"))`},
		{"caught error", `local ok = pcall(error, "x") return 1`},
	} {
		b.Run(tt.name, func(b *testing.B) {
			p, err := script.Compile(tt.source, "user_script")
			if err != nil {
				b.Fatal(err)
			}
			keys := [][]byte{[]byte("key")}
			b.ReportAllocs()
			var out resp.Writer
			for b.Loop() {
				r := script.Run{Name: "sha", Keys: keys, Args: keys, Host: script.Host{Call: func(_ [][]byte, out *resp.Writer) error {
					out.Int(1)
					return nil
				}}}
				if err := e.Run(p, &r, &out); err != nil {
					b.Fatal(err)
				}
				out.Discard(out.Len())
			}
		})
	}
}

// TestMostResults: functions return as many values as in a redis-server, whose numbers these are.
func TestMostResults(t *testing.T) {
	const source = `
local function most(f)
	local low, high = 7000, 8200
	while low < high do
		local m = math.floor((low + high + 1) / 2)
		if pcall(f, m) then low = m else high = m - 1 end
	end
	return low
end
local t = {}
for i = 1, 9000 do t[i] = 1 end
local s, p = string.rep('a', 9000), cmsgpack.pack(1)
return {
	most(function(n) local u = {} for i = 1, n do u[i] = 1 end return select('#', unpack(u)) end),
	most(function(n) return select('#', unpack(t, 1, n)) end),
	most(function(n) return select('#', string.byte(s, 1, n)) end),
	most(function(n) return select('#', struct.unpack(string.rep('b', n), s)) end),
	most(function(n) return select('#', cmsgpack.unpack(string.rep(p, n))) end),
	most(function(n) return select('#', cmsgpack.unpack_limit(string.rep(p, 9000), n, 0)) end),
}`
	if got, want := run(t, source), "*6\r\n:7999\r\n:7997\r\n:7997\r\n:7997\r\n:7999\r\n:7998\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
