package script

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// Arguments of library functions, with the errors of C's luaL_check functions.

// argError refuses argument i of a Go function, as luaL_argerror does.
func argError(L *lua.LState, i int, message string) {
	name := "?"
	if frame, ok := L.GetStack(0); ok {
		if _, err := L.GetInfo("n", frame, lua.LNil); err == nil && frame.Name != "" && frame.Name[0] != '(' {
			name = frame.Name
		}
	}
	fail(L, "bad argument #%d to '%s' (%s)", i, name, message)
}

// fail raises an error of a Go function, as luaL_error does.
func fail(L *lua.LState, format string, args ...any) {
	raiseBare(L, where(L, 1)+fmt.Sprintf(format, args...))
}

// where is the position of the call at a level in front of an error: 0 is the function that runs, 1 its caller. It is
// empty if that is no function of the script, such as pcall.
func where(L *lua.LState, level int) string {
	frame, ok := L.GetStack(level)
	if !ok {
		return ""
	}
	if _, err := L.GetInfo("Sl", frame, lua.LNil); err != nil || frame.CurrentLine <= 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", frame.Source, frame.CurrentLine)
}

// push returns values from a Go function.
func push(L *lua.LState, values ...lua.LValue) int {
	for _, v := range values {
		L.Push(v)
	}
	return len(values)
}

// pushNumber returns a number from a Go function, or nil if there is none.
func pushNumber(L *lua.LState, f float64, ok bool) int {
	if !ok {
		return push(L, lua.LNil)
	}
	return push(L, lua.LNumber(f))
}

// invoke calls a function of the script, which leaves one result on the stack.
func invoke(L *lua.LState, fn lua.LValue, args ...lua.LValue) int {
	L.Push(fn)
	push(L, args...)
	L.Call(len(args), 1)
	return 1
}

// result is invoke that takes the result off the stack.
func result(L *lua.LState, fn lua.LValue, args ...lua.LValue) lua.LValue {
	invoke(L, fn, args...)
	defer L.Pop(1)
	return L.Get(-1)
}

func typeError(L *lua.LState, i int, want string) {
	got := "no value"
	if i <= L.GetTop() {
		got = L.Get(i).Type().String()
	}
	argError(L, i, want+" expected, got "+got)
}

// textArg is argument i as a string, which a number is too.
func textArg(L *lua.LState, i int) string {
	text, ok := toText(L.Get(i))
	if !ok {
		typeError(L, i, "string")
	}
	return text
}

func numberArg(L *lua.LState, i int) float64 {
	f, ok := toNumber(L.Get(i))
	if !ok {
		typeError(L, i, "number")
	}
	return f
}

// intArg is argument i as a C int, which has the lower bits of a larger number.
func intArg(L *lua.LState, i int) int { return int(int32(toInteger(numberArg(L, i)))) }

// indexArg is argument i as a position in a string, for which C has 64 bits.
func indexArg(L *lua.LState, i, otherwise int) int { return int(optInteger(L, i, int64(otherwise))) }

// optional is argument i as read reads it, if there is one.
func optional[T any](L *lua.LState, i int, otherwise T, read func(*lua.LState, int) T) T {
	if L.Get(i) == lua.LNil {
		return otherwise
	}
	return read(L, i)
}

// integerArg is argument i as C converts it to an integer of 64 bits.
func integerArg(L *lua.LState, i int) int64 { return toInteger(numberArg(L, i)) }

func optInteger(L *lua.LState, i int, otherwise int64) int64 {
	return optional(L, i, otherwise, integerArg)
}
func optText(L *lua.LState, i int, otherwise string) string {
	return optional(L, i, otherwise, textArg)
}
func optInt(L *lua.LState, i, otherwise int) int { return optional(L, i, otherwise, intArg) }

// typedArg is argument i, which has to be of a type, with the name of that type in Lua.
func typedArg[T lua.LValue](L *lua.LState, i int, name string) T {
	v, ok := L.Get(i).(T)
	if !ok {
		typeError(L, i, name)
	}
	return v
}

func functionArg(L *lua.LState, i int) *lua.LFunction {
	return typedArg[*lua.LFunction](L, i, "function")
}
func tableArg(L *lua.LState, i int) *lua.LTable { return typedArg[*lua.LTable](L, i, "table") }

func anyArg(L *lua.LState, i int) lua.LValue {
	if i > L.GetTop() {
		argError(L, i, "value expected")
	}
	return L.Get(i)
}
