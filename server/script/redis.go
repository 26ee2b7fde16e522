package script

import (
	"strings"

	"github.com/stavedb/stave/internal/resp"
	lua "github.com/yuin/gopher-lua"
)

// The library "redis". An error of redis.call is a table whose field err has the text; redis.pcall returns that table.

var redisFunctions = functions{
	"call":               func(L *lua.LState) int { return redisCall(L, true) },
	"pcall":              func(L *lua.LState) int { return redisCall(L, false) },
	"error_reply":        redisErrorReply,
	"status_reply":       redisStatusReply,
	"sha1hex":            redisSHA1,
	"log":                redisLog,
	"setresp":            redisSetResp,
	"set_repl":           redisSetRepl,
	"replicate_commands": func(L *lua.LState) int { return push(L, lua.LTrue) },
	"breakpoint":         func(L *lua.LState) int { return push(L, lua.LFalse) },
	"debug":              func(L *lua.LState) int { return 0 },
	"acl_check_cmd":      redisAllowed,
}

// Constants of the library: logLevels are those that a library sees while it is loaded.
var logLevels = map[string]int{"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3}

var replicationFlags = map[string]int{
	"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
}

// openRedis adds the library, which is called server too.
func (m *machine) openRedis() {
	t := m.library("redis", redisFunctions)
	for name, value := range replicationFlags {
		t.RawSetString(name, lua.LNumber(value))
	}
	m.setConstants(t)
}

// setConstants adds to a table what libraries see, too.
func (m *machine) setConstants(t *lua.LTable) {
	for name, value := range logLevels {
		t.RawSetString(name, lua.LNumber(value))
	}
	number := 0
	for part := range strings.SplitSeq(m.engine.Version, ".") {
		n, _ := strtod(part)
		number = number<<8 | int(n)
	}
	t.RawSetString("REDIS_VERSION", lua.LString(m.engine.Version))
	t.RawSetString("REDIS_VERSION_NUM", lua.LNumber(number))
}

// errorTable is an error of a command.
func errorTable(L *lua.LState, text string) *lua.LTable {
	t := field(L, "err", lua.LString(text))
	t.RawSetString("ignore_error_stats_update", lua.LTrue)
	return t
}

// raiseTable raises an error as redis.call does.
func raiseTable(L *lua.LState, text string) { L.Error(errorTable(L, text), 1) }

// refuse is the end of a call whose arguments are wrong.
func refuse(L *lua.LState, raise bool, text string) int {
	if raise {
		raiseTable(L, text)
	}
	return push(L, field(L, "err", lua.LString(text)))
}

// usualNumber is the length of most numbers as text.
const usualNumber = 16

// redisCall is redis.call, and redis.pcall unless raise.
func redisCall(L *lua.LState, raise bool) int {
	m := of(L)
	if m.loading != nil { // a library has no way to it
		fail(L, "redis.call can only be called inside a script invocation")
	}
	n := L.GetTop()
	if n == 0 {
		return refuse(L, raise, "ERR Please specify at least one argument for this redis lib call")
	}
	size := 0
	for i := range n {
		switch v := L.Get(i + 1).(type) {
		case lua.LString:
			size += len(v)
		case lua.LNumber:
			size += usualNumber
		default:
			return refuse(L, raise, "ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	if !m.claim(size) {
		fail(L, "%s", m.stopped.Error())
	}
	args, text := make([][]byte, n), make([]byte, 0, size) // the command may keep them until the end of the transaction
	for i := range args {
		from := len(text)
		switch v := L.Get(i + 1).(type) {
		case lua.LString:
			text = appendText(text, string(v))
		case lua.LNumber:
			text = resp.AppendDouble(text, float64(v))
		}
		args[i] = text[from:len(text):len(text)]
	}
	m.spend(L, lookAfter/4)
	m.out.Discard(m.out.Len())
	m.out.SetVersion(m.resp)
	if err := m.run.Host.Call(args, &m.out); err != nil {
		m.stop(err)
		fail(L, "%s", err.Error())
	}
	reply := m.out.Bytes()
	m.allocate(L, len(reply))
	if raise && reply[0] == '-' {
		raiseTable(L, strings.TrimRight(string(reply[1:]), "\r\n"))
	}
	v, _ := m.fromReply(L, reply)
	if m.room.replies.Taken() > 0 {
		m.out.Discard(m.out.Len())
	}
	return push(L, v)
}

// redisErrorReply makes a table that is an error as a reply.
func redisErrorReply(L *lua.LState) int {
	if L.GetTop() != 1 || L.Get(1).Type() != lua.LTString {
		return refuse(L, false, "ERR wrong number or type of arguments")
	}
	text, _, _ := strings.Cut(string(L.Get(1).(lua.LString)), "\x00")
	text = strings.TrimPrefix(text, "-")
	if !strings.Contains(text, " ") {
		text = string(of(L).join(L, "ERR ", text)) // what has a code is an error as it is
	}
	return push(L, field(L, "err", lua.LString(strings.TrimRight(text, "\r\n"))))
}

func redisStatusReply(L *lua.LState) int {
	if L.GetTop() != 1 || L.Get(1).Type() != lua.LTString {
		return refuse(L, false, "ERR wrong number or type of arguments")
	}
	return push(L, field(L, "ok", L.Get(1)))
}

func redisSHA1(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseTable(L, "ERR wrong number of arguments")
	}
	text, _ := toText(L.Get(1))
	of(L).spend(L, len(text)>>6)
	return push(L, lua.LString(SHA(text)))
}

func redisLog(L *lua.LState) int {
	n := L.GetTop()
	if n < 2 {
		raiseTable(L, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := L.Get(1).(lua.LNumber)
	if !ok {
		raiseTable(L, "ERR First argument must be a number (log level).")
	}
	if level < 0 || level > 3 {
		raiseTable(L, "ERR Invalid debug level.")
	}
	words := make([]string, 0, n-1)
	for i := 2; i <= n; i++ {
		if text, ok := toText(L.Get(i)); ok {
			words = append(words, text)
		}
	}
	m := of(L)
	if m.loading != nil && m.loading.silent {
		return 0
	}
	if log := m.run.Host.Log; log != nil {
		log(int(level), strings.Join(words, " "))
	}
	return 0
}

func redisSetResp(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseTable(L, "ERR redis.setresp() requires one argument.")
	}
	version, _ := toNumber(L.Get(1))
	if version != 2 && version != 3 {
		raiseTable(L, "ERR RESP version must be 2 or 3.")
	}
	of(L).resp = int(version)
	return 0
}

// redisSetRepl checks its argument: writes always go to the log.
func redisSetRepl(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseTable(L, "ERR redis.set_repl() requires two arguments.")
	}
	if flags, ok := toNumber(L.Get(1)); !ok || flags < 0 || flags > 3 {
		raiseTable(L, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

// redisAllowed is redis.acl_check_cmd.
func redisAllowed(L *lua.LState) int {
	n := L.GetTop()
	if n == 0 {
		raiseTable(L, "ERR Please specify at least one argument for this redis.acl_check_cmd() call")
	}
	args := make([][]byte, n)
	for i := range args {
		text, ok := toText(L.Get(i + 1))
		if !ok {
			raiseTable(L, "ERR redis.acl_check_cmd() arguments must be strings or integers")
		}
		args[i] = []byte(text)
	}
	allowed := true
	if check := of(L).run.Host.Allowed; check != nil {
		var err error
		if allowed, err = check(args); err != nil {
			raiseTable(L, "ERR Invalid command passed to redis.acl_check_cmd()")
		}
	}
	return push(L, lua.LBool(allowed))
}
