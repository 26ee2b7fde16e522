package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/resp"
	lua "github.com/yuin/gopher-lua"
)

// A library is a script that registers functions. It is loaded once, to see what it registers, and once more by each
// machine that calls one of them; the functions then stay in that machine, with the locals that they share.
//
// While it is loaded it sees no globals but redis.register_function, redis.log and the constants of redis: so a load
// has the same outcome wherever it takes place. The globals of scripts appear when it has been loaded.

// MaxLoad is how long FUNCTION LOAD may take.
const MaxLoad = 500 * time.Millisecond

// libraryChunk is what errors call the source of a library.
const libraryChunk = "user_function"

// The reasons why a library is refused, in Redis's words.
const (
	ErrNoMetadata   Error = "Missing library metadata"
	ErrMetadata     Error = "Invalid library metadata"
	ErrNameTwice    Error = "Invalid metadata value, name argument was given multiple times"
	ErrNoName       Error = "Library name was not given"
	ErrName         Error = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
	ErrNoFunctions  Error = "No functions registered"
	errLoadTimeout  Error = "FUNCTION LOAD timeout"
	errRegisterLate       = "redis.register_function can only be called on FUNCTION LOAD command"
)

// Library is a library that has been loaded.
type Library struct {
	Name      string
	Source    string
	Functions []*Function // in order of their names

	proto *lua.FunctionProto
}

// Function is a function of a library.
type Function struct {
	Name        string
	Description string
	Described   bool // it has a description
	Flags       Flags
	Library     *Library
}

// LibraryName returns the name that the first line of a library states.
func LibraryName(source string) (string, error) {
	name, _, err := parseMetadata(source)
	return name, err
}

// parseMetadata reads the first line. code is what follows it, with the end of the line, so that lines are counted from
// the first.
func parseMetadata(source string) (name, code string, err error) {
	if !strings.HasPrefix(source, "#!") {
		return "", "", ErrNoMetadata
	}
	line, _, ended := strings.Cut(source, "\n")
	if !ended || strings.Contains(line, "\x00") {
		return "", "", ErrMetadata
	}
	fields, err := resp.SplitLine([]byte(line))
	if err != nil {
		return "", "", ErrMetadata
	}
	named := false
	for _, field := range fields[1:] {
		if len(field) < 5 || !strings.EqualFold(string(field[:5]), "name=") {
			return "", "", Error("Invalid metadata value given: " + string(field))
		}
		if named {
			return "", "", ErrNameTwice
		}
		name, named = string(field[5:]), true
	}
	engine := string(fields[0][2:])
	switch {
	case !named:
		return "", "", ErrNoName
	case !isName(name):
		return "", "", ErrName
	case !strings.EqualFold(engine, "lua"):
		return "", "", Error("Engine '" + engine + "' not found")
	}
	return name, source[len(line):], nil
}

// isName reports whether a library or a function may have a name.
func isName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	})
}

// loading is a library that is being loaded.
type loading struct {
	functions []*Function
	callbacks map[string]*lua.LFunction // by the names of functions in lower case: a name has no case when it is called
	silent    bool                      // it has been loaded before: its messages are in the log
}

// loaded is a library in a machine.
type loaded struct {
	library   *Library
	callbacks map[string]*lua.LFunction
}

// Load compiles and loads a library. limit is how long it may take, 0 for no limit. An Error is what FUNCTION LOAD
// replies, without the code in front; any other error is that of r's context.
func (e *Engine) Load(source string, r *Run, limit time.Duration) (*Library, error) {
	name, code, err := parseMetadata(source)
	if err != nil {
		return nil, err
	}
	lib := &Library{Name: name, Source: source}
	if lib.proto, err = compile(code, libraryChunk, nil); err != nil {
		return nil, Error("Error compiling function: " + err.Error())
	}
	trim(lib.proto)
	m := e.machine()
	m.begin(r)
	m.limit = limit
	l := &loading{}
	if err := m.load(lib, l); err != nil {
		return nil, err
	}
	if len(l.functions) == 0 {
		return nil, ErrNoFunctions
	}
	lib.Functions = l.functions
	slices.SortFunc(lib.Functions, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range lib.Functions {
		f.Library = lib
	}
	e.release(m)
	return lib, nil
}

// load runs the code of a library, and keeps the functions that it registers.
func (m *machine) load(lib *Library, l *loading) (err error) {
	fn := m.L.NewFunctionFromProto(lib.proto)
	fn.Env = m.libraryEnv
	m.loading = l
	m.libraryIndex.RawSetString("__index", m.loadGlobals)
	defer func() {
		m.loading, m.limit = nil, 0
		m.libraryIndex.RawSetString("__index", m.globals)
		if p := recover(); p != nil {
			err = m.loadFailure(p)
		}
	}()
	m.L.Push(fn)
	m.L.Call(0, 0)
	if m.stopped != nil {
		return m.loadFailure(nil)
	}
	m.libraries[lib.Name] = &loaded{lib, l.callbacks}
	return nil
}

// loadFailure is failure for a library that is being loaded. After it the machine is dropped.
func (m *machine) loadFailure(p any) error {
	var stopped Error
	if m.stopped != nil && !errors.As(m.stopped, &stopped) {
		return m.stopped
	}
	text := "ERR " + string(stopped)
	if raised, ok := p.(*lua.ApiError); m.stopped == nil && ok {
		text, _, _ = describe(raised.Object, "", 0)
	} else if m.stopped == nil {
		text = "ERR " + plain(fmt.Sprint(p))
	}
	return Error("Error registering functions: " + text)
}

// RunFunction calls a function of a library and appends its reply to out. Its errors are those of Run.
func (e *Engine) RunFunction(f *Function, r *Run, out *resp.Writer) error {
	m := e.machine()
	err := m.executeFunction(f, r, out)
	m.lend(0)
	if err == nil { // after an error the machine is dropped: the library's variables, which live on, may be in any state
		e.release(m)
	}
	return err
}

// executeFunction is RunFunction on a machine.
func (m *machine) executeFunction(f *Function, r *Run, out *resp.Writer) error {
	m.begin(r)
	fn, err := m.function(f)
	if err != nil {
		if failed, ok := ErrorOf(err); ok {
			return Error("ERR " + string(failed))
		}
		return err
	}
	if err := m.takeArguments(); err != nil {
		return err
	}
	return m.call(fn, out, stringTable(m.L, r.Keys), stringTable(m.L, r.Args))
}

// function is a function of a library in this machine, which loads the library if it has not, or has another version.
func (m *machine) function(f *Function) (*lua.LFunction, error) {
	if in := m.libraries[f.Library.Name]; in == nil || in.library != f.Library {
		if err := m.load(f.Library, &loading{silent: true}); err != nil {
			return nil, err
		}
	}
	fn := m.libraries[f.Library.Name].callbacks[strings.ToLower(f.Name)]
	if fn == nil {
		return nil, Error("Function not found") // a library registers the same ones each time
	}
	return fn, nil
}

// openLibraries makes what libraries see: see the comment at the top. The globals are complete.
func (m *machine) openLibraries() {
	L := m.L
	api := m.table(functions{"register_function": redisRegister, "log": redisLog})
	m.setConstants(api)
	missing := L.CreateTable(0, 1)
	missing.RawSetString("__index", L.NewFunction(missingGlobal))
	api.Metatable = missing
	m.loadGlobals = field(L, "redis", m.readOnly(api, api))
	m.loadGlobals.Metatable = missing
	m.libraryEnv = m.readOnly(m.globals, m.globals)
	m.libraryIndex = m.libraryEnv.Metatable.(*lua.LTable)
	m.libraries = map[string]*loaded{}
}

// redisRegister is redis.register_function.
func redisRegister(L *lua.LState) int {
	m := of(L)
	if m.loading == nil {
		raiseTable(L, "ERR "+errRegisterLate)
	}
	f := &Function{}
	var callback *lua.LFunction
	switch L.GetTop() {
	case 1:
		callback = registerNamed(L, f)
	case 2:
		name, ok := toText(L.Get(1))
		if !ok {
			raiseTable(L, "ERR first argument to redis.register_function must be a string")
		}
		fn, ok := L.Get(2).(*lua.LFunction)
		if !ok {
			raiseTable(L, "ERR second argument to redis.register_function must be a function")
		}
		f.Name, callback = name, fn
	default:
		raiseTable(L, "ERR wrong number of arguments to redis.register_function")
	}
	m.register(L, f, callback)
	return 0
}

// register keeps a function.
func (m *machine) register(L *lua.LState, f *Function, callback *lua.LFunction) {
	if !isName(f.Name) {
		raiseTable(L, "ERR "+string(ErrName)) // Redis speaks of libraries here, too
	}
	l, name := m.loading, strings.ToLower(f.Name)
	if l.callbacks[name] != nil {
		raiseTable(L, "ERR Function already exists in the library")
	}
	if l.callbacks == nil {
		l.callbacks = map[string]*lua.LFunction{}
	}
	l.callbacks[name] = callback
	l.functions = append(l.functions, f)
}

// registerNamed reads the table of named arguments.
func registerNamed(L *lua.LState, f *Function) (callback *lua.LFunction) {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		raiseTable(L, "ERR calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).")
	}
	named := false
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		key, ok := toText(k)
		if !ok {
			raiseTable(L, "ERR named argument key given to redis.register_function is not a string")
		}
		switch strings.ToLower(key) {
		case "function_name":
			if f.Name, named = toText(v); !named {
				raiseTable(L, "ERR function_name argument given to redis.register_function must be a string")
			}
		case "description":
			if f.Description, f.Described = toText(v); !f.Described {
				raiseTable(L, "ERR description argument given to redis.register_function must be a string")
			}
		case "callback":
			if callback, ok = v.(*lua.LFunction); !ok {
				raiseTable(L, "ERR callback argument given to redis.register_function must be a function")
			}
		case "flags":
			f.Flags = registerFlags(L, v)
		default:
			raiseTable(L, "ERR unknown argument given to redis.register_function")
		}
	}
	switch {
	case !named:
		raiseTable(L, "ERR redis.register_function must get a function name argument")
	case callback == nil:
		raiseTable(L, "ERR redis.register_function must get a callback argument")
	}
	return callback
}

// registerFlags reads the list of flags.
func registerFlags(L *lua.LState, v lua.LValue) (flags Flags) {
	list, ok := v.(*lua.LTable)
	if !ok {
		raiseTable(L, "ERR flags argument to redis.register_function must be a table representing function flags")
	}
	for i := 1; ; i++ {
		v := list.RawGetInt(i)
		if v == lua.LNil {
			return flags
		}
		name, _ := toText(v)
		flag, ok := ParseFlag(strings.ToLower(name))
		if !ok {
			raiseTable(L, "ERR unknown flag given")
		}
		flags |= flag
	}
}
