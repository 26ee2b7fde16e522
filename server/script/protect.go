package script

import lua "github.com/yuin/gopher-lua"

// How an error ends. The interpreter's own pcall at the place of the call is no use: at an error it closes every open
// upvalue of the thread, also those of the functions that called it, whose closures would not see later changes of their
// locals, and it describes the whole stack. So whatever is protected, a run or a pcall of the script, has a thread that
// is empty. Its lowest frame is one of Go, lowest, which sees the error while the other frames are still there, and
// hands it on to the interpreter's pcall below, which takes frames and registers off. Then the thread is as before, and
// serves again: the next call that nests deep finds its registers grown.

// caught is what a protected call has raised, and the place of the innermost call that was in Lua.
type caught struct {
	value  any // of panic; nil for none
	source string
	line   int
}

// protect calls a function on a thread that is empty. On it are lowest, the function and its n arguments; in their place
// it leaves the results, or nothing after an error.
func (m *machine) protect(thread *lua.LState, n int) caught {
	running := thread.G.CurrentThread
	err := thread.PCall(1+n, lua.MultRet, nil)
	thread.G.CurrentThread = running // a coroutine that yields where it may not leaves the thread that has resumed it
	if err == nil {
		return caught{}
	}
	c := m.caught
	m.caught = caught{} // which an idle machine would keep
	if c.value == nil { // callLowest has not been reached
		c.value = err
	}
	return c
}

// callLowest is the function of the lowest frame: it calls its first argument with the others.
func (m *machine) callLowest(L *lua.LState) int {
	defer func() {
		if p := recover(); p != nil {
			m.caught = caught{value: p}
			m.caught.source, m.caught.line = m.position()
			m.panicked = m.panicked || isWild(p)
			L.Panic = unwind
			L.Error(lua.LNil, 0) // which closes the open upvalues
		}
	}()
	L.Call(L.GetTop()-1, lua.MultRet)
	return L.GetTop()
}

// firstFrames are those that the interpreter keeps in a thread that is empty, with what they were frames of.
const firstFrames = lua.FramesPerSegment

// forget makes a machine that may have much in its first frames, or in those of its spare thread, forget it.
func (m *machine) forget() {
	m.spare = nil
	for range firstFrames {
		m.L.Push(m.lowest) // each calls the next
	}
	m.L.Push(m.nothing)
	m.protect(m.L, firstFrames-1)
}

// unwind raises what has been dealt with. It says that it has a trace of the calls, so that none is made.
func unwind(*lua.LState) {
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LNil, StackTrace: "-"})
}

// isWild reports whether a panic may have come from anywhere. An error of Lua comes from where all is in order, and so does
// that of too many nested calls, for which the interpreter panics with a text.
func isWild(p any) bool {
	_, isError := p.(*lua.ApiError)
	return !isError && p != "lua callstack overflow"
}

// callSteps is what a pcall costs, in instructions, whether or not it has to make a thread: whether a script may run in an
// event loop does not depend on what the machine has run before.
const callSteps = 64

// spareThread returns an empty thread for pcall. A machine keeps one.
func (m *machine) spareThread(L *lua.LState) *lua.LState {
	m.spend(L, callSteps)
	if thread := m.spare; thread != nil {
		m.spare = nil
		return thread
	}
	if !m.claim(coroutineSize) {
		fail(L, "%s", m.stopped.Error())
	}
	thread, _ := L.NewThread()
	thread.SetContext(m)
	thread.Panic = raise
	return thread
}
