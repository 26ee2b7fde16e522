package server_test

import (
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

//go:embed testdata/scripts.txt
var scriptCorpus string

var scriptsFlag = flag.Int("scripts", 3000, "scripts drawn at random that TestLuaAgreesWithRedis compares")

// What differs from redis-server 7.0 on purpose: the interpreter's own errors do not name the variable, the parser has
// words of its own, and the sign of a NaN is the processor's.
var scriptDifferences = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`attempt to (\w+|get length of|perform arithmetic on) (?:local|global|field|upvalue|method) '[^']*' \(a (\w+) value\)`), "attempt to $1 a $2 value"},
	{regexp.MustCompile(`attempt to call a \S+ value`), "attempt to call a value"},
	{regexp.MustCompile(`bad argument #(\d+) to '[^']*'`), "bad argument #$1"},
	{regexp.MustCompile(`(user_script|user_function|\[string "[^"]*"\]|foo):(\d+): [^:]* near '[^']*'`), "$1:$2: syntax error"},
	{regexp.MustCompile(`-nan`), "nan"},
	{regexp.MustCompile(`(?:table|function|thread): 0x[0-9a-f]+`), "address"},
}

// settled is a reply in which that does not show.
func settled(r resp.Reply) string {
	text := show(r)
	for _, d := range scriptDifferences {
		text = d.pattern.ReplaceAllString(text, d.text)
	}
	return text
}

func compareScripts(t *testing.T, p *pair, args []string) bool {
	t.Helper()
	ours, theirs, err := p.one(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	a, b := settled(ours), settled(theirs)
	if a != b {
		t.Errorf("%q:\nstave %.600s\nredis %.600s", args, a, b)
	}
	return a == b
}

// TestLuaAgreesWithRedis runs the scripts of a list, and ones that are drawn at random, in both servers.
func TestLuaAgreesWithRedis(t *testing.T) {
	p := newPair(t)
	for _, version := range []string{"2", "3"} {
		if _, _, err := p.one([]string{"hello", version}); err != nil {
			t.Fatal(err)
		}
		for script := range strings.Lines(scriptCorpus) {
			compareScripts(t, p, []string{"eval", strings.TrimSuffix(script, "\n"), "1", "k1", "a1"})
		}
	}
	for _, args := range [][]string{
		{"eval", "#!lua x=1\nreturn 1", "0"}, {"eval", "#!foo\nreturn 1", "0"}, {"eval", "#!lua flags=foo\nreturn 1", "0"}, {"eval", "#!lua", "0"},
		{"eval", "#!lua flags=no-writes\nreturn redis.call('set','a',1)", "0"}, {"eval", "#!lua flags=no-writes,allow-stale\nreturn redis.call('get','a')", "0"},
		{"eval", "#!lua\nreturn redis.call('set','a',1)", "0"}, {"eval_ro", "return redis.call('set','a',1)", "0"},
		{"eval_ro", "return redis.call('publish','a',1)", "0"}, {"eval_ro", "return redis.call('get','a')", "0"},
		{"evalsha", "aaaa", "0"}, {"eval", "return 1", "-1"}, {"eval", "return 1", "x"}, {"eval", "return 1", "3", "a"},
		{"script", "load", "return 41"}, {"evalsha", "a5f7e2a3a2ad4eb8c1dd5c1b8ae6fa0ef4e9bc4b", "0"}, {"script", "exists", "A", "B"},
		{"script", "foo"}, {"script", "kill"}, {"script", "flush", "x"}, {"script", "flush"}, {"script", "debug", "no"}, {"script", "debug", "x"},
		{"command", "getkeys", "eval", "x", "2", "a", "b", "c"}, {"command", "getkeys", "eval", "x", "0"},
		{"multi"}, {"eval", "redis.call('set','m',1) error('x')", "0"}, {"get", "m"}, {"eval", "return redis.call('incr','m')", "0"}, {"exec"}, {"get", "m"},
	} {
		compareScripts(t, p, args)
	}
	g := scriptGenerator{chance.Rand(t)}
	for failed, i := 0, 0; i < *scriptsFlag && failed < 10; i++ {
		if !compareScripts(t, p, []string{"eval", g.script(), "1", "k1", "a1"}) {
			failed++
		}
	}
	t.Logf("%d scripts compared", p.compared)
}

// scriptGenerator draws calls of library functions.
type scriptGenerator struct{ *rand.Rand }

// showLua writes any value as text, the keys of a table in order.
const showLua = `local function show(v, d) local t = type(v) if t == 'table' then if d > 5 then return '...' end local k = {} ` +
	`for i, x in pairs(v) do k[#k+1] = show(i, d+1) .. '=' .. show(x, d+1) end table.sort(k) return '{' .. table.concat(k, ',') .. '}' ` +
	`elseif t == 'number' then return string.format('%.17g', v) elseif t == 'string' then return string.format('%q', v) ` +
	`elseif t == 'function' or t == 'thread' then return t end return tostring(v) end `

// libraryCalls are functions with the kinds of their arguments: s a string, n a small number and at times any, k a
// count, N any number, t a table, l a list, v anything, p a pattern, r a replacement, f a format of struct, F a format
// of string, j JSON, m MessagePack.
var libraryCalls = []string{
	"string.byte snn", "string.char nnn", "string.find spnv", "string.format FvvN", "string.gsub sprn", "string.len s", "string.lower s",
	"string.match spn", "string.reverse s", "string.sub snn", "string.upper s", "string.rep sk", "table.concat lsnn", "table.getn l", "table.maxn t",
	"table.remove ln", "math.abs N", "math.ceil N", "math.floor N", "math.fmod NN", "math.frexp N", "math.ldexp nn", "math.max NNN", "math.min NNN",
	"math.modf N", "math.sqrt N", "math.deg n", "math.rad n", "bit.band NNN", "bit.bor NN", "bit.bxor NN", "bit.bnot N", "bit.lshift Nn", "bit.rshift Nn",
	"bit.arshift Nn", "bit.rol Nn", "bit.ror Nn", "bit.bswap N", "bit.tobit N", "bit.tohex Nn", "tostring N", "tonumber v", "tonumber sn", "type v", "unpack lnn",
	"select nvv", "next t", "rawget tv", "rawequal vv", "ipairs t", "cjson.encode v", "cjson.encode t", "cjson.decode j", "cmsgpack.pack vvN", "cmsgpack.unpack m",
	"cmsgpack.unpack_one mn", "cmsgpack.unpack_limit mnn", "struct.pack fNNs", "struct.pack fsNN", "struct.unpack fmn", "struct.size f", "redis.sha1hex s",
	"redis.error_reply s", "redis.status_reply s", "assert vs", "error v", "getmetatable v", "redis.pcall s", "redis.call s", "redis.pcall sss",
}

var luaValues = map[rune][]string{
	's': {`""`, `"abc"`, `"hello world"`, `"10"`, `"0x1F"`, `" 5 "`, `"a.b.c"`, `"x=1, y=22"`, `"aXbXc"`, `"a\0b"`, `"\200\255"`, `("ab"):rep(50)`, `12`, `1.5`, `"get"`, `"SET"`},
	'n': {"0", "1", "2", "3", "-1", "-2", "5", "10", "1.5", `"2"`, "nil", "31", "-0.5"},
	'k': {"0", "1", "2", "3", "-1", "5", "1.5", `"2"`, "nil", "31", "-0.5", "-1/0", "0/0"},
	'N': {"0", "1", "-1", "2.5", "-2.5", "1e15", "2^53", "-2^53", "1/3", "1e-5", "123456789012", "255", "65536", "2^31", "-2^31", "2^32", `"7"`, "0.1", "1e100", "-1e-10", "3.5", "4.5", "1/0", "-1/0", "0/0", "2^63", "-2^63", "2^64", "2^32+65", "-1e300"},
	't': {"{}", "{1,2,3}", "{a=1}", `{"x",{"y"}}`, "{[1]=1,[2]=2,[4]=4}", "{1,nil,3}", "{[1.5]=1}", "{[-1]=0}", `{["a/b"]="c\nd"}`, "{{},{}}", "{true,false}", "{[100]=1}"},
	'l': {"{}", "{1,2,3}", `{"a","b","c","d"}`, `{"x",1.5,-2}`, "{1,{}}", "{true}"},
	'v': {"nil", "true", "false", "0", "-1", "2.5", "1e15", `"abc"`, `"10"`, `""`, "{}", "{1,2}", "{a=1}", "1/0", "cjson.null", "print and 1", "function() end"},
	'p': {`"%a+"`, `"b"`, `"(%w)(%w)"`, `".-b"`, `"[a-c]+"`, `"^h"`, `"o$"`, `"()"`, `"%s*"`, `"[^%s]+"`, `"%d+"`, `"(a*(.)%w)"`, `"%bXX"`, `"%f[%w]%w+"`, `"."`, `""`, `"[%]]"`, `"%."`, `"a?b?c?"`, `"(h)(e)(l)%3"`, `"[%a_][%w_]*"`, `"["`, `"%"`, `"("`, `"%1"`, `"[]]"`, `"[^]a]"`, `"[a-]"`, `"x-"`, `"a\0+"`, `"l+\0x"`, `"[a\0]"`, `"%\0"`},
	'r': {`"X"`, `"%0%0"`, `"%1"`, `"<%1>"`, `"%%"`, `{a="A",b=false}`, `function(a, b) return b end`, `function() return 7 end`, `function() end`, `""`, "5"},
	'f': {`"i"`, `"<i4"`, `">I2"`, `"!8bd"`, `"s"`, `"c0"`, `"Bc0"`, `"x"`, `"hh"`, `"<l>L"`, `"fd"`, `"i3"`, `"I8"`, `"i16"`, `"c3"`, `"!4 bi"`, `"T"`, `">!2bhbi"`, `"i33"`, `"y"`, `"!3i"`, `"ss"`, `""`},
	'F': {`"%d"`, `"%5.2f|%s"`, `"%-10s|"`, `"%05d"`, `"%x %X"`, `"%e"`, `"%g %G"`, `"%q"`, `"%c"`, `"%%"`, `"%+d % d"`, `"%#x %#o"`, `"%.3s"`, `"%i"`, `"%u"`, `"%10.4g"`, `"%s %s %s"`, `"%.0f"`, `"%#.0e"`, `"%y"`, `"%"`, `"%123d"`, `"%.14g"`, `"%.17g"`, `"%5s%-5s|"`, `"%03.1f"`, `"%.20f"`},
	'j': {`"[]"`, `"{}"`, `"[1,2.5,-3e2]"`, `'{"a":{"b":[true,false,null]}}'`, `'"x\\n\\u00e9\\ud83d\\ude00"'`, `"tru"`, `"[1,]"`, `'{"a"}'`, `"1 2"`, `'"abc'`, `"0x10"`, `"-inf"`, `"01"`, `"."`, `"[[[]]]"`, `" [ 1 , 2 ] "`, `'{"a":1,"a":2}'`, `'"\\x"'`, `"nan"`, `"-"`, `"+1"`, `"[1e5]"`, `'{"":0}'`, `"{1:1}"`, `"[}"`, `"123456789012345678"`},
	'm': {`"\1"`, `"\255"`, `"\163abc"`, `"\147\1\2\3"`, `"\129\161a\1"`, `"\192\194\195"`, `"\202\63\192\0\0"`, `"\203\63\248\0\0\0\0\0\0"`, `"\204\255\205\1\0\206\0\1\0\0"`, `"\208\128\209\128\0"`, `"\217\3abc"`, `"\218\0\1a"`, `"\220\0\1\1"`, `"\222\0\1\1\2"`, `"\193"`, `"\147\1"`, `"\163a"`, `""`, `"\196\1a"`, `"\207\0\0\0\0\0\0\0\1\211\255\255\255\255\255\255\255\254"`, `"abcdefghijklmnop"`, `"\0\0\0\5hello\0"`, `"\130\1\2"`, `"\129\192\1"`},
}

func (g scriptGenerator) value(kind rune) string {
	if kind != 'k' && g.IntN(12) == 0 {
		kind = 'v'
	}
	if kind == 'n' && g.IntN(12) == 0 {
		kind = 'N'
	}
	list := luaValues[kind]
	return list[g.IntN(len(list))]
}

// script is a call whose results are shown, with all or some of its arguments.
func (g scriptGenerator) script() string {
	name, kinds, _ := strings.Cut(libraryCalls[g.IntN(len(libraryCalls))], " ")
	if g.IntN(6) == 0 {
		kinds = kinds[:g.IntN(len(kinds)+1)]
	}
	var args []string
	for _, kind := range kinds {
		arg := g.value(kind)
		if g.IntN(10) == 0 && name != "string.rep" {
			arg = fmt.Sprintf("(%s .. %s)", g.value('s'), g.value('N'))
		}
		args = append(args, strings.ReplaceAll(arg, "print and 1", "1"))
	}
	return showLua + "return show({pcall(function() return " + name + "(" + strings.Join(args, ", ") + ") end)}, 0)"
}
