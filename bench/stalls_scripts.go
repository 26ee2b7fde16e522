package main

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// Hostile scripts, each repeated by one client. They are not run on redis-server, which answers nobody while a script
// runs. The rows of "nothing" show how long the other clients wait without a script, and when another process computes all
// the time, or for 2 ms at a time.

// scriptKillTime is how long a script may last before SCRIPT KILL ends it.
const scriptKillTime = 300 * time.Millisecond

var hostileScripts = []attack{
	hostile("an endless loop", "while true do end"),
	hostile("an endless loop that reads", "while true do redis.call('GET', 'stall') end"),
	hostile("an endless loop that catches errors", "while true do pcall(function() while true do end end) end"),
	hostile("a string that doubles", "local s = 'x' while true do s = s .. s end"),
	hostile("string.rep", "return #string.rep('x', 500000000)"),
	hostile("many strings of 1 MiB", "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1048576) .. i end"),
	hostile("deep recursion", "local function f(n) return 1 + f(n + 1) end return f(0)"),
	hostile("a pattern that backtracks", "return string.find(string.rep('a', 3000), string.rep('a-', 300) .. 'b')"),
	hostile("a huge table", "local t = {} for i = 1, 1e9 do t[i] = i end"),
	hostile("shared metatables", "local m = getmetatable('') m.__index = function() while true do end end return ('x').y"),
	hostile("a deep reply", "local t = {} for i = 1, 1e7 do t = {t} end return t"),
	hostile("cjson of a deep table", "local t = {} for i = 1, 1e6 do t = {t} end return cjson.encode(t)"),
	hostile("a sort that never agrees", "local t = {} for i = 1, 1e6 do t[i] = i end table.sort(t, function() return true end)"),
}

func hostile(name, script string) attack {
	return attack{name: "a script: " + name, command: fixed("EVAL", script, "0"), hostile: true}
}

// killScripts ends scripts that last, until the connection is closed.
func (s *running) killScripts() (end func(), err error) {
	conn, err := net.Dial("unix", s.conn.RemoteAddr().String())
	if err != nil {
		return nil, err
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		reply := make([]byte, 4<<10)
		tick := time.NewTicker(scriptKillTime)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			if _, err := conn.Write(resp.AppendCommandStrings(nil, "SCRIPT", "KILL")); err != nil {
				return
			}
			if _, err := conn.Read(reply); err != nil {
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
		_ = conn.Close()
	}, nil
}

// scriptTable shows how long other clients wait beside hostile scripts.
func scriptTable() table {
	t := table{title: "p99 and slowest of others' calls while one client repeats a script that means harm, and p99 by that without one"}
	for _, other := range stalled {
		t.columns = append(t.columns, other.name+", p99", "slowest", "p99 / alone")
	}
	t.columns = append(t.columns, "the script")
	for _, a := range slices.Concat(attacks[:3], hostileScripts) {
		r := row{label: strings.TrimPrefix(a.name, "a script: ")}
		for _, other := range stalled {
			p99 := func(a attack) string { return fmt.Sprintf("stall/%s/%s-stave-p99", a.name, other.name) }
			r.cells = append(r.cells, fig(millis, p99(a)), fig(millis, fmt.Sprintf("stall/%s/%s-stave-max", a.name, other.name)),
				calc(times, func(v []float64) float64 { return v[0] / v[1] }, p99(a), p99(attacks[0])))
		}
		r.cells = append(r.cells, fig(millis, "stall/"+a.name+"/round-stave"))
		t.rows = append(t.rows, r)
	}
	return t
}
