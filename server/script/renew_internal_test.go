package script

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

// failing are programs that leave something behind when they fail: frames, coroutines in every state, open upvalues,
// metatables, arguments that are half there, settings.
var failing = []string{
	`error("plain")`,
	`error({err = "ERR a table"})`,
	`error()`,
	`local a, b = 1, {} local f = function() a = a + 1 return b end f() error(f)`,
	`local function deep(n) local x = {n} if n == 0 then error(x) end return (deep(n - 1)) end return deep(500)`,
	`local function over(n) return 1 + over(n + 1) end return over(1)`,
	`local function nest(n) local ok, e = pcall(nest, n + 1) error(e, 0) end nest(1)`,
	`local co = coroutine.create(function() coroutine.yield(1) error("in it") end) coroutine.resume(co) error(co)`,
	`local co co = coroutine.wrap(function() local x = 1 local f = function() x = x + 1 end f() error("wrapped") end) co()`,
	`coroutine.wrap(function() coroutine.wrap(function() redis.call("FAIL") end)() end)()`,
	`local co = coroutine.create(function() while true do coroutine.yield(1) end end) for i = 1, 5 do coroutine.resume(co) end local x = nil + 1`,
	`pcall(coroutine.wrap(function() error("x") end)) coroutine.yield(1)`,
	`redis.call("FAIL")`,
	`pcall(redis.call, "FAIL") redis.call("FAIL", "again")`,
	`redis.call("GET", {}, error)`,
	`local function f(...) return select("#", ...) end f(1, 2, 3, error("half the arguments"))`,
	`local t = {1, 2, 3, error("half a table")}`,
	`redis.call(unpack({}, 1, 7000))`,
	`return unpack({}, 1, 10000000)`,
	`table.sort({3, 2, 1, 5, 4}, function(a, b) error("comparing") end)`,
	`string.gsub("abc", ".", function(c) error(c) end)`,
	`for i in function() error("iterating") end do end`,
	`local t = setmetatable({}, {__index = function(t, k) error(k) end, __newindex = function() error("n") end, __call = error}) pcall(function() t.x = 1 end) return t.y`,
	`local t = setmetatable({}, {__eq = error, __lt = error, __le = error, __concat = error, __tostring = error}) return t .. "x"`,
	`setmetatable(_G, {__index = function() return "mine" end})`,
	`getmetatable("").__index = function() return "mine" end`,
	`setmetatable("", {__add = function() return "mine" end})`,
	`rawset(_G, "leak", 1)`, `leak = 1`, `string.leak = 1`, `redis.leak = 1`, `rawset(string, "len", error)`, `table.insert(math, 1)`,
	`setfenv(1, {})`, `KEYS.leak = 1 ARGV.leak = function() end error("with them")`, `KEYS = nil`,
	`redis.setresp(3) error("in RESP3")`,
	`cjson.encode_max_depth(1) cjson.encode_sparse_array(true, 1, 1) cjson.encode_keep_buffer(false) cjson.decode_max_depth(1) error("settings")`,
	`cjson.encode({{{{{}}}}, function() end})`, `cjson.decode("[[[[")`, `cmsgpack.pack(setmetatable({}, {})) cmsgpack.unpack("\221")`, `struct.unpack("i8i8", "x")`,
	`local t = {} t[1] = t return t`,
	`return redis.call("REPLY", ("x"):rep(100000)) .. nil`,
	`return 1 < "x"`, `return #nil`, `return ("x")()`, `goto_nowhere()`, `return loadstring("return leak")()`,
	`return load(function() error("loading") end)`, `assert(false, "asserted")`, `assert(nil)`, `xpcall(error, function(e) error(e) end) error("x")`,
}

// probes say what a program sees.
var probes = []string{
	`local names = {} for k, v in pairs(_G) do names[#names + 1] = tostring(k) .. type(v) end table.sort(names) return names`,
	`return {tostring(coroutine.running()), #KEYS, #ARGV, KEYS[1], tostring(rawget(KEYS, "leak")), tostring(ARGV.leak)}`,
	`return {pcall(function() return leak end)}`,
	`return {tostring(string.leak), ("x"):len(), "1" + 1, ("%d"):format(3), tostring(getmetatable("").__index.leak)}`,
	`return cjson.encode({{{{1}}}}) .. cjson.encode({[3] = 1, [4] = 2})`,
	`return redis.call("MAP")`,
	`local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end return down(3000)`,
	`local function nest(n) if n == 0 then return 0 end local ok, v = pcall(nest, n - 1) return ok and v + 1 end return nest(150)`,
	`local function nest(n) if n == 0 then return 0 end return 1 + coroutine.wrap(nest)(n - 1) end return nest(100)`,
	`local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return {co(1), co(21)}`,
	`local n, fs = 0, {} for i = 1, 3 do fs[i] = function() n = n + i return n end end return {fs[1](), fs[2](), fs[3](), n}`,
	`local t = {5, 3, 1} table.sort(t, function(a, b) return a < b end) return t`,
	`return {select("#", unpack({}, 1, 3)), (string.gsub("abc", ".", {a = "b"}))}`,
	`return {pcall(error, "x")}`, `error("probing")`, `local x = nil return x.y`,
}

// renewRun is a run whose commands fail, panic or reply.
func renewRun() *Run {
	r := &Run{Name: "f", Keys: [][]byte{[]byte("k")}, Args: [][]byte{[]byte("a"), []byte("b")}}
	r.Host.Call = func(args [][]byte, out *resp.Writer) error {
		switch string(args[0]) {
		case "FAIL":
			out.Error("ERR it fails")
		case "PANIC":
			panic("of Go")
		case "MAP":
			out.Map(1)
			out.BulkString("k")
			out.Int(1)
		case "HALF":
			out.SetLimit(4)
			out.Overdraw(true)
			out.Bulk([]byte("too long"))
			out.Int(1)
			return errors.New("ended within the command")
		case "REPLY":
			out.Bulk(args[1])
		default:
			out.Null()
		}
		return nil
	}
	return r
}

// outcome is what a program replies, or fails with, on a machine. No time passes meanwhile, however slow the computer is:
// a machine whose run was long is not used again.
func outcome(t *testing.T, m *machine, source string) (text string, err error) {
	t.Helper()
	proto, err := compile(source, "user_script", nil)
	if err != nil {
		t.Fatal(source, err)
	}
	var out resp.Writer
	synctest.Test(t, func(*testing.T) { err = m.execute(&Program{proto: proto}, renewRun(), &out) })
	if err != nil {
		return err.Error(), err
	}
	return string(bytes.Clone(out.Bytes())), nil
}

// TestRenewedMachineIsAsNew: whatever a program that failed has left, the programs after it see what they see on a
// machine of their own.
func TestRenewedMachineIsAsNew(t *testing.T) {
	e, rng := NewEngine("7.4.0"), chance.Rand(t)
	want := make(map[string]string, len(probes))
	for _, probe := range probes {
		want[probe], _ = outcome(t, newMachine(e), probe)
	}
	m := newMachine(e)
	errs := make(map[string]string)
	for range 6 {
		for _, i := range rng.Perm(len(failing)) {
			text, err := outcome(t, m, failing[i])
			if err == nil {
				t.Fatalf("%s does not fail: %q", failing[i], text)
			}
			if before, ok := errs[failing[i]]; ok && before != text && !strings.Contains(text, ": 0x") {
				t.Errorf("%s fails with %q, and before with %q", failing[i], text, before)
			}
			errs[failing[i]] = text
			if m.panicked { // the interpreter
				m = newMachine(e)
				continue
			}
			if !m.reusable() || m.L.GetTop() != 0 {
				t.Fatalf("after %s the machine is not as new", failing[i])
			}
			for range 4 {
				probe := probes[rng.IntN(len(probes))]
				got, err := outcome(t, m, probe)
				if got != want[probe] {
					t.Fatalf("after %s\n%s\nis %q, want %q", failing[i], probe, got, want[probe])
				}
				if err != nil && !m.reusable() {
					m = newMachine(e)
				}
			}
		}
	}
}

// TestStoppedMachineIsAsNew: nor does it matter after which instruction a program was stopped, within what it was, and
// why.
func TestStoppedMachineIsAsNew(t *testing.T) {
	e, rng := NewEngine("7.4.0"), chance.Rand(t)
	want := make(map[string]string, len(probes))
	for _, probe := range probes {
		want[probe], _ = outcome(t, newMachine(e), probe)
	}
	stopping := slices.Concat(failing, probes, []string{`return ("x"):rep(2^28):rep(4)`, `while true do pcall(string.rep, "x", 2^20) end`, `return redis.call("HALF")`})
	reasons := []error{ErrMemory, ErrKilled, ErrSteps, errors.New("locks are missing")}
	m, stopped, renewed := newMachine(e), 0, 0
	for range 1000 {
		source := stopping[rng.IntN(len(stopping))]
		proto, err := compile(source, "user_script", nil)
		if err != nil {
			t.Fatal(source, err)
		}
		r, after := renewRun(), 1+int(math.Exp(rng.Float64()*7))
		r.Memory = 1 << 20
		r.Stop(reasons[rng.IntN(len(reasons))])
		m.begin(r)
		m.left, m.portion = after, after
		var out resp.Writer
		err = m.executeBegun(&Program{proto: proto}, r, &out)
		if err == nil {
			continue
		}
		wasStopped := m.stopped != nil
		if wasStopped {
			stopped++
		}
		if !m.reusable() {
			m = newMachine(e)
			continue
		}
		if wasStopped {
			renewed++
		}
		for range 2 {
			probe := probes[rng.IntN(len(probes))]
			got, err := outcome(t, m, probe)
			if got != want[probe] {
				t.Fatalf("after %s, stopped after %d instructions,\n%s\nis %q, want %q", source, after, probe, got, want[probe])
			}
			if err != nil && !m.reusable() {
				m = newMachine(e)
			}
		}
	}
	if stopped < 300 || renewed < stopped/2 {
		t.Errorf("%d programs were stopped, and %d of their machines used again", stopped, renewed)
	}
}

// TestPanicDropsMachine: a run in which Go has panicked may have been anywhere, also if the program caught that, or was
// stopped before.
func TestPanicDropsMachine(t *testing.T) {
	for _, test := range []struct {
		source      string
		withoutRoom bool
	}{
		{`return redis.call("PANIC")`, false}, {`return {pcall(redis.call, "PANIC")}`, false},
		{`return redis.call("PANIC")`, true}, {`redis.pcall("PANIC")`, true},
		{`return {coroutine.resume(coroutine.create(function() redis.call("PANIC") end))}`, false},
		{`local f = coroutine.wrap(function() coroutine.yield() redis.call("PANIC") end) f() return {pcall(f)}`, false},
	} {
		proto, err := compile(test.source, "user_script", nil)
		if err != nil {
			t.Fatal(err)
		}
		e := NewEngine("7.4.0")
		m, out, r := newMachine(e), resp.Writer{}, renewRun()
		if test.withoutRoom {
			r.Host.Hold = func(int) bool { return false }
			r.Host.NoRoom = func(int) error { return errors.New("no room") }
			r.Host.Taken = func() (int64, int64) { return 0, 0 }
			r.Host.Call = func(_ [][]byte, out *resp.Writer) error {
				out.SetLimit(1 << 30)
				out.Reserve(4 << 20)
				panic("of Go")
			}
		}
		err = m.execute(&Program{proto: proto}, r, &out)
		if !m.panicked || err != nil && m.reusable() {
			t.Errorf("%+v: %v, and the machine is used again", test, err)
		}
		if e.release(m); e.machine() == m {
			t.Errorf("%+v: the machine is used again", test)
		}
	}
}

// TestDeepRecursionKeepsMachine: too many nested calls are an error like others, though the interpreter panics with a
// string of Go, and not with an error of Lua.
func TestDeepRecursionKeepsMachine(t *testing.T) {
	e := NewEngine("7.4.0")
	m := newMachine(e)
	for range 3 {
		for _, source := range []string{
			`local function f(n) return 1 + f(n + 1) end return f(0)`,
			`local function f(n) return 1 + f(n + 1) end return {pcall(f, 0)}`,
			`local function f(n) return 1 + f(n + 1) end error({err = select(2, pcall(f, 0))})`,
		} {
			text, _ := outcome(t, m, source)
			if !strings.Contains(text, "stack overflow") {
				t.Errorf("%s: %q", source, text)
			}
			if !m.reusable() {
				t.Fatalf("%s: the machine is dropped", source)
			}
			for _, probe := range probes {
				want, _ := outcome(t, newMachine(e), probe)
				got, err := outcome(t, m, probe)
				if got != want {
					t.Fatalf("after %s\n%s\nis %q, want %q", source, probe, got, want)
				}
				if err != nil && !m.reusable() {
					t.Fatalf("after %s\n%s: the machine is dropped", source, probe)
				}
			}
		}
	}
}

// TestCurrentThreadIsOfTheRun: a coroutine that runs within pcall does not change which thread counts as the running one
// after it, in the same program or in the next. So errors name their line, and coroutine.running is nil outside of
// coroutines.
func TestCurrentThreadIsOfTheRun(t *testing.T) {
	e := NewEngine("7.4.0")
	m, index := newMachine(e), `local x = nil return x.y`
	want, _ := outcome(t, m, index)
	if !strings.Contains(want, "on @user_script:1.") || !m.reusable() {
		t.Fatal(want)
	}
	inPcall := `pcall(function() coroutine.wrap(function() end)() coroutine.wrap(coroutine.yield)() pcall(coroutine.wrap(error)) end) `
	for _, program := range []struct{ source, want string }{
		{inPcall + `return 1`, ":1\r\n"},
		{index, want},
		{inPcall + index, want},
		{`return tostring(coroutine.running())`, "$3\r\nnil\r\n"},
		{`return tostring(select(2, pcall(coroutine.running)))`, "$3\r\nnil\r\n"},
		{`return tostring(select(2, pcall(function() coroutine.wrap(function() end)() return coroutine.running() end)))`, "$3\r\nnil\r\n"},
		{`local co co = coroutine.create(function() local _, inner = pcall(coroutine.running) return inner == co and coroutine.running() == co end)
		local _, same = coroutine.resume(co) return tostring(same)`, "$4\r\ntrue\r\n"},
		{`pcall(function() local co = coroutine.create(function() table.sort({3, 1, 2, 5, 4}, function() coroutine.yield() end) end)
		coroutine.resume(co) end) return 1`, ":1\r\n"},
		{index, want},
		{`return tostring(coroutine.running())`, "$3\r\nnil\r\n"},
		{`local co co = coroutine.create(function() pcall(coroutine.wrap(function() end)) return coroutine.running() == co end)
		local _, same = coroutine.resume(co) return tostring(same)`, "$4\r\ntrue\r\n"},
	} {
		got, err := outcome(t, m, program.source)
		if got != program.want {
			t.Errorf("%s\nis %q, want %q", program.source, got, program.want)
		}
		if m.panicked || err != nil && !m.reusable() {
			m = newMachine(e)
		}
	}
}

// TestDrainedCoroutineKeepsMachine: to resume a coroutine that has ended is no error of the coroutine.
func TestDrainedCoroutineKeepsMachine(t *testing.T) {
	m := newMachine(NewEngine("7.4.0"))
	got, err := outcome(t, m, `local co, n = coroutine.create(function() for i = 1, 3 do coroutine.yield(i) end end), 0
		while coroutine.resume(co) do n = n + 1 end return {n, tostring(coroutine.resume(coroutine.create(function() return false end)))}`)
	if err != nil || got != "*2\r\n:4\r\n$4\r\ntrue\r\n" || m.panicked {
		t.Errorf("%q, %v, machine dropped: %v", got, err, m.panicked)
	}
}

// TestClosuresSurviveErrors: a local that a closure has taken out of a pcall is its own, whatever has ended the pcall, and
// whatever other calls then do with the thread that it had.
func TestClosuresSurviveErrors(t *testing.T) {
	m := newMachine(NewEngine("7.4.0"))
	for _, end := range []string{
		`return`, `error("x")`, `error({})`, `local y = nil + 1`, `redis.call("FAIL")`, `string.rep()`, `return f(error())`,
		`local function deep(n) return 1 + deep(n + 1) end deep(0)`,
		`local function wide(n, ...) return 1 + wide(n + 1, n, ...) end wide(0)`,
		`local function wide(...) return 1 + wide(unpack({}, 1, 7000)) end wide()`,
		`coroutine.wrap(function() error("x") end)()`, `coroutine.wrap(function() coroutine.wrap(function() deep() end)() end)()`,
		`coroutine.yield()`, `table.sort({3, 2, 1}, function() error("x") end)`, `pcall(error) error("y")`,
		`redis.call("PANIC")`, `coroutine.wrap(function() redis.call("PANIC") end)()`,
		`local dead = coroutine.create(function() pcall(coroutine.yield) return coroutine.yield() end) pcall(coroutine.resume, dead) coroutine.resume(dead)`,
	} {
		for _, protect := range []string{"pcall(%)", "xpcall(%, tostring)", "pcall(function() local _ = 1 pcall(%) error() end)", "pcall(coroutine.wrap(%))"} {
			body := "function() local x = 1 keep = function() x = x + 1 return x end " + end + " end"
			other := "function() local a, b, c = 100, 200, 300 local g = function() a, b, c = a + 1, b + 1, c + 1 end g() error(g) end"
			source := "local keep " + strings.ReplaceAll(protect, "%", body) + " local first = keep() " +
				strings.ReplaceAll(protect, "%", other) + " local second = keep() pcall(" + other + ") return {first, second, keep()}"
			got, err := outcome(t, m, source)
			if err != nil || got != "*3\r\n:2\r\n:3\r\n:4\r\n" {
				t.Errorf("%s\nis %q, %v", source, got, err)
			}
			if m.panicked {
				m = newMachine(NewEngine("7.4.0"))
			}
		}
	}
}

// TestSpareThreadIsNobodys: the thread that pcall has had serves later programs, also one that has been told that it is a
// coroutine that runs: by a coroutine that yields where it may not.
func TestSpareThreadIsNobodys(t *testing.T) {
	e := NewEngine("7.4.0")
	m := newMachine(e)
	const victim = `return {tostring(coroutine.running()), tostring(pcall(coroutine.yield, "secret")), tostring(pcall(function() coroutine.yield("s") return "done" end))}`
	want, _ := outcome(t, m, victim)
	const yields = `local co = coroutine.create(function() table.sort({3, 1, 2, 5, 4}, function() coroutine.yield() end) end) coroutine.resume(co) `
	const resumes = `local X = coroutine.running() coroutine.resume(coroutine.create(function() pcall(coroutine.resume, X) end)) `
	for _, source := range []string{
		`pcall(function() ` + yields + `end) ` + resumes,
		`pcall(function() ` + yields + resumes + `end)`,
		`local X pcall(function() pcall(function() ` + yields + `end) X = coroutine.running() end) coroutine.wrap(function() pcall(coroutine.resume, X) end)()`,
		`pcall(string.gsub, "abc", ".", function() ` + yields + resumes + `end)`,
	} {
		if _, err := outcome(t, m, source); err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		for range 2 {
			if got, _ := outcome(t, m, victim); got != want {
				t.Errorf("after %s\na program sees %q, want %q", source, got, want)
			}
			if _, err := outcome(t, m, `error("x")`); err == nil {
				t.Error("it does not fail")
			}
		}
		if m.panicked {
			m = newMachine(e)
		}
	}
}

// TestErrorsLeaveThreads: neither a run that fails nor a pcall that catches an error costs a thread, so that the registers
// of one that nests deep are grown once.
func TestErrorsLeaveThreads(t *testing.T) {
	m := newMachine(NewEngine("7.4.0"))
	const deep = `local function f(n) return 1 + f(n + 1) end `
	for _, source := range []string{deep + `return f(0)`, deep + `return {pcall(f, 0)}`, `error("x")`, `return {pcall(error, "x")}`} {
		least := uint64(math.MaxUint64)
		for range 8 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = outcome(t, m, source)
			runtime.ReadMemStats(&after)
			if !m.reusable() {
				t.Fatalf("%s: the machine is dropped", source)
			}
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		if least > 400<<10 {
			t.Errorf("%s makes %d bytes of garbage", source, least)
		}
	}
}

// TestIdleMachineForgets: a machine that waits for its next run keeps nothing of the one before alive.
func TestIdleMachineForgets(t *testing.T) {
	live := func() uint64 {
		runtime.GC()
		runtime.GC() // which also empties the interpreter's pool of frames
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	const big = `local big = ("x"):rep(2^23) `
	for _, source := range []string{
		`pcall(error, {("x"):rep(2^23)}) return 1`,
		`error({err = "x", big = ("x"):rep(2^23)})`,
		`pcall(function() ` + big + `local y = nil + #big end) return 1`,
		big + `pcall(function() local y = nil + #big end) return 1`,
		big + `local y = nil + #big`,
		big + `local f = function() return big end f() return 1`,
		big + `local f f = function(n) if n == 0 then return big end return (f(n - 1)) end f(20) return 1`,
		big + `return select(2, pcall(function() return #big end))`,
	} {
		e := NewEngine("7.4.0")
		m := newMachine(e)
		before := live()
		_, _ = outcome(t, m, source)
		e.release(m)
		if grown := int64(live() - before); grown > 4<<20 {
			t.Errorf("%s: the idle machine keeps %d bytes", source, grown)
		}
		runtime.KeepAlive(m)
	}
}

// BenchmarkDeepRecursion shows how much garbage a run makes that fails for too many nested calls.
func BenchmarkDeepRecursion(b *testing.B) {
	e := NewEngine("7.4.0")
	proto, err := compile(`local function f(n) return 1 + f(n + 1) end return f(0)`, "user_script", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var out resp.Writer
		if err := e.Run(&Program{proto: proto}, &Run{}, &out); err == nil {
			b.Fatal("it does not fail")
		}
	}
}

// TestReleaseAsksNobody: a run that has ended asks for no room any more, which could have its session begin it again.
func TestReleaseAsksNobody(t *testing.T) {
	proto, err := compile(`local x = 0 for i = 1, 10 do x = x + i end error("plain")`, "user_script", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(NewEngine("7.4.0"))
	for left := 1; left < 100; left++ {
		r, over, asked := renewRun(), false, 0
		r.Host.Hold = func(int) bool {
			if over {
				asked++
			}
			return true
		}
		r.Host.Taken = func() (int64, int64) { return 0, 0 }
		m.begin(r)
		m.left, m.portion = left, left
		var out resp.Writer
		if err := m.executeBegun(&Program{proto: proto}, r, &out); err == nil {
			t.Fatal("it does not fail")
		}
		m.room.claimed, m.room.due, over = 2*roomFrom, 0, true // it has taken all that it had room for
		m.engine.release(m)
		if !m.reusable() {
			t.Fatal("the machine is dropped")
		}
		if asked > 0 {
			t.Errorf("with a look due after %d instructions, it asks %d times for room after its end", left, asked)
		}
	}
}

// TestSharedTablesAreReadOnly: what a run is given that outlives it cannot be changed, nor what is in it.
func TestSharedTablesAreReadOnly(t *testing.T) {
	m := newMachine(NewEngine("7.4.0"))
	for _, source := range []string{
		`cjson.array_mt.leak = 1`, `cjson.array_mt.__index = function() return "mine" end`, `rawset(cjson.array_mt, "leak", 1)`,
		`table.insert(cjson.array_mt, 1)`, `setmetatable(cjson.array_mt, {})`, `cjson.new().array_mt.leak = 1`,
		`cjson.decode_array_with_array_mt(true) getmetatable(cjson.decode("[1]")).leak = 1`,
		`for _, lib in pairs(_G) do if type(lib) == "table" then for k, v in pairs(lib) do if type(v) == "table" then rawset(v, "leak", 1) end end end end`,
	} {
		if text, err := outcome(t, m, source); err == nil || !strings.Contains(text, "Attempt to modify a readonly table") {
			t.Errorf("%s: %q, %v", source, text, err)
		}
	}
	const uses = `cjson.decode_array_with_array_mt(true) local t = cjson.decode("[]") ` +
		`return {cjson.encode(t), cjson.encode(setmetatable({}, cjson.array_mt)), tostring(t.leak), tostring(getmetatable(t) == cjson.array_mt)}`
	if text, err := outcome(t, m, uses); err != nil || text != "*4\r\n$2\r\n[]\r\n$2\r\n[]\r\n$3\r\nnil\r\n$4\r\ntrue\r\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func BenchmarkNewMachine(b *testing.B) {
	e := NewEngine("7.4.0")
	b.ReportAllocs()
	for b.Loop() {
		newMachine(e)
	}
}
