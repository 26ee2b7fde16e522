package script

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/stavedb/stave/internal/resp"
	lua "github.com/yuin/gopher-lua"
)

func init() {
	lua.MaxArrayIndex = 1 << 16 // see the package comment
}

// Bounds of a machine. The numbers of C's Lua are in brackets where it has one.
const (
	maxCalls     = 8_000     // nested calls [20,000]
	maxRegisters = 512 << 10 // values of all nested calls
	maxCCalls    = 195       // calls of Go functions that call back into the script [200]
	maxStack     = 100_000   // nested calls of all coroutines and pcalls within each other: they share a stack of Go, whose end is that of the process
	maxNesting   = 7_900     // lists within lists of JSON, whatever the script sets [about 8,000]
	maxUnpack    = 8_000     // arguments and results of unpack and its like [the same]
	maxString    = 512 << 20 // bytes of a string
	lookAfter    = 256       // instructions between two looks at the clock,
	stepBytes    = 64 << 10  // with strings of up to so many bytes: see stride
	sampleEvery  = 2 * time.Millisecond
	longAfter    = 10 * time.Millisecond // from then on a run counts as long, and lets others have the processor
)

// The reasons why a run is stopped, besides those of Host.
const (
	ErrMemory Error = "not enough memory"
	ErrKilled Error = "Script killed by user with SCRIPT KILL..."
)

// ErrSteps ends a run that takes more instructions than Run.Steps allows.
var ErrSteps = errors.New("script: the run takes more steps than it may")

// machine is a Lua state with its libraries. It is used by one run at a time.
//
// It is also the context of that state: the interpreter asks a context before each instruction whether it is done,
// which is how instructions are counted and how a run is stopped. Nothing else can be done with it as a context.
type machine struct {
	L       *lua.LState
	engine  *Engine
	globals *lua.LTable
	real    map[*lua.LTable]*lua.LTable // of a read-only table: the one that has its elements
	proxies map[*lua.LTable]*lua.LTable // the other way round
	null    *lua.LUserData              // cjson.null
	json    jsonOptions
	arrayMT *lua.LTable

	lowest  *lua.LFunction // callLowest
	nothing *lua.LFunction // which it calls in forget
	spare   *lua.LState    // an empty thread for pcall, or nil
	caught  caught         // what callLowest has caught last

	run    *Run
	out    resp.Writer // replies of commands
	room   account
	depth  int // nested calls of the threads that wait for one that they have resumed, roughly
	resp   int // protocol version of commands within the script
	nested int // Go functions that call back into the script, within each other

	loading      *loading           // the library that is being loaded; nil for none
	limit        time.Duration      // of the load; 0 for none
	libraries    map[string]*loaded // by name
	libraryEnv   *lua.LTable        // the globals of libraries
	libraryIndex *lua.LTable        // its metatable: __index is loadGlobals during a load, and globals otherwise
	loadGlobals  *lua.LTable

	left         int // instructions until the next look
	portion      int // what left was after the last look
	steps        int // instructions of the run until then
	longest      int // bytes of the longest string that the run has been given or has made
	pending      int // bytes that were allocated since the last look
	stopped      error
	panicked     bool // the interpreter has, in the run, or may have: a coroutine hides what it has ended with
	started      time.Time
	sampled      time.Time
	heapLimit    uint64    // of the process: above it the run has too much
	collectAt    uint64    // above it the heap is collected, to see what is garbage
	collectAfter time.Time // but not before
	yielded      time.Time
	long         bool
}

// of returns the machine of a state.
func of(L *lua.LState) *machine { return L.Context().(*machine) }

// ended is the channel of a context that is done.
var ended = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done is called before each instruction. A nil channel is one that never ends.
func (m *machine) Done() <-chan struct{} {
	if m.left--; m.left > 0 {
		return nil
	}
	return m.look()
}

// Err is why the run is stopped.
func (m *machine) Err() error { return m.stopped }

// Deadline and Value are for context.Context.
func (m *machine) Deadline() (time.Time, bool) { return time.Time{}, false }
func (m *machine) Value(any) any               { return nil }

var _ context.Context = (*machine)(nil)

// look decides whether the run may go on.
func (m *machine) look() <-chan struct{} {
	if m.stopped != nil {
		return ended
	}
	steps := m.portion - m.left
	m.steps += steps
	m.left = m.stride()
	m.portion = m.left
	if m.run == nil {
		return nil
	}
	if m.run.Steps > 0 && m.steps > m.run.Steps {
		m.stop(ErrSteps)
		return ended
	}
	if err := m.run.control.stopped(); err != nil {
		m.stop(err)
		return ended
	}
	if !m.claimSteps(steps) {
		return ended
	}
	now := time.Now()
	if now.Sub(m.sampled) >= sampleEvery {
		m.sampled = now
		m.sample()
	}
	if m.stopped == nil && m.lasted(now) >= longAfter {
		m.beLong(now)
	}
	if m.stopped != nil {
		return ended
	}
	return nil
}

// stride is how many instructions may pass until the next look. One instruction of the interpreter can compare two
// strings, hash one, or read it as a number, whatever its length: with strings of many MiB each may take longer than
// all that usually pass between two looks.
func (m *machine) stride() int {
	if m.longest <= stepBytes {
		return lookAfter
	}
	return max(1, int(lookAfter*stepBytes/int64(m.longest)))
}

// holds notes that the run has a string of n bytes.
func (m *machine) holds(n int) {
	if n > m.longest {
		m.longest = n
		if due := m.stride(); due < m.left {
			m.portion -= m.left - due
			m.left = due
		}
	}
}

// lasted is how long the run has not waited for others.
func (m *machine) lasted(now time.Time) time.Duration {
	return now.Sub(m.started) - m.run.Waited()
}

// beLong is what a run that lasts does at each look.
func (m *machine) beLong(now time.Time) {
	h := &m.run.Host
	if !m.long {
		m.long = true
		if h.Long != nil {
			h.Long(m.run)
		}
	}
	if h.Context != nil {
		if err := h.Context.Err(); err != nil {
			m.stop(err)
			return
		}
	}
	if m.limit > 0 && now.Sub(m.started) > m.limit {
		m.stop(errLoadTimeout)
		return
	}
	if now.Sub(m.yielded) >= time.Millisecond/4 {
		runtime.Gosched()
		m.yielded = time.Now()
	}
}

// stop ends the run at the next instruction, and at every one after it: what the script catches does not matter.
func (m *machine) stop(err error) {
	if m.stopped == nil {
		m.stopped = err
	}
	m.left = 0
}

// spend counts work of a library function as that many instructions, and ends the run if it is to be stopped.
func (m *machine) spend(L *lua.LState, n int) {
	if m.left -= n; m.left > 0 {
		return
	}
	if m.look() != nil {
		fail(L, "%s", m.stopped.Error())
	}
}

// sampleAfter is how many bytes are allocated without a sample.
const sampleAfter = 1 << 20

// allocate precedes the allocation of n bytes by a library function.
func (m *machine) allocate(L *lua.LState, n int) {
	if n > maxString {
		fail(L, "%s", ErrMemory.Error())
	}
	m.holds(n)
	m.spend(L, n>>8)
	if !m.claim(n) {
		fail(L, "%s", m.stopped.Error())
	}
	if m.pending += n; m.pending < sampleAfter {
		return
	}
	m.sample()
	if m.stopped != nil {
		fail(L, "%s", m.stopped.Error())
	}
}

// heap is the size of the objects on the heap of the process in bytes, those included that are garbage, and how much
// the last collection left.
func heap() (objects, live uint64) {
	s := [2]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

// wrote is what the store takes for what the run has written.
func (m *machine) wrote() uint64 {
	if m.run.Host.Wrote == nil {
		return 0
	}
	return uint64(m.run.Host.Wrote())
}

// sample compares the heap, without what the run has written, with its limit. At first what is on the heap may be
// garbage, so the limit is a loose one. When the heap has grown by as much as the run may take, it is collected, and what
// is left gives a strict limit. Later it is collected when half as much has come on top, but not so often that this is
// all that the process does.
func (m *machine) sample() {
	pending := uint64(m.pending)
	m.pending = 0
	objects, live := heap()
	if m.run == nil {
		return
	}
	most := m.run.memory()
	wrote := m.wrote()
	objects -= min(objects, wrote)
	switch {
	case m.heapLimit == 0:
		m.heapLimit, m.collectAt = objects+most, min(objects, live-min(live, wrote))+most
		if pending > most {
			m.stop(ErrMemory)
		}
		return
	case objects+pending <= m.collectAt || pending < most && time.Now().Before(m.collectAfter):
		return
	}
	began := time.Now()
	runtime.GC()
	objects, _ = heap()
	objects -= min(objects, wrote)
	now := time.Now()
	m.collectAfter = now.Add(5 * now.Sub(began))
	if objects+pending > m.heapLimit {
		m.stop(ErrMemory)
		return
	}
	m.heapLimit = min(m.heapLimit, objects+most)
	m.collectAt = objects + most/2
}

// begin prepares the machine for a run.
func (m *machine) begin(r *Run) {
	m.run, m.resp, m.nested, m.depth, m.loading, m.limit = r, 2, 0, 0, nil, 0
	m.longest, m.panicked = 0, false
	r.waited.Store(0)
	m.L.G.CurrentThread = m.L
	m.room.begin()
	m.portion, m.steps = lookAfter, 0
	m.left, m.pending, m.stopped, m.heapLimit, m.collectAfter, m.long = lookAfter, 0, nil, 0, time.Time{}, false
	m.started = time.Now()
	m.sampled, m.yielded = m.started, m.started
	m.json = defaultJSON
	m.out.Discard(m.out.Len()) // what a run has left that was stopped within a command
	m.out.SetLimit(0)
	m.out.Overdraw(false)
	m.out.SetVersion(2)
}

// newMachine makes a state with its libraries and closes the sandbox.
func newMachine(e *Engine) *machine {
	L := lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: maxCalls, MinimizeStackMemory: true,
		// Each step copies what there is.
		RegistrySize: 1024, RegistryGrowStep: 8192, RegistryMaxSize: maxRegisters,
	})
	m := &machine{
		L: L, engine: e, globals: L.NewTable(), left: lookAfter, json: defaultJSON,
		real: map[*lua.LTable]*lua.LTable{}, proxies: map[*lua.LTable]*lua.LTable{},
	}
	m.openAccount()
	L.Panic = raise
	L.SetContext(m)
	L.G.MainThread, L.G.CurrentThread = L, L
	m.lowest, m.nothing = L.NewFunction(m.callLowest), L.NewFunction(func(*lua.LState) int { return 0 })
	m.openBase()
	m.library("string", stringFunctions)
	m.library("table", tableFunctions)
	m.openMath()
	m.library("struct", structFunctions)
	m.library("bit", bitFunctions)
	m.openOS()
	m.openMsgpack()
	m.openJSON()
	m.openCoroutine()
	m.openRedis()
	m.close()
	return m
}

// raise is how an error travels: the value is on top of the stack.
func raise(L *lua.LState) { panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: L.Get(-1)}) }

// enter counts a Go function that calls back into the script; leave follows it.
func (m *machine) enter(L *lua.LState) {
	if m.nested >= maxCCalls {
		fail(L, "C stack overflow")
	}
	m.nested++
}

func (m *machine) leave() { m.nested-- }

// enterThread counts a call that goes on in another thread; leaveTo follows it. A thread has so many nested calls at
// most, but each of those may be one of a metamethod, which nests the interpreter itself.
func (m *machine) enterThread(L *lua.LState) {
	m.enter(L)
	calls := 16
	for ; calls < maxCalls; calls *= 2 {
		if _, deeper := L.GetStack(calls); !deeper {
			break
		}
	}
	if m.depth += calls; m.depth > maxStack {
		fail(L, "C stack overflow")
	}
}

// leaveTo ends all that was entered since nested and depth were read, also by calls that an error has left.
func (m *machine) leaveTo(nested, depth int) { m.nested, m.depth = nested, depth }

// functions are a library: names and what they call.
type functions map[string]lua.LGFunction

// table makes a table of functions.
func (m *machine) table(list functions) *lua.LTable {
	t := m.L.CreateTable(0, len(list))
	for name, fn := range list {
		t.RawSetString(name, m.L.NewFunction(fn))
	}
	return t
}

// library adds a table of functions to the globals. It becomes read-only with them.
func (m *machine) library(name string, list functions) *lua.LTable {
	t := m.table(list)
	m.globals.RawSetString(name, t)
	return t
}

// close makes the globals and their tables read-only, and the state use them.
func (m *machine) close() {
	L := m.L
	text := L.CreateTable(0, 10) // the metatable of strings
	for name, fn := range stringMetamethods {
		text.RawSetString(name, L.NewFunction(fn))
	}
	for k, v := m.globals.Next(lua.LNil); k != lua.LNil; k, v = m.globals.Next(k) {
		if t, ok := v.(*lua.LTable); ok {
			m.globals.RawSet(k, m.readOnly(t, t))
		}
	}
	text.RawSetString("__index", m.globals.RawGetString("string"))
	m.proxies[text] = m.readOnly(field(L, "__index", m.globals.RawGetString("string")), text)
	L.SetMetatable(lua.LString(""), text)

	missing := L.CreateTable(0, 1)
	missing.RawSetString("__index", L.NewFunction(missingGlobal))
	m.globals.Metatable = missing
	m.readOnly(missing, missing)
	env := m.readOnly(m.globals, m.globals)
	m.globals.RawSetString("_G", env)
	L.G.Global, L.Env = env, env
	m.openLibraries()
}

// readOnly returns the table through which scripts see t. It is always empty, so that reads go to index, and writes to
// a function that refuses them.
func (m *machine) readOnly(t *lua.LTable, index lua.LValue) *lua.LTable {
	proxy, mt := m.L.CreateTable(0, 0), m.L.CreateTable(0, 2)
	mt.RawSetString("__index", index)
	mt.RawSetString("__newindex", m.L.NewFunction(func(L *lua.LState) int {
		fail(L, "Attempt to modify a readonly table")
		return 0
	}))
	proxy.Metatable = mt
	m.real[proxy], m.proxies[t] = t, proxy
	return proxy
}

// unwrap is the table that has the elements of t.
func (m *machine) unwrap(t *lua.LTable) *lua.LTable {
	if real := m.real[t]; real != nil {
		return real
	}
	return t
}

// writable refuses a table that is read-only, where the interpreter does not ask metamethods.
func (m *machine) writable(L *lua.LState, t *lua.LTable) *lua.LTable {
	if m.real[t] != nil {
		raiseBare(L, "Attempt to modify a readonly table")
	}
	return t
}

func missingGlobal(L *lua.LState) int {
	name, _ := toText(L.Get(2))
	fail(L, "Script attempted to access nonexistent global variable '%s'", name)
	return 0
}

// raiseBare raises a text without the position in front.
func raiseBare(L *lua.LState, text string) { L.Error(lua.LString(text), 0) }
