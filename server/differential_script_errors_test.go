package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestOperatorsAgreeWithRedis: every operator of Lua, with every kind of value on each side, gives what it gives in
// redis-server, or its error, raised and caught.
func TestOperatorsAgreeWithRedis(t *testing.T) {
	p := newPair(t)
	values := []string{"nil", "true", "2", `"3"`, `"x"`, "{}", "print", "coroutine.create(print)", "setmetatable({}, {__unm = function() return 7 end, __lt = function() return true end, __len = 5})"}
	var programs []string
	for _, a := range values {
		for _, form := range []string{
			"return -a", "return #a", "return not a", "return - -a", "return -a.b", "return a.b.c", "a.b = 1", "return a[nil]", "a[nil] = 1", "a[0/0] = 1", "a()", "a.b()", "a:b()",
			"for i = a, 3 do n = n + 1 end return n", "for i = 1, a do n = n + 1 end return n", "for i = 1, 3, a do n = n + 1 end return n", "for i in a do end",
			"return coroutine.resume(a)", "rawset({}, a, 1)",
		} {
			programs = append(programs, fmt.Sprintf("local a, n = %s, 0 %s", a, form))
		}
		for _, b := range values {
			for _, op := range []string{"+", "-", "*", "/", "%", "^", "..", "<", "<=", ">", ">=", "=="} {
				programs = append(programs, fmt.Sprintf("local a, b = %s, %s return a %s b", a, b, op))
			}
		}
	}
	programs = append(programs,
		"local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x", "local t = setmetatable({}, {}) getmetatable(t).__newindex = t t.x = 1",
		"return coroutine.yield(1)", "local c = coroutine.create(print) coroutine.resume(c) return select(2, coroutine.resume(c))",
		"local c c = coroutine.create(function() return select(2, coroutine.resume(c)) end) return select(2, coroutine.resume(c))",
		"local c = coroutine.wrap(print) c() c()", "for i = '3', '1', '-1' do end return 1", "local f = function() return 3 end local n = 0 for i = 1, f() do n = n + i end return n",
		"return tostring(-0)", "local z = 0 return tostring(-z)", "local a = 3 return -a ^ 2", "return -' 0x10 '", "return -'', 1",
	)
	for _, program := range programs {
		caught := "local ok, e = pcall(function() " + program + " end) if type(e) == 'table' then return 'table' end return {tostring(ok), tostring(e)}"
		compareScripts(t, p, []string{"eval", caught, "0"})
		if program = strings.Replace(program, "return ", "n = ", 1); !strings.Contains(program, "return") { // what it gives may be no reply
			compareScripts(t, p, []string{"eval", program + " return 1", "0"})
		}
	}
	t.Logf("%d programs", len(programs))
}
