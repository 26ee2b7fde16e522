package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// parseLine is a parser's first line.
func parseLine(text []byte, namespace int, now int64) (line, error) {
	var p parser
	return p.parse(text, namespace, now)
}

// one is a line of a key in namespace 0, with the elements that are given.
func one(key, kind string, elements ...string) line {
	l := line{kind: kind}
	l.Name, l.First, l.Last, l.Value.Kind = []byte(key), true, true, kinds[kind]
	for _, e := range elements {
		l.Value.Elements = append(l.Value.Elements, []byte(e))
	}
	return l
}

// with changes a line.
func with(l line, change func(l *line)) line {
	change(&l)
	return l
}

func TestParseLine(t *testing.T) {
	const now = 1_000_000
	library := func(l *line) { l.Library = true }
	tests := []struct {
		name string
		line string
		want line
	}{
		{"string", `{"key":"k","type":"string","value":"v"}`, one("k", "string", "v")},
		{"number keeps its digits", `{"key":7,"type":"string","value":1.50}`, one("7", "string", "1.50")},
		{"members in any order", `{"value":"v","type":"string","key":"k","db":4}`, with(one("k", "string", "v"), func(l *line) { l.Database = 4 })},
		{"relative deadline", `{"key":"k","type":"string","value":"","ttl_ms":500}`, with(one("k", "string", ""), func(l *line) { l.Deadline = now + 500 })},
		{"absolute deadline", `{"key":"k","type":"string","value":"","expire_at_ms":77}`, with(one("k", "string", ""), func(l *line) { l.Deadline = 77 })},
		{"base64", `{"keyB64":"AP8=","type":"string","valueB64":"/w=="}`, one("\x00\xff", "string", "\xff")},
		{"hash", `{"key":"k","type":"hash","value":{"f":"v","":{"b64":"gA=="}}}`, one("k", "hash", "f", "v", "", "\x80")},
		{"hash with deadlines", `{"key":"k","type":"hash","value":{"f":"v","g":""},"field_expire_at_ms":{"g":77}}`,
			with(one("k", "hash", "f", "v", "g", ""), func(l *line) { l.Value.Deadlines = []int64{0, 77} })},
		{"hash with deadlines as pairs", `{"key":"k","type":"hash","field_expire_at_ms":[[{"b64":"gA=="},77]],"value":[[{"b64":"gA=="},"v"]]}`,
			with(one("k", "hash", "\x80", "v"), func(l *line) { l.Value.Deadlines = []int64{77} })},
		{"hash as pairs", `{"key":"k","type":"hash","value":[[{"b64":"gA=="},"v"]]}`, one("k", "hash", "\x80", "v")},
		{"list may repeat", `{"key":"k","type":"list","value":["a","a",3]}`, one("k", "list", "a", "a", "3")},
		{"set", `{"key":"k","type":"set","value":["a","b"]}`, one("k", "set", "a", "b")},
		{"zset", `{"key":"k","type":"zset","value":[["a",-1.5],["b","inf"],["c","-inf"]]}`,
			with(one("k", "zset", "a", "b", "c"), func(l *line) { l.Value.Scores = []float64{-1.5, math.Inf(1), math.Inf(-1)} })},
		{"library", `{"library":"a","value":"x"}`, with(one("a", "string", "x"), library)},
		{"library of bytes", `{"valueB64":"/w==","library":{"b64":"gA=="}}`, with(one("\x80", "string", "\xff"), library)},
		{"surrogate pair", `{"key":"\ud83d\ude00","type":"string","value":"\\ud800"}`, one("\U0001f600", "string", `\ud800`)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseLine([]byte(test.line), 0, now)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestParseLineRefuses(t *testing.T) {
	tests := []struct{ line, want string }{
		{`{"key":"k","type":"string","value":"v","tll_ms":5}`, `unknown member "tll_ms"`},
		{`{"Key":"k","type":"string","value":"v"}`, `unknown member "Key"`},
		{`{"key":"k","key":"l","type":"string","value":"v"}`, `"key" appears twice`},
		{`{"type":"string","value":"v"}`, "no key"},
		{`{"key":"k","value":"v"}`, "no type"},
		{`{"library":"a"}`, "no value"},
		{`{"library":"a","value":""}`, "needs a name and a text"},
		{`{"library":"","value":"x"}`, "needs a name and a text"},
		{`{"library":"a","value":["x"]}`, "expected value as a string"},
		{`{"library":"a","key":"k","type":"string","value":"x"}`, "a library has no key"},
		{`{"library":"a","value":"x","ttl_ms":5}`, "a library has no ttl_ms"},
		{`{"library":"a","value":"x","db":0}`, "a library has no db"},
		{`{"key":"k","type":"string"}`, "no value"},
		{`{"key":"k","type":"json","value":"v"}`, "type must be"},
		{`{"key":"k","type":"stream","value":"v"}`, "expected an object as the value of a stream"},
		{`{"key":"k","type":"stream","value":{"entries":[["1-1"]]}}`, "has no fields"},
		{`{"key":"k","type":"stream","value":{"entries":[["1-1","f"]]}}`, "a field without a value"},
		{`{"key":"k","type":"stream","value":{"entries":[["2-1","f","v"],["2-1","f","v"]]}}`, "is not after the one before"},
		{`{"key":"k","type":"stream","value":{"entries":[["1.1","f","v"]]}}`, "an id must be"},
		{`{"key":"k","type":"stream","value":{"added":-1}}`, "added must not be -1"},
		{`{"key":"k","type":"stream","value":{"group":[]}}`, "unknown member"},
		{`{"key":"k","type":"stream","value":{"groups":[{}]}}`, "has no name"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","to":1}]}}`, "unknown member"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g"},{"name":"g"}]}}`, "appears twice"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","read":-2}]}}`, "read must not be -2"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","consumers":[["c",1]]}]}}`, "a consumer must be"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","consumers":[["c",1,1],["c",1,1]]}]}}`, "appears twice"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","pending":[["1-1","c",1,1]]}]}}`, "no consumer of the group"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","pending":[["1-1","c",1]]}]}}`, "a pending entry must be"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","consumers":[["c",1,1,1]]}]}}`, "a consumer must be"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","pending":[["1-1","c",1,1,1]]}]}}`, "a pending entry must be"},
		{`{"key":"k","type":"stream","value":{"groups":[{"name":"g","consumers":[["c",1,1]],"pending":[["1-1","c",1,1],["1-1","c",1,1]]}]}}`, "is not after the one before"},
		{`{"key":"k","type":null,"value":"v"}`, "found null"},
		{`{"key":"k","type":"string","value":true}`, "found true"},
		{`{"key":"k","type":"string","value":["v"]}`, "found an array"},
		{`{"key":"k","type":"string","value":{"B64":"AA=="}}`, "another object"},
		{`{"key":"k","type":"string","value":{"b64":"AA==","x":1}}`, "another object"},
		{`{"key":"k","type":"string","valueB64":"!"}`, "not base64"},
		{`{"key":"k","type":"string","value":"v","valueB64":"AA=="}`, "exclude each other"},
		{`{"key":"k","type":"set","valueB64":"AA=="}`, "valueB64 is for strings"},
		{`{"key":"k","type":"hash","value":"v"}`, "an object or an array of pairs"},
		{`{"key":"k","type":"hash","value":{"f":"1","f":"2"}}`, `"f" appears twice in an object, at byte 43`},
		{`{"key":"k","type":"set","value":["a","a"]}`, `"a" appears twice in the set`},
		{`{"key":"k","type":"zset","value":[["a"]]}`, "',' and a score"},
		{`{"key":"k","type":"zset","value":[["a",1,2]]}`, "the end of a [member, score] pair"},
		{`{"key":"k","type":"zset","value":[["a","nan"]]}`, "a score must be a number"},
		{`{"key":"k","type":"zset","value":[["a",1e999]]}`, "beyond a float64"},
		{`{"key":"k","type":"zset","value":{"a":1}}`, "expected an array"},
		{`{"key":"k","type":"string","value":"v","ttl_ms":0}`, "must be positive"},
		{`{"key":"k","type":"string","value":"v","ttl_ms":1.5}`, "must be a whole number"},
		{`{"key":"k","type":"string","value":"v","ttl_ms":1,"expire_at_ms":2}`, "exclude each other"},
		{`{"key":"k","type":"set","value":["v"],"field_expire_at_ms":{"v":1}}`, "is for hashes, not for a set"},
		{`{"key":"k","type":"hash","value":{"f":"v"},"field_expire_at_ms":{"g":1}}`, "is not in the hash"},
		{`{"key":"k","type":"hash","value":{"f":"v"},"field_expire_at_ms":{"f":0}}`, "must not be 0"},
		{`{"key":"k","type":"hash","value":{"f":"v"},"field_expire_at_ms":[["f",1],["f",2]]}`, "or has two"},
		{`{"key":"k","type":"string","value":"v","db":-1}`, "db must not be -1"},
		{`{"key":"k","type":"string","value":"\ud800"}`, "surrogate"},
		{`{"key":"k","type":"string","value":"\udc00\ud800"}`, "surrogate"},
		{"{\"key\":\"k\",\"type\":\"string\",\"value\":\"\xff\"}", "not valid UTF-8"},
		{`{"key":"k","type":"string","value":"v"`, "ends too early"},
		{`{"key":"k","type":"string","value":"v"} {}`, "something follows"},
		{`{"key":"k" "type":"string"}`, "(expecting ',' or '}') at byte 12"},
		{`["key"]`, "expected an object"},
	}
	for _, test := range tests {
		if _, err := parseLine([]byte(test.line), 0, 0); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n\tgot error %v\n\twant one with %q", test.line, err, test.want)
		}
	}
}

// FuzzAnyBytesSurvive proves that any bytes survive the way out and back.
func FuzzAnyBytesSurvive(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\x00\n\r\t\x7f", "\xff\xfe", "\u0080\u009f\u00a0", "\u2028\ufffd", "\U0001f600"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		want := one(key, "string", value)
		line := append(appendStringValue(appendHead(nil, 0, key, "string", 0), []byte(value)), '}')
		if !utf8.Valid(line) || strings.ContainsAny(string(line), "\n\x1b\x7f") {
			t.Fatalf("unsafe line %q", line)
		}
		got, err := parseLine(line, 0, 0)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %+v, %v", line, got, err)
		}
		line = append(appendHead(nil, 0, key, "string", 0), `,"value":[`...)
		line = append(AppendBytes(line, value), "]}"...)
		line = []byte(strings.Replace(string(line), `"type":"string"`, `"type":"list"`, 1))
		got, err = parseLine(line, 0, 0)
		if err != nil || len(got.Value.Elements) != 1 || string(got.Value.Elements[0]) != value {
			t.Fatalf("%s: got %+v, %v", line, got, err)
		}
	})
}

// FuzzStringValue compares what a line reads as a string with encoding/json: what one accepts the other does, save
// what encoding/json would repair.
func FuzzStringValue(f *testing.F) {
	for _, s := range []string{`"x\u00e9\ud83d\ude00\n\/"`, `-0.5e+7`, `1e700`, `true`, `{"a":[1,null]}`, `"\ud800"`, "\"\xff\"", `01`, `[1,]`, `-`, `1.`, `[[]`, ` "a" `, "\"\x00\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		line := append(append([]byte(`{"key":"k","type":"string","value":`), value...), '}')
		got, err := parseLine(line, 0, 0)
		var want struct{ Value any }
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber() // a number is taken as its text, also one that is no float64
		theirs := d.Decode(&want)
		if theirs == nil && !json.Valid(line) {
			theirs = errors.New("more follows")
		}
		text, isText := want.Value.(string)
		switch {
		case err == nil && theirs != nil:
			t.Fatalf("%q accepted, which encoding/json refuses: %v", line, theirs)
		case err == nil && isText && string(got.Value.Elements[0]) != text:
			t.Fatalf("%q reads %q, encoding/json %q", line, got.Value.Elements[0], text)
		case err != nil && theirs == nil && isText && utf8.Valid(line) && !strings.Contains(err.Error(), "surrogate") && !bytes.ContainsAny(value, ","):
			t.Fatalf("%q refused: %v", line, err)
		}
	})
}

// FuzzParseLine proves that no line makes the parser panic.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"key":"k","type":"zset","value":[["a",1]],"ttl_ms":5,"db":1}`))
	f.Add([]byte(`{"keyB64":"AA==","type":"hash","value":[["f",{"b64":"AA=="}]]}`))
	f.Add([]byte(`{"library":"a","valueB64":"AA=="}`))
	f.Add([]byte(`{"\ud800`))
	f.Fuzz(func(t *testing.T, line []byte) {
		rec, err := parseLine(line, 0, 1)
		if kind, known := kinds[rec.kind]; err == nil && (!known || kind != rec.Value.Kind) {
			t.Fatalf("%q: accepted type %q", line, rec.kind)
		}
	})
}

func TestScoresReadBack(t *testing.T) {
	for _, score := range []float64{0, 1, -1, 1.5, 1e16, 1e17, 1e21, -1e300, 5e-324, math.MaxFloat64, 0.1, 1 << 53, math.Inf(1), math.Inf(-1)} {
		line := append([]byte(`{"key":"k","type":"zset","value":[["m",`), AppendScore(nil, score)...)
		rec, err := parseLine(append(line, "]]}"...), 0, 0)
		if err != nil || rec.Value.Scores[0] != score {
			t.Errorf("%v: %s gave %+v, %v", score, line, rec, err)
		}
	}
}
