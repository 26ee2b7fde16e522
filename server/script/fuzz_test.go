package script_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/server/script"
)

// What a fuzz target gives to a library arrives as ARGV[1], and the script says whether what came out is sound.

func fuzzScript(f *testing.F, source string) {
	e := script.NewEngine("7.2.4")
	f.Fuzz(func(t *testing.T, in []byte) {
		got := runOn(t, e, source, func(r *script.Run) { r.Args, r.Memory = [][]byte{in}, 64<<20 })
		if strings.Contains(got, "UNSOUND") || strings.Contains(got, "runtime error") {
			t.Errorf("%q: %q", in, got)
		}
	})
}

// FuzzMsgpack: what unpacks packs again to something that unpacks to the same.
func FuzzMsgpack(f *testing.F) {
	for _, seed := range []string{"\x01", "\x93\x01\x02\x03", "\x82\xa1a\x01\xa1b\xc0", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", "\xdc\xff\xff", "\xd9\x03abc", "\xc1"} {
		f.Add([]byte(seed))
	}
	fuzzScript(f, `local ok, v = pcall(cmsgpack.unpack_one, ARGV[1]) if not ok then return end
local _, first = cmsgpack.unpack_one(ARGV[1])
local packed = cmsgpack.pack(first)
local _, again = cmsgpack.unpack_one(packed)
if type(first) ~= type(again) then error("UNSOUND type") end
if type(first) ~= "table" and first == first and first ~= again then error("UNSOUND value") end`)
}

// FuzzJSON: what decodes encodes to something that decodes to the same text again.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,null,true],"b":"x\u00e9\n"}`, `[[[]]]`, `"\ud83d\ude00"`, `-1e5`, `0x1p-3`, `nan`, `{"a":1,"a":2}`, `[1,`, `"\`} {
		f.Add([]byte(seed))
	}
	fuzzScript(f, `local ok, v = pcall(cjson.decode, ARGV[1]) if not ok then return end
local fine, text = pcall(cjson.encode, v) if not fine then return end
if cjson.encode(cjson.decode(text)) ~= text then error("UNSOUND") end`)
}

// FuzzStruct: a format and data, cut at the first blank of the input, never break out of the library; an integer comes
// back.
func FuzzStruct(f *testing.F) {
	for _, seed := range []string{"<i4 abcd", ">!8bd 0123456789abcdef", "s abc\x00", "Bc0 \x03abc", "i32 x", "!3i ", "c99999999 x"} {
		f.Add([]byte(seed))
	}
	fuzzScript(f, `local format, data = ARGV[1]:match("^(.-) (.*)$") if not format then return end
pcall(struct.size, format) pcall(struct.pack, format, 1, 2, 3) pcall(struct.unpack, format, data)
if struct.unpack("<i8", struct.pack("<i8", #data)) ~= #data then error("UNSOUND") end`)
}

// FuzzPattern: a pattern and a subject end, within the limits; find and match agree on whether there is a match, where
// a zero byte does not end the pattern (find takes that for plain text if nothing special is before it).
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"%a+ hello", "(a*(.)%w)() abcd", "[^]] x", "%b() (a(b))", "%f[%w]%w+ the end", ".-.-.-b aaaaaaaaaaaaaaaa", "% x", "[ x", "(()) x"} {
		f.Add([]byte(seed))
	}
	fuzzScript(f, `local pattern, s = ARGV[1]:match("^([^ ]*) (.*)$") if not pattern or #ARGV[1] > 60 or pattern:find("%z") or not pattern:find("[%^%$%*%+%?%.%(%[%%%-]") then return end
local a, from = pcall(string.find, s, pattern) local b, m = pcall(string.match, s, pattern)
if a ~= b or a and (from == nil) ~= (m == nil) then error("UNSOUND") end
pcall(string.gsub, s, pattern, "%0")`)
}

// FuzzSource: any text compiles or is refused, and ends.
func FuzzSource(f *testing.F) {
	for _, seed := range []string{"return 1", "local a = {1, x = 2} return a.x .. #a", "for i = 1, 3 do end", "return function(...) return ... end", "goto x", "return 0x", "\x1bLua", "#!lua flags=no-writes\nreturn 1", "a.b:c'x'"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if p, err := script.Compile(string(in), "user_script"); (p == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", in, p, err)
		}
	})
}
