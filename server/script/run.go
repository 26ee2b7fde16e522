package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/resp"
	lua "github.com/yuin/gopher-lua"
)

// DefaultMemory is how many bytes the heap may grow by during a run, unless Run.Memory says otherwise.
const DefaultMemory = 256 << 20

// Engine is what runs share. The zero value is not usable: NewEngine makes one.
type Engine struct {
	random   random
	machines sync.Pool // of *machine
	floor    floor
	lent     atomic.Int64 // bytes that runs have without room: see machine.lend

	// Version is what redis.REDIS_VERSION says.
	Version string
}

// NewEngine returns an engine without machines: the first runs make them.
func NewEngine(version string) *Engine {
	e := &Engine{Version: version}
	e.random.seed(0)
	return e
}

// Host is the world around a script.
type Host struct {
	// Call executes a command and appends its reply to out, in the protocol version that out has been set to. An error
	// reply is a reply. An error that Call returns stops the run: Engine.Run returns it.
	Call func(args [][]byte, out *resp.Writer) error
	// Allowed is redis.acl_check_cmd: whether a command may be executed. It fails if there is none of that name.
	Allowed func(args [][]byte) (bool, error)
	// Log takes the messages of redis.log: 0 for debug, 1 for verbose, 2 for notice, 3 for warning.
	Log func(level int, message string)
	// Long is called once, in the goroutine of the run, when the run has lasted 10 ms without what it has Waited.
	Long func(*Run)
	// Hold takes room for what the run is to hold besides its first MiB: n bytes in place of those of the call before. It
	// reports false, and changes nothing, if there is no room; then NoRoom says why the run is to be stopped. Taken
	// returns how many bytes others have taken room for, and the most that had room at one time since any run called it
	// last. Wanted reports whether others wait for room; nil: nobody ever does. Without Hold no run asks for room.
	Hold   func(n int) bool
	NoRoom func(n int) error
	Taken  func() (others, most int64)
	Wanted func() bool
	// Wrote is how much memory the store takes for what the run has written, in bytes: the heap of the process grows by
	// that too, and it is none of the run's. nil: none.
	Wrote func() int
	// Context stops runs that have become long when it ends.
	Context context.Context
}

// Run is one execution of a program, or of a function of a library.
type Run struct {
	Host Host
	// Name is what errors call the script: the SHA-1 of its source, or the name of a function.
	Name       string
	Keys, Args [][]byte
	// Memory is how many bytes the heap of the process may grow by during the run, besides what Host.Wrote says. Default:
	// DefaultMemory.
	Memory uint64
	// Steps is how many instructions the run may take, about, before ErrSteps ends it. A command counts as 64. Default:
	// any number.
	Steps int

	waited  atomic.Int64 // see Waited
	control control
}

// Waits notes that a command of the run has waited for so long for others, such as for locks: that does not make it a
// long run.
func (r *Run) Waits(d time.Duration) { r.waited.Add(int64(d)) }

// Waited is how long the run has waited so far. It may be called from any goroutine.
func (r *Run) Waited() time.Duration { return time.Duration(r.waited.Load()) }

// control lets other goroutines stop a run.
type control struct{ reason atomic.Pointer[error] }

func (c *control) stopped() error {
	if p := c.reason.Load(); p != nil {
		return *p
	}
	return nil
}

// Stop ends the run soon, with an error that a script cannot catch. It may be called from any goroutine.
func (r *Run) Stop(reason error) { r.control.reason.CompareAndSwap(nil, &reason) }

func (r *Run) memory() uint64 {
	if r.Memory == 0 {
		return DefaultMemory
	}
	return r.Memory
}

// Error is the error that a script has ended with: the text of the reply.
type Error string

func (e Error) Error() string { return string(e) }

// ErrorOf is the Error of a script that has failed, if that is what err is. Without an error it allocates nothing.
func ErrorOf(err error) (failed Error, ok bool) {
	if err == nil {
		return "", false
	}
	ok = errors.As(err, &failed)
	return failed, ok
}

// Run executes a program and appends its reply to out. A script that fails is an Error, as is one that was stopped
// for its memory or by ErrKilled. Any other reason of a stop, and an error of Host.Call, comes back as it is. After an
// error nothing has been appended.
func (e *Engine) Run(p *Program, r *Run, out *resp.Writer) error {
	m := e.machine()
	err := m.execute(p, r, out)
	m.lend(0)
	e.release(m)
	return err
}

// execute is Run on a machine.
func (m *machine) execute(p *Program, r *Run, out *resp.Writer) error {
	m.begin(r)
	return m.executeBegun(p, r, out)
}

// executeBegun is execute after begin.
func (m *machine) executeBegun(p *Program, r *Run, out *resp.Writer) error {
	if err := m.takeArguments(); err != nil {
		return err
	}
	m.globals.RawSetString("KEYS", stringTable(m.L, r.Keys))
	m.globals.RawSetString("ARGV", stringTable(m.L, r.Args))
	err := m.call(m.L.NewFunctionFromProto(p.proto), out)
	m.globals.RawSetString("KEYS", lua.LNil)
	m.globals.RawSetString("ARGV", lua.LNil)
	return err
}

// reusable reports whether a machine is fit for another run, also if a program has left it by an error. Its thread is
// empty, and all else is what no program can change, or is reset by begin. To be stopped is an error like others, but one
// that no program catches. A run in which the interpreter panicked, which the program may have caught, may have been
// anywhere. A long run may have grown the registers to many MiB.
func (m *machine) reusable() bool { return !m.panicked && !m.long }

// machine returns an idle machine, or a new one.
func (e *Engine) machine() *machine {
	if m, ok := e.machines.Get().(*machine); ok {
		return m
	}
	return newMachine(e)
}

// keepReplies is the size of the reply buffer that an idle machine may keep, in bytes.
const keepReplies = 64 << 10

// release keeps a machine for the next run if it is reusable, unless its replies have grown.
func (e *Engine) release(m *machine) {
	m.run = nil
	m.L.SetTop(0)
	if m.out.Held() <= keepReplies && m.reusable() {
		if max(m.room.claimed, m.room.due) > roomFrom {
			m.forget()
		}
		e.machines.Put(m)
	}
}

// call calls a function with arguments and replies with its first result.
func (m *machine) call(fn *lua.LFunction, out *resp.Writer, args ...lua.LValue) (err error) {
	from, L := out.Len(), m.L
	defer func() {
		if p := recover(); p != nil { // not even protect could go on
			m.panicked = true
			err = m.failure(caught{value: p})
		}
		if err != nil {
			out.Truncate(from)
		}
	}()
	push(L, m.lowest, fn)
	push(L, args...)
	if c := m.protect(L, len(args)); c.value != nil || m.stopped != nil {
		return m.failure(c)
	}
	err = m.reply(out, L.Get(1))
	L.SetTop(0)
	return err
}

// failure is the error of a run that has raised c, or was stopped.
func (m *machine) failure(c caught) error {
	raised, ok := c.value.(*lua.ApiError)
	if m.stopped != nil && !errors.Is(m.stopped, ErrMemory) && !errors.Is(m.stopped, ErrKilled) {
		return m.stopped
	}
	text, source, line := "", c.source, c.line
	switch {
	case m.stopped != nil:
		text = "ERR " + m.stopped.Error()
	case !ok:
		text = "ERR " + plain(fmt.Sprint(c.value)) // a panic of the interpreter itself
	default:
		text, source, line = describe(raised.Object, source, line)
	}
	if line > 0 {
		return Error(fmt.Sprintf("%s script: %s, on @%s:%d.", text, m.run.Name, source, line))
	}
	return Error(fmt.Sprintf("%s script: %s", text, m.run.Name))
}

// describe is the text of an error value, and where it says that it comes from.
func describe(v lua.LValue, source string, line int) (string, string, int) {
	t, ok := v.(*lua.LTable)
	if !ok {
		text, isText := toText(v)
		if !isText {
			text = v.String()
		}
		return "ERR " + plain(text), source, line
	}
	text, ok := toText(t.RawGetString("err"))
	if !ok {
		text = "ERR unknown error"
	}
	return text, source, line
}

// position is the place of the innermost call that is in Lua.
func (m *machine) position() (source string, line int) {
	L := m.L
	if current := L.G.CurrentThread; current != nil {
		L = current
	}
	for level := 0; ; level++ {
		frame, ok := L.GetStack(level)
		if !ok {
			return "", 0
		}
		if _, err := L.GetInfo("Sl", frame, lua.LNil); err == nil && frame.CurrentLine > 0 {
			return frame.Source, frame.CurrentLine
		}
	}
}

// stringTable is a list of strings.
func stringTable(L *lua.LState, list [][]byte) *lua.LTable {
	t := L.CreateTable(len(list), 0)
	for i, s := range list {
		of(L).holds(len(s))
		t.RawSetInt(i+1, copyString(s))
	}
	return t
}

// maxReplyDepth bounds the nesting of the table that a script returns.
const maxReplyDepth = 1000

var errReplyDepth = Error("ERR reached lua stack limit")

// reply writes a value as the script's reply.
func (m *machine) reply(out *resp.Writer, v lua.LValue) error { return m.replyAt(out, v, 0) }

func (m *machine) replyAt(out *resp.Writer, v lua.LValue, depth int) error {
	switch v := v.(type) {
	case lua.LString:
		out.BulkString(string(v))
	case lua.LNumber:
		out.Int(toInteger(float64(v)))
	case lua.LBool:
		switch {
		case m.resp == 3:
			out.Bool(bool(v))
		case bool(v):
			out.Int(1)
		default:
			out.Null()
		}
	case *lua.LTable:
		if depth == maxReplyDepth {
			return errReplyDepth
		}
		return m.replyTable(out, m.unwrap(v), depth+1)
	default:
		out.Null()
	}
	return nil
}

// replyTable writes a table: one of the kinds that a field of it names, or an array up to the first nil.
func (m *machine) replyTable(out *resp.Writer, t *lua.LTable, depth int) error {
	if text, ok := t.RawGetString("err").(lua.LString); ok {
		out.Error(strings.TrimPrefix(string(text), "-"))
		return nil
	}
	if text, ok := t.RawGetString("ok").(lua.LString); ok {
		out.Simple(strings.NewReplacer("\r", " ", "\n", " ").Replace(string(text)))
		return nil
	}
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		out.Double(float64(f))
		return nil
	}
	if pairs, ok := t.RawGetString("map").(*lua.LTable); ok {
		return m.replyPairs(out, m.unwrap(pairs), depth, true)
	}
	if members, ok := t.RawGetString("set").(*lua.LTable); ok {
		return m.replyPairs(out, m.unwrap(members), depth, false)
	}
	if number, ok := t.RawGetString("big_number").(lua.LString); ok {
		out.BigNumber(strings.NewReplacer("\r", " ", "\n", " ").Replace(string(number)))
		return nil
	}
	if verbatim, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		text, isText := verbatim.RawGetString("string").(lua.LString)
		format, hasFormat := verbatim.RawGetString("format").(lua.LString)
		if isText && hasFormat {
			out.Verbatim((string(format) + "   ")[:3], string(text))
			return nil
		}
	}
	at, n := out.Begin(), 0
	for ; ; n++ {
		v := t.RawGet(lua.LNumber(n + 1))
		if v == lua.LNil || out.Exceeded() {
			break
		}
		if err := m.replyAt(out, v, depth); err != nil {
			return err
		}
	}
	out.EndArray(at, n)
	return nil
}

// replyPairs writes a table as a map, or its keys as a set.
func (m *machine) replyPairs(out *resp.Writer, t *lua.LTable, depth int, values bool) error {
	n := 0
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		n++
	}
	if values {
		out.Map(n)
	} else {
		out.Set(n)
	}
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		if err := m.replyAt(out, k, depth); err != nil {
			return err
		}
		if values {
			if err := m.replyAt(out, v, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// fromReply makes a Lua value of the first reply in b, and returns the rest. A reply of our own writer is well formed.
func (m *machine) fromReply(L *lua.LState, b []byte) (lua.LValue, []byte) {
	kind, line, rest := resp.Kind(b[0]), "", b
	for i := 1; i < len(b); i++ {
		if b[i] == '\r' {
			line, rest = string(b[1:i]), b[i+2:]
			break
		}
	}
	m.spend(L, 1)
	switch kind {
	case resp.SimpleString:
		return field(L, "ok", lua.LString(line)), rest
	case resp.Error:
		return errorTable(L, line), rest
	case resp.Integer:
		n, _ := strconv.ParseInt(line, 10, 64)
		return lua.LNumber(n), rest
	case resp.Null:
		return lua.LNil, rest
	case resp.Boolean:
		return lua.LBool(line == "t"), rest
	case resp.Double:
		f, _ := strtod(line)
		return field(L, "double", lua.LNumber(f)), rest
	case resp.BigNumber:
		return field(L, "big_number", lua.LString(line)), rest
	}
	n, _ := strconv.Atoi(line)
	if n < 0 {
		return lua.LFalse, rest
	}
	switch kind {
	case resp.BulkString:
		return copyString(rest[:n]), rest[n+2:]
	case resp.Verbatim:
		t := L.CreateTable(0, 2)
		t.RawSetString("format", lua.LString(rest[:3]))
		t.RawSetString("string", lua.LString(rest[4:n]))
		return field(L, "verbatim_string", t), rest[n+2:]
	}
	return m.fromAggregate(L, kind, n, rest)
}

// fromAggregate is fromReply for n elements.
func (m *machine) fromAggregate(L *lua.LState, kind resp.Kind, n int, rest []byte) (lua.LValue, []byte) {
	m.allocate(L, 32*n)
	t := L.CreateTable(n, 0)
	var v, w lua.LValue
	for i := range n {
		v, rest = m.fromReply(L, rest)
		switch kind {
		case resp.Map:
			w, rest = m.fromReply(L, rest)
			t.RawSet(v, w)
		case resp.Set:
			t.RawSet(v, lua.LTrue)
		default:
			t.RawSetInt(i+1, v)
		}
	}
	switch kind {
	case resp.Map:
		return field(L, "map", t), rest
	case resp.Set:
		return field(L, "set", t), rest
	}
	return t, rest
}

// field is a table of one field.
func field(L *lua.LState, name string, v lua.LValue) *lua.LTable {
	t := L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}
