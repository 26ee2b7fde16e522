package jsonl

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// parseLine is a parser's first line.
func parseLine(line []byte, namespace int, now int64) (keyLine, error) {
	var p parser
	return p.parse(line, namespace, now)
}

func TestParseLine(t *testing.T) {
	const now = 1_000_000
	tests := []struct {
		name string
		line string
		want keyLine
	}{
		{"string", `{"key":"k","type":"string","value":"v"}`, keyLine{key: "k", kind: "string", value: "v"}},
		{"number keeps its digits", `{"key":7,"type":"string","value":1.50}`, keyLine{key: "7", kind: "string", value: "1.50"}},
		{"members in any order", `{"value":"v","type":"string","key":"k","db":4}`, keyLine{namespace: 4, key: "k", kind: "string", value: "v"}},
		{"relative deadline", `{"key":"k","type":"string","value":"","ttl_ms":500}`, keyLine{key: "k", kind: "string", expireAt: now + 500}},
		{"absolute deadline", `{"key":"k","type":"string","value":"","expire_at_ms":77}`, keyLine{key: "k", kind: "string", expireAt: 77}},
		{"base64", `{"keyB64":"AP8=","type":"string","valueB64":"/w=="}`, keyLine{key: "\x00\xff", kind: "string", value: "\xff"}},
		{"hash", `{"key":"k","type":"hash","value":{"f":"v","":{"b64":"gA=="}}}`,
			keyLine{key: "k", kind: "hash", elements: []element{{name: "f", value: "v"}, {value: "\x80"}}}},
		{"hash with deadlines", `{"key":"k","type":"hash","value":{"f":"v","g":""},"field_expire_at_ms":{"g":77}}`,
			keyLine{key: "k", kind: "hash", elements: []element{{name: "f", value: "v"}, {name: "g"}}, deadlines: []fieldDeadline{{"g", 77}}}},
		{"hash with deadlines as pairs", `{"key":"k","type":"hash","field_expire_at_ms":[[{"b64":"gA=="},77]],"value":[[{"b64":"gA=="},"v"]]}`,
			keyLine{key: "k", kind: "hash", elements: []element{{name: "\x80", value: "v"}}, deadlines: []fieldDeadline{{"\x80", 77}}}},
		{"hash as pairs", `{"key":"k","type":"hash","value":[[{"b64":"gA=="},"v"]]}`,
			keyLine{key: "k", kind: "hash", elements: []element{{name: "\x80", value: "v"}}}},
		{"list may repeat", `{"key":"k","type":"list","value":["a","a",3]}`,
			keyLine{key: "k", kind: "list", elements: []element{{value: "a"}, {value: "a"}, {value: "3"}}}},
		{"set", `{"key":"k","type":"set","value":["a","b"]}`,
			keyLine{key: "k", kind: "set", elements: []element{{name: "a"}, {name: "b"}}}},
		{"zset", `{"key":"k","type":"zset","value":[["a",-1.5],["b","inf"],["c","-inf"]]}`,
			keyLine{key: "k", kind: "zset", elements: []element{{name: "a", score: -1.5}, {name: "b", score: math.Inf(1)}, {name: "c", score: math.Inf(-1)}}}},
		{"surrogate pair", `{"key":"\ud83d\ude00","type":"string","value":"\\ud800"}`,
			keyLine{key: "\U0001f600", kind: "string", value: `\ud800`}},
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
		{`{"key":"k","type":"string"}`, "no value"},
		{`{"key":"k","type":"stream","value":"v"}`, "type must be"},
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
		want := keyLine{key: key, kind: "string", value: value}
		line := append(appendStringValue(want.appendHead(nil), []byte(value)), '}')
		if !utf8.Valid(line) || strings.ContainsAny(string(line), "\n\x1b\x7f") {
			t.Fatalf("unsafe line %q", line)
		}
		got, err := parseLine(line, 0, 0)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %+v, %v", line, got, err)
		}
		line = append(want.appendHead(nil), `,"value":[`...)
		line = append(AppendBytes(line, value), "]}"...)
		line = []byte(strings.Replace(string(line), `"type":"string"`, `"type":"list"`, 1))
		got, err = parseLine(line, 0, 0)
		if err != nil || len(got.elements) != 1 || got.elements[0].value != value {
			t.Fatalf("%s: got %+v, %v", line, got, err)
		}
	})
}

// FuzzStringValue compares what a line reads as a string with encoding/json: what one accepts the other does, save
// what encoding/json would repair.
func FuzzStringValue(f *testing.F) {
	for _, s := range []string{`"x\u00e9\ud83d\ude00\n\/"`, `-0.5e+7`, `true`, `{"a":[1,null]}`, `"\ud800"`, "\"\xff\"", `01`, `[1,]`, `-`, `1.`, `[[]`, ` "a" `, "\"\x00\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		line := append(append([]byte(`{"key":"k","type":"string","value":`), value...), '}')
		got, err := parseLine(line, 0, 0)
		var want struct{ Value any }
		theirs := json.Unmarshal(line, &want)
		text, isText := want.Value.(string)
		switch {
		case err == nil && theirs != nil:
			t.Fatalf("%q accepted, which encoding/json refuses: %v", line, theirs)
		case err == nil && isText && got.value != text:
			t.Fatalf("%q reads %q, encoding/json %q", line, got.value, text)
		case err != nil && theirs == nil && isText && utf8.Valid(line) && !strings.Contains(err.Error(), "surrogate") && !bytes.ContainsAny(value, ","):
			t.Fatalf("%q refused: %v", line, err)
		}
	})
}

// FuzzParseLine proves that no line makes the parser panic.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"key":"k","type":"zset","value":[["a",1]],"ttl_ms":5,"db":1}`))
	f.Add([]byte(`{"keyB64":"AA==","type":"hash","value":[["f",{"b64":"AA=="}]]}`))
	f.Add([]byte(`{"\ud800`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if rec, err := parseLine(line, 0, 1); err == nil && !kinds[rec.kind] {
			t.Fatalf("%q: accepted type %q", line, rec.kind)
		}
	})
}

func TestScoresReadBack(t *testing.T) {
	for _, score := range []float64{0, 1, -1, 1.5, 1e16, 1e17, 1e21, -1e300, 5e-324, math.MaxFloat64, 0.1, 1 << 53, math.Inf(1), math.Inf(-1)} {
		line := append([]byte(`{"key":"k","type":"zset","value":[["m",`), appendScore(nil, score)...)
		rec, err := parseLine(append(line, "]]}"...), 0, 0)
		if err != nil || rec.elements[0].score != score {
			t.Errorf("%v: %s gave %+v, %v", score, line, rec, err)
		}
	}
}
