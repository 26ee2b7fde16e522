package script

import lua "github.com/yuin/gopher-lua"

// openCoroutine adds the interpreter's coroutines. Each gets the machine as its context, so that its instructions
// count, and they nest only so deep.
func (m *machine) openCoroutine() {
	L := m.L
	lua.OpenCoroutine(L)
	theirs := L.Get(-1).(*lua.LTable)
	L.Pop(1)
	get := func(name string) lua.LGFunction { return theirs.RawGetString(name).(*lua.LFunction).GFunction }
	create, resume, status := get("create"), get("resume"), get("status")
	newThread := func(L *lua.LState) *lua.LState {
		if _, ok := L.Get(1).(*lua.LFunction); !ok {
			argError(L, 1, "Lua function expected")
		}
		m.allocate(L, coroutineSize)
		create(L)
		thread := L.Get(-1).(*lua.LState)
		thread.SetContext(m)
		return thread
	}
	m.library("coroutine", functions{
		"yield": get("yield"), "running": running,
		"status": func(L *lua.LState) int { threadArg(L); return status(L) },
		"create": func(L *lua.LState) int { newThread(L); return 1 },
		"resume": func(L *lua.LState) int { threadArg(L); return m.resume(L, resume) },
		"wrap": func(L *lua.LState) int {
			thread := newThread(L)
			L.Push(L.NewFunction(func(L *lua.LState) int { return m.wrapped(L, thread, resume) }))
			return 1
		},
	})
}

func threadArg(L *lua.LState) {
	if _, ok := L.Get(1).(*lua.LState); !ok {
		argError(L, 1, "coroutine expected")
	}
}

// wrapped resumes a coroutine of coroutine.wrap: its errors are those of the call.
func (m *machine) wrapped(L, thread *lua.LState, resume lua.LGFunction) int {
	L.Insert(thread, 1)
	n := m.resume(L, resume)
	first := L.GetTop() - n + 1
	if L.Get(first) == lua.LTrue {
		L.Remove(first)
		return n - 1
	}
	raised := L.Get(-1)
	if text, ok := toText(raised); ok {
		raised = m.join(L, where(L, 1), text)
	}
	L.Error(raised, 0)
	return 0
}

// coroutineSize is about the memory of one in bytes.
const coroutineSize = 64 << 10

// resume counts a coroutine that is being resumed, the first argument: each takes of the stack of the goroutine. The
// interpreter recovers from whatever panic ends one, and gives its text alone, so that an error may have been a panic of
// Go. When a coroutine stops, the interpreter takes the thread that has resumed it for the running one, which within
// pcall is the thread of that: so the one from before is put back.
func (m *machine) resume(L *lua.LState, resume lua.LGFunction) int {
	defer m.leaveTo(m.nested, m.depth)
	m.enterThread(L)
	thread, running := L.Get(1).(*lua.LState), L.G.CurrentThread
	refused := thread.Dead || thread == running
	defer func() { L.G.CurrentThread = running }()
	n := resume(L)
	if text, is := L.Get(-1).(lua.LString); is && refused {
		L.SetTop(L.GetTop() - 1)
		L.Push(lua.LString(plain(string(text))))
	}
	m.panicked = m.panicked || !refused && L.Get(L.GetTop()-n+1) == lua.LFalse
	return n
}

// running is coroutine.running: nil outside of coroutines. The interpreter's would give the main thread within pcall,
// whose stack a library could keep, to resume what another script has left there.
func running(L *lua.LState) int {
	if co := L.G.CurrentThread; co != L.G.MainThread {
		L.Push(co)
	} else {
		L.Push(lua.LNil)
	}
	return 1
}
