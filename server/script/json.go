package script

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// The library "cjson" is lua-cjson 2.1.0 with its settings. They hold for one run.

// jsonOptions are the settings of the library.
type jsonOptions struct {
	sparseConvert, keepBuffer, decodeInvalid, arrayMT bool
	sparseRatio, sparseSafe, encodeDepth, decodeDepth int
	precision                                         int
	encodeInvalid                                     string // off, on, null
}

var defaultJSON = jsonOptions{
	keepBuffer: true, decodeInvalid: true, sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, precision: 14, encodeInvalid: "off",
}

// nullMark is the value of cjson.null.
type nullMark struct{}

// openJSON adds the library.
func (m *machine) openJSON() {
	m.null = &lua.LUserData{Value: nullMark{}, Metatable: lua.LNil}
	empty := m.L.CreateTable(0, 0)
	m.arrayMT = m.readOnly(empty, empty) // what a run left in it would act in those of others
	m.globals.RawSetString("cjson", m.newJSON())
}

// newJSON is cjson.new: all of them share the settings of the run.
func (m *machine) newJSON() *lua.LTable {
	t := m.table(functions{
		"encode": jsonEncode, "decode": jsonDecode,
		"encode_sparse_array": jsonSparse, "encode_max_depth": jsonSetting(1, math.MaxInt32, func(o *jsonOptions) *int { return &o.encodeDepth }),
		"decode_max_depth":        jsonSetting(1, math.MaxInt32, func(o *jsonOptions) *int { return &o.decodeDepth }),
		"encode_number_precision": jsonSetting(1, 14, func(o *jsonOptions) *int { return &o.precision }),
		"encode_keep_buffer":      jsonSwitch(func(o *jsonOptions) *bool { return &o.keepBuffer }),
		"decode_invalid_numbers":  jsonSwitch(func(o *jsonOptions) *bool { return &o.decodeInvalid }),
		"encode_invalid_numbers":  jsonEncodeInvalid, "decode_array_with_array_mt": jsonSwitch(func(o *jsonOptions) *bool { return &o.arrayMT }),
		"new": func(L *lua.LState) int { L.Push(of(L).newJSON()); return 1 },
	})
	t.RawSetString("null", m.null)
	t.RawSetString("array_mt", m.arrayMT)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}

// atMost refuses more than n arguments.
func atMost(L *lua.LState, n int) {
	if L.GetTop() > n {
		argError(L, n+1, "found too many arguments")
	}
}

// intSetting sets an integer to argument i, if there is one, and pushes it.
func intSetting(L *lua.LState, i, least, most int, setting *int) {
	if L.Get(i) != lua.LNil {
		n := intArg(L, i)
		if n < least || n > most {
			argError(L, i, fmt.Sprintf("expected integer between %d and %d", least, most))
		}
		*setting = n
	}
	L.Push(lua.LNumber(*setting))
}

// choice is argument i as one of some words, or a bool.
func choice(L *lua.LState, i int, current string, words ...string) string {
	switch v := L.Get(i).(type) {
	case *lua.LNilType:
		return current
	case lua.LBool:
		if v {
			return "on"
		}
		return "off"
	}
	word := textArg(L, i)
	if !slices.Contains(words, word) {
		argError(L, i, "invalid option '"+word+"'")
	}
	return word
}

func boolSetting(L *lua.LState, i int, setting *bool) {
	current := "off"
	if *setting {
		current = "on"
	}
	*setting = choice(L, i, current, "off", "on") == "on"
	L.Push(lua.LBool(*setting))
}

func jsonSetting(least, most int, setting func(*jsonOptions) *int) lua.LGFunction {
	return func(L *lua.LState) int {
		atMost(L, 1)
		intSetting(L, 1, least, most, setting(&of(L).json))
		return 1
	}
}

func jsonSwitch(setting func(*jsonOptions) *bool) lua.LGFunction {
	return func(L *lua.LState) int {
		atMost(L, 1)
		boolSetting(L, 1, setting(&of(L).json))
		return 1
	}
}

func jsonSparse(L *lua.LState) int {
	atMost(L, 3)
	o := &of(L).json
	L.SetTop(3)
	boolSetting(L, 1, &o.sparseConvert)
	intSetting(L, 2, 0, math.MaxInt32, &o.sparseRatio)
	intSetting(L, 3, 0, math.MaxInt32, &o.sparseSafe)
	return 3
}

func jsonEncodeInvalid(L *lua.LState) int {
	atMost(L, 1)
	o := &of(L).json
	o.encodeInvalid = choice(L, 1, o.encodeInvalid, "off", "on", "null")
	if o.encodeInvalid == "null" {
		return push(L, lua.LString("null"))
	}
	return push(L, lua.LBool(o.encodeInvalid == "on"))
}

type jsonEncoder struct {
	L *lua.LState
	m *machine
	b []byte
}

func jsonEncode(L *lua.LState) int {
	if L.GetTop() != 1 {
		argError(L, 1, "expected 1 argument")
	}
	e := jsonEncoder{L: L, m: of(L)}
	e.value(L.Get(1), 0)
	return push(L, built(e.b))
}

func (e *jsonEncoder) refuse(v lua.LValue, reason string) {
	fail(e.L, "Cannot serialise %s: %s", v.Type(), reason)
}

func (e *jsonEncoder) value(v lua.LValue, depth int) {
	e.m.spend(e.L, 1)
	e.grow(32)
	switch v := v.(type) {
	case lua.LString:
		e.text(string(v))
	case lua.LNumber:
		e.number(v)
	case lua.LBool:
		e.b = strconv.AppendBool(e.b, bool(v))
	case *lua.LNilType:
		e.b = append(e.b, "null"...)
	case *lua.LTable:
		if depth++; depth > min(e.m.json.encodeDepth, maxNesting) {
			fail(e.L, "Cannot serialise, excessive nesting (%d)", depth)
		}
		e.table(e.m.unwrap(v), depth)
	default:
		if v != e.m.null {
			e.refuse(v, "type not supported")
		}
		e.b = append(e.b, "null"...)
	}
}

func (e *jsonEncoder) number(v lua.LNumber) {
	f, o := float64(v), &e.m.json
	if math.IsNaN(f) || math.IsInf(f, 0) {
		switch o.encodeInvalid {
		case "off":
			e.refuse(v, "must not be NaN or Inf")
		case "null":
			e.b = append(e.b, "null"...)
			return
		}
		if math.IsNaN(f) {
			e.b = append(e.b, "nan"...)
			return
		}
	}
	e.b = append(e.b, formatG(f, o.precision)...)
}

// grow makes room for n more bytes. A value that is no string, with what stands around it, takes less than 32.
func (e *jsonEncoder) grow(n int) { e.b = e.m.grow(e.L, e.b, n) }

func (e *jsonEncoder) text(s string) {
	e.m.spend(e.L, len(s)>>4)
	e.grow(len(s) + 32)
	e.b = append(e.b, '"')
	from := 0
	for i := range len(s) {
		escape := ""
		switch c := s[i]; {
		case c == '"':
			escape = `\"`
		case c == '\\':
			escape = `\\`
		case c == '/':
			escape = `\/`
		case c >= ' ' && c != 127:
			continue
		case c == '\b':
			escape = `\b`
		case c == '\t':
			escape = `\t`
		case c == '\n':
			escape = `\n`
		case c == '\f':
			escape = `\f`
		case c == '\r':
			escape = `\r`
		default:
			escape = fmt.Sprintf(`\u%04x`, c)
		}
		e.b = e.m.append(e.L, appendText(e.b, s[from:i]), escape)
		e.grow(len(s) - i + 32)
		from = i + 1
	}
	e.b = append(appendText(e.b, s[from:]), '"')
}

// listLen is the length of the array that a table is; -1 for an object.
func (e *jsonEncoder) listLen(t *lua.LTable) int {
	if t.Metatable == e.m.arrayMT {
		return tableLen(t)
	}
	most, items, o := 0.0, 0, &e.m.json
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		e.m.spend(e.L, 1)
		f, ok := k.(lua.LNumber)
		if !ok || f < 1 || float64(f) != math.Floor(float64(f)) {
			return -1
		}
		most = max(most, float64(f))
		items++
	}
	if items == 0 {
		return -1
	}
	if o.sparseRatio > 0 && most > float64(items)*float64(o.sparseRatio) && most > float64(o.sparseSafe) || most > math.MaxInt32 {
		if !o.sparseConvert {
			e.refuse(t, "excessively sparse array")
		}
		return -1
	}
	return int(most)
}

func (e *jsonEncoder) table(t *lua.LTable, depth int) {
	if n := e.listLen(t); n >= 0 {
		e.b = append(e.b, '[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.b = append(e.b, ',')
			}
			if i&1023 == 0 {
				e.m.allocate(e.L, 1024*5) // of nulls, at least
			}
			e.value(t.RawGet(lua.LNumber(i)), depth)
		}
		e.b = append(e.b, ']')
		return
	}
	e.b = append(e.b, '{')
	first := true
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		switch k := k.(type) {
		case lua.LString:
			e.text(string(k))
		case lua.LNumber:
			e.b = append(e.b, '"')
			e.number(k)
			e.b = append(e.b, '"')
		default:
			e.refuse(k, "table key must be a number or string")
		}
		e.b = append(e.b, ':')
		e.value(v, depth)
	}
	e.b = append(e.b, '}')
}
