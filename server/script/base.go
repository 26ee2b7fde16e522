package script

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// The basic functions. What the interpreter's own do as C's is taken from it.

var ownBase = functions{
	"error": baseError, "getmetatable": baseGetMetatable, "setmetatable": baseSetMetatable, "ipairs": baseIpairs, "pairs": basePairs,
	"next": baseNext, "rawget": baseRawGet, "rawset": baseRawSet, "tonumber": baseToNumber, "tostring": baseToString, "unpack": baseUnpack,
	"load": baseLoad, "loadstring": baseLoadString, "collectgarbage": baseCollectGarbage, "gcinfo": baseGCInfo,
	"pcall": basePCall, "xpcall": baseXPCall, "assert": baseAssert, "rawequal": baseRawEqual, "select": baseSelect, "type": baseType,
}

// openBase adds the basic functions to the globals.
func (m *machine) openBase() {
	L := m.L
	for name, fn := range ownBase {
		m.globals.RawSetString(name, L.NewFunction(fn))
	}
	m.globals.RawSetString("_VERSION", lua.LString("Lua 5.1"))
}

// openOS adds os.clock, which is all of its library that scripts may use.
func (m *machine) openOS() {
	start := time.Now()
	m.library("os", functions{"clock": func(L *lua.LState) int { return push(L, lua.LNumber(time.Since(start).Seconds())) }})
}

func baseAssert(L *lua.LState) int {
	if !lua.LVAsBool(anyArg(L, 1)) {
		fail(L, "%s", cString(optText(L, 2, "assertion failed!")))
	}
	return L.GetTop()
}

func baseRawEqual(L *lua.LState) int {
	return push(L, lua.LBool(L.RawEqual(anyArg(L, 1), anyArg(L, 2))))
}

func baseType(L *lua.LState) int {
	return push(L, lua.LString(anyArg(L, 1).Type().String()))
}

func baseSelect(L *lua.LState) int {
	n := L.GetTop()
	if L.Get(1) == lua.LString("#") {
		return push(L, lua.LNumber(n-1))
	}
	i := intArg(L, 1)
	switch {
	case i < 0:
		i += n
	case i > n:
		i = n
	}
	if i < 1 {
		argError(L, 1, "index out of range")
	}
	return n - i
}

func baseError(L *lua.LState) int {
	level := optInt(L, 2, 1)
	if text, ok := toText(L.Get(1)); ok && level > 0 {
		L.Error(of(L).join(L, where(L, level), text), 0)
	}
	L.Error(L.Get(1), 0)
	return 0
}

// protectedCall calls a function with the values from argument `first` on, and returns its results, or the value that
// it has raised.
func protectedCall(L *lua.LState, fn lua.LValue, first int) (results []lua.LValue, raised lua.LValue, ok bool) {
	m := of(L)
	defer m.leaveTo(m.nested, m.depth)
	m.enterThread(L)
	thread := m.spareThread(L)
	push(thread, m.lowest, fn)
	for i := first; i <= L.GetTop(); i++ {
		thread.Push(L.Get(i))
	}
	switch p := m.protect(thread, L.GetTop()-first+1).value.(type) {
	case nil:
		for i := 1; i <= thread.GetTop(); i++ {
			results = append(results, thread.Get(i))
		}
		ok = true
	case *lua.ApiError:
		raised = p.Object
	default:
		raised = lua.LString(fmt.Sprint(p))
	}
	if text, is := raised.(lua.LString); is {
		raised = lua.LString(plain(strings.TrimPrefix(string(text), " ")))
	}
	thread.SetTop(0)
	if !m.panicked && thread.Parent == nil && !thread.Dead {
		m.spare = thread
	}
	return results, raised, ok
}

// basePCall returns the text of an error of redis.call, not its table, as Redis's pcall does.
func basePCall(L *lua.LState) int {
	fn := anyArg(L, 1)
	results, raised, ok := protectedCall(L, fn, 2)
	if !ok {
		if t, is := raised.(*lua.LTable); is {
			if text, is := t.RawGetString("err").(lua.LString); is {
				raised = text
			}
		}
		return push(L, lua.LFalse, raised)
	}
	return push(L, lua.LTrue) + push(L, results...)
}

// baseXPCall calls the handler when the stack has been unwound, which it could see only with the library "debug".
func baseXPCall(L *lua.LState) int {
	handler := L.Get(2)
	if L.GetTop() < 2 {
		argError(L, 2, "value expected")
	}
	results, raised, ok := protectedCall(L, L.Get(1), L.GetTop()+1)
	if !ok {
		return push(L, lua.LFalse) + invoke(L, handler, raised)
	}
	return push(L, lua.LTrue) + push(L, results...)
}

func baseGetMetatable(L *lua.LState) int {
	m, v := of(L), anyArg(L, 1)
	if t, ok := v.(*lua.LTable); ok && m.real[t] != nil {
		v = m.real[t]
	}
	mt := L.GetMetatable(v)
	if t, ok := mt.(*lua.LTable); ok && m.proxies[t] != nil {
		mt = m.proxies[t]
	}
	return push(L, mt)
}

func baseSetMetatable(L *lua.LState) int {
	t, mt := tableArg(L, 1), L.Get(2)
	if _, ok := mt.(*lua.LTable); !ok && (mt != lua.LNil || L.GetTop() < 2) {
		argError(L, 2, "nil or table expected")
	}
	if metamethod(L, t, "__metatable") != lua.LNil {
		fail(L, "cannot change a protected metatable")
	}
	of(L).writable(L, t).Metatable = mt
	return push(L, t)
}

func baseIpairs(L *lua.LState) int {
	t := tableArg(L, 1)
	return push(L, L.NewFunction(ipairsStep), t, lua.LNumber(0))
}

func ipairsStep(L *lua.LState) int {
	t, i := tableArg(L, 1), lua.LNumber(numberArg(L, 2))+1
	v := of(L).unwrap(t).RawGet(i)
	if v == lua.LNil {
		return push(L, lua.LNil)
	}
	return push(L, i, v)
}

func basePairs(L *lua.LState) int {
	t := tableArg(L, 1)
	return push(L, L.NewFunction(baseNext), t, lua.LNil)
}

func baseNext(L *lua.LState) int {
	k, v := of(L).unwrap(tableArg(L, 1)).Next(L.Get(2))
	if k == lua.LNil {
		return push(L, lua.LNil)
	}
	return push(L, k, v)
}

func baseRawGet(L *lua.LState) int {
	return push(L, of(L).unwrap(tableArg(L, 1)).RawGet(anyArg(L, 2)))
}

func baseRawSet(L *lua.LState) int {
	t := tableArg(L, 1)
	k, v := anyArg(L, 2), anyArg(L, 3)
	if k == lua.LNil {
		raiseBare(L, "table index is nil")
	}
	if f, ok := k.(lua.LNumber); ok && f != f {
		raiseBare(L, "table index is NaN")
	}
	of(L).writable(L, t).RawSet(k, v)
	return push(L, t)
}

func baseToNumber(L *lua.LState) int {
	base := optInt(L, 2, 10)
	v := anyArg(L, 1)
	if base == 10 {
		f, ok := toNumber(v)
		return pushNumber(L, f, ok)
	}
	text := textArg(L, 1)
	if base < 2 || base > 36 {
		argError(L, 2, "base out of range")
	}
	n, ok := parseBase(text, base)
	return pushNumber(L, n, ok)
}

// parseBase is C's strtoul on the whole text.
func parseBase(text string, base int) (float64, bool) {
	text, _, _ = strings.Cut(text, "\x00") // where C stops
	text = strings.Trim(text, blanks)
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	if !negative {
		text = strings.TrimPrefix(text, "+")
	}
	if base == 16 && len(text) > 2 && (text[:2] == "0x" || text[:2] == "0X") {
		text = text[2:]
	}
	var n uint64
	overflow := false
	for i := range len(text) {
		digit := int(text[i] - '0')
		if c := text[i] | 0x20; 'a' <= c && c <= 'z' {
			digit = int(c-'a') + 10
		} else if !isDigit(text[i]) {
			return 0, false
		}
		if digit >= base {
			return 0, false
		}
		overflow = overflow || n > (1<<64-1-uint64(digit))/uint64(base)
		n = n*uint64(base) + uint64(digit)
	}
	switch {
	case overflow:
		n = 1<<64 - 1
	case negative:
		n = -n
	}
	return float64(n), text != ""
}

func baseToString(L *lua.LState) int {
	v := anyArg(L, 1)
	if handler := metamethod(L, v, "__tostring"); handler != lua.LNil {
		return invoke(L, handler, v)
	}
	return push(L, lua.LString(display(v)))
}

// display is a value as tostring writes it.
func display(v lua.LValue) string {
	if f, ok := v.(lua.LNumber); ok {
		return numberText(float64(f))
	}
	if u, ok := v.(*lua.LUserData); ok && u.Value == (nullMark{}) {
		return "userdata: (nil)"
	}
	return v.String()
}

func baseUnpack(L *lua.LState) int {
	t := of(L).unwrap(tableArg(L, 1))
	from, to := optInt(L, 2, 1), optEnd(L, 3, t)
	if from > to {
		return 0
	}
	n := to - from + 1
	if n > maxUnpack-L.GetTop() {
		fail(L, "too many results to unpack")
	}
	of(L).spend(L, n)
	for i := from; i <= to; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
	}
	return n
}

// loadText compiles a text for load and loadstring.
func loadText(L *lua.LState, source, name string) int {
	chunk := `[string "` + firstLine(name) + `"]`
	if strings.HasPrefix(name, "=") || strings.HasPrefix(name, "@") {
		chunk = name[1:]
	}
	m := of(L)
	m.allocate(L, 64*len(source)) // the tree is larger than its text
	proto, err := compile(source, chunk, nil)
	if err != nil {
		return push(L, lua.LNil, lua.LString(err.Error()))
	}
	return push(L, L.NewFunctionFromProto(proto))
}

// firstLine is what an error shows of a chunk that is named by its text.
func firstLine(text string) string {
	const most = 45
	line, _, more := strings.Cut(text, "\n")
	if len(line) > most {
		line, more = line[:most], true
	}
	if more {
		line += "..."
	}
	return line
}

func baseLoadString(L *lua.LState) int {
	source := textArg(L, 1)
	return loadText(L, source, optText(L, 2, source))
}

// baseLoad joins the pieces that a function returns until it returns nothing.
func baseLoad(L *lua.LState) int {
	fn, name := functionArg(L, 1), optText(L, 2, "=(load)")
	var source strings.Builder
	for {
		piece := result(L, fn)
		if piece == lua.LNil || piece == lua.LString("") {
			return loadText(L, source.String(), name)
		}
		text, isText := toText(piece)
		if !isText {
			return push(L, lua.LNil, lua.LString("reader function must return a string"))
		}
		if source.Len()+len(text) > MaxSource {
			return push(L, lua.LNil, lua.LString(ErrSourceTooLarge.Error()))
		}
		source.WriteString(text)
	}
}

// baseCollectGarbage answers and does nothing: the collector belongs to the process.
func baseCollectGarbage(L *lua.LState) int {
	switch what := L.Get(1); what {
	case lua.LString("count"):
		return baseGCInfo(L)
	case lua.LString("step"):
		return push(L, lua.LTrue)
	case lua.LNil, lua.LString("collect"), lua.LString("stop"), lua.LString("restart"), lua.LString("setpause"), lua.LString("setstepmul"):
		return push(L, lua.LNumber(0))
	}
	argError(L, 1, fmt.Sprintf("invalid option '%s'", textArg(L, 1)))
	return 0
}

func baseGCInfo(L *lua.LState) int {
	runtime.Gosched()
	objects, _ := heap()
	return push(L, lua.LNumber(objects>>10))
}
