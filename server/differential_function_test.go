package server_test

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// libraryCorpus is sources of libraries, one a line, with the escapes of Go. Most of them are refused.
//
//go:embed testdata/libraries.txt
var libraryCorpus string

// manyFunctions is a library whose functions show what a function can do.
const manyFunctions = `#!lua name=mylib
local r = redis
local n = 0
redis.register_function('f1', function(keys, args) return {keys, args} end)
redis.register_function{function_name='f2', callback=function() n = n + 1 return n > 0 end,
  flags={'no-writes','Allow-OOM','allow-stale','no-cluster','allow-cross-slot-keys'}, description='desc'}
redis.register_function('f3', function() return r.register_function('g', function() end) end)
redis.register_function('f4', function() return redis.register_function('g', function() end) end)
redis.register_function('f5', function() return r.call('ping') end)
redis.register_function('f6', function() return error('x') end)
redis.register_function('f7', function() return error({err='FOO x'}) end)
redis.register_function('f8', function() return redis.call('foo') end)
redis.register_function('f9', function() return KEYS[1] end)
redis.register_function('fa', function() xx = 1 end)
redis.register_function{function_name='fb', callback=function() return redis.call('set','a','1') end, flags={'no-writes'}}
redis.register_function('fc', function() return redis.call('set','a','1') end)
redis.register_function('fd', function() return redis.call('fcall','fc','0') end)
redis.register_function('fe', function(k, a) return {type(_G), tostring(_G==_G), #k, #a, type(_G.redis), type(math)} end)
redis.register_function('fg', function(k, a) return redis.pcall('function','list') end)
redis.register_function('fh', function(k, a) _G.x = 1 end)
redis.register_function('fi', function(k, a) k.x = 1 return k.x end)
redis.register_function('fj', function(k, a) redis.setresp(3) return true end)
redis.register_function('fk', function(k, a) return type(r.REDIS_VERSION_NUM) end)
redis.register_function('fl', function(k, a) getmetatable(_G).__index = 1 end)
redis.register_function('fm', function(k, a) return {#k, select('#', unpack(a)), math.max(1, 2), cjson.encode(a), string.rep('x', 3)} end)
redis.register_function('fn', function(k, a) redis.call('incr', k[1]) error('late') end)
redis.register_function('fo', function(k, a) r.log = 1 end)
redis.register_function('fp', function(k, a) return {tostring(pcall(r.call)), tostring(pcall(redis.call, 'x')), loadstring('return ' .. a[1])()} end)
redis.register_function('fq', function(k, a) return r.REPL_ALL end)
`

// sorted is a reply of FUNCTION LIST with its libraries and functions in order of their names: Redis has them in the
// order of a hash.
func sorted(r resp.Reply) resp.Reply {
	byName := func(a, b resp.Reply) int { return strings.Compare(show(a.Items[1]), show(b.Items[1])) }
	slices.SortFunc(r.Items, byName)
	for _, lib := range r.Items {
		slices.SortFunc(lib.Items[5].Items, byName)
	}
	return r
}

// TestFunctionsAgreeWithRedis loads libraries in both servers, calls their functions, and exchanges dumps.
func TestFunctionsAgreeWithRedis(t *testing.T) {
	p := newPair(t)
	load := func(name, function, reply string) string {
		return fmt.Sprintf("#!lua name=%s\nredis.register_function('%s', function() return %s end)", name, function, reply)
	}
	list := func(args ...string) {
		t.Helper()
		ours, theirs, err := p.one(append([]string{"function", "list"}, args...))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := show(sorted(ours)), show(sorted(theirs)); a != b {
			t.Errorf("FUNCTION LIST %q:\nstave %.2000s\nredis %.2000s", args, a, b)
		}
	}
	for _, version := range []string{"2", "3"} {
		if _, _, err := p.one([]string{"hello", version}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(libraryCorpus) {
			source, err := strconv.Unquote(`"` + strings.TrimSuffix(line, "\n") + `"`)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			compareScripts(t, p, []string{"function", "load", "replace", source})
			list()
		}
		compareScripts(t, p, []string{"function", "flush", "sync"})
		for range 2 {
			compareScripts(t, p, []string{"function", "load", manyFunctions})
		}
		for _, f := range "123456789abcdeghijklmnopq" {
			compareScripts(t, p, []string{"fcall", "f" + string(f), "1", "k", "1"})
			compareScripts(t, p, []string{"fcall_ro", "F" + strings.ToUpper(string(f)), "0"})
		}
		compareScripts(t, p, []string{"get", "k"})
		for _, args := range [][]string{{}, {"libraryname", "MY*"}, {"libraryname", "x*"}, {"withcode", "libraryname", "mylib"}} {
			list(args...)
		}
		compareScripts(t, p, []string{"function", "load", load("other", "o1", "1")})
		for _, args := range functionCalls {
			compareScripts(t, p, args)
		}
		list("withcode")
		compareScripts(t, p, []string{"function", "flush"})
	}
	exchangeLibraries(t, p)
}

// functionCalls are commands about the functions of manyFunctions and other.
var functionCalls = [][]string{
	{"fcall", "none", "0"}, {"fcall", "f1", "x"}, {"fcall", "f1", "-1"}, {"fcall", "f1", "2", "a"}, {"fcall", "f1"}, {"fcall", "f1", "1", "a"},
	{"fcall_ro", "fc", "0"}, {"fcall_ro", "none", "x"},
	{"function", "list", "libraryname"}, {"function", "list", "foo"}, {"function", "list", "withcode", "withcode"}, {"function", "list", "libraryname", "a", "libraryname", "b"},
	{"function", "stats"}, {"function", "kill"}, {"function", "delete", "x"}, {"function", "delete", "MYLIB"}, {"function", "load"},
	{"function", "load", "foo", "x"}, {"function", "load", "replace"}, {"function", "load", "replace", "REPLACE", manyFunctions},
	{"function", "load", "#!lua name=other\nredis.register_function('f1', function() end)"},
	{"function", "load", "replace", "#!lua name=other\nredis.register_function('f1', function() end)"},
	{"function", "load", "#!lua name=third\nredis.register_function('x1', function() end) redis.register_function('F1', function() end)"},
	{"fcall", "o1", "0"}, {"fcall", "x1", "0"},
	{"function", "restore"}, {"function", "restore", "abc"}, {"function", "restore", "abc", "x"}, {"function", "restore", "abc", "flush", "x"},
	{"function", "flush", "x"}, {"function", "flush", "sync", "y"}, {"function", "foo"}, {"function"}, {"function", "dump", "x"},
	{"command", "getkeys", "fcall", "x", "2", "a", "b", "c"}, {"command", "getkeys", "fcall_ro", "x", "0"},
	{"eval", "return redis.call('fcall','f1',0)", "0"}, {"eval", "return redis.pcall('function','list')", "0"},
	{"eval_ro", "#!lua\nreturn 1", "0"}, {"eval_ro", "#!lua flags=no-writes\nreturn 1", "0"},
	{"config", "set", "maxmemory", "1"}, {"fcall", "f1", "0"}, {"fcall", "f2", "0"}, {"fcall", "fb", "0"}, {"fcall", "fc", "0"}, {"function", "load", "x"}, {"function", "restore", "x"},
	{"eval", "#!lua\nreturn 1", "0"}, {"eval", "#!lua flags=allow-oom\nreturn redis.call('set','a','1')", "0"}, {"eval", "#!lua flags=no-writes\nreturn 1", "0"},
	{"config", "set", "maxmemory", "0"},
	{"multi"}, {"function", "delete", "other"}, {"fcall", "o1", "0"}, {"function", "load", "#!lua name=in\nredis.register_function('i1', function() return 7 end)"},
	{"fcall", "i1", "0"}, {"function", "load", "#!lua name=in\nx"}, {"function", "stats"}, {"function", "delete", "in"}, {"function", "delete", "in"}, {"set", "m", "1"}, {"exec"}, {"fcall", "i1", "0"},
	{"multi"}, {"function", "flush"}, {"fcall", "f1", "0"}, {"discard"}, {"fcall", "f1", "0"},
	{"watch", "w"}, {"set", "w", "1"}, {"multi"}, {"function", "flush"}, {"exec"}, {"fcall", "f1", "0"},
}

// exchangeLibraries restores in each server what the other has dumped, by all policies.
func exchangeLibraries(t *testing.T, p *pair) {
	t.Helper()
	one := func(args ...string) (ours, theirs resp.Reply) {
		t.Helper()
		ours, theirs, err := p.one(args)
		if err != nil {
			t.Fatal(err)
		}
		return ours, theirs
	}
	one("hello", "2")
	for _, args := range [][]string{
		{"function", "dump"}, {"function", "load", manyFunctions}, {"function", "load", "#!lua name=o\nredis.register_function('o', function() return 5 end)"},
	} {
		one(args...)
	}
	ours, theirs := one("function", "dump")
	payloads := []string{string(ours.Text), string(theirs.Text)}
	one("set", "s", "1")
	dumped, _ := one("dump", "s")
	payloads = append(payloads, string(dumped.Text), payloads[0][:len(payloads[0])-1]+"\xff", "")
	for _, before := range [][]string{{"function", "flush"}, {"function", "delete", "o"}, {"function", "delete", "mylib"}, {"function", "load", "replace", "#!lua name=o\nredis.register_function('f1', function() end)"}} {
		for _, policy := range []string{"", "append", "REPLACE", "flush"} {
			for _, payload := range payloads {
				one("function", "restore", payloads[0], "flush")
				one(before...)
				args := []string{"function", "restore", payload}
				if policy != "" {
					args = append(args, policy)
				}
				ours, theirs := one(args...)
				a, b := show(ours), show(theirs)
				if strings.Contains(a, "already exists") && strings.Contains(b, "already exists") {
					a = b // which of them is found first differs
				}
				if a != b {
					t.Errorf("%q, then RESTORE %.20q %s: stave %s, redis %s", before, payload, policy, a, b)
				}
				compareScripts(t, p, []string{"fcall", "o", "0"})
				compareScripts(t, p, []string{"fcall", "f1", "1", "a", "b"})
				compareScripts(t, p, []string{"function", "stats"})
			}
		}
	}
}
