package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// What a history of commands on a few keys may look like: that of some order
// in which each command took effect at one moment between its call and its
// return.

// linearKeys are the keys, few so that everything meets.
var linearKeys = [...]string{"a", "b", "c", "d"}

// linearValue is what a key holds.
type linearValue struct {
	set      bool
	text     string
	deadline int64 // Unix milliseconds; 0: none

	// Of the queue only.
	last    int64  // the highest id
	pending string // what has been read and not acknowledged, as text
}

// linearQueue is a stream with a group that takes its entries, one at a time. Those are named by the numbers that they
// are.
const linearQueue = "q"

// linearScript swaps, so to say: it increments the second key and makes the first the same, in one commit. Its reply is
// what the first was. The keys are declared, or are arguments; then the script begins again with more locks.
const linearScript = `
local function key(i) return KEYS[i] or ARGV[i] end
local old = redis.call('GET', key(1))
redis.call('INCR', key(2))
redis.call('SET', key(1), redis.call('GET', key(2)))
return old`

// linearState is what all keys hold. The last is the queue: set says that it has the group, text is what that has not
// read, each entry after a space.
type linearState [len(linearKeys) + 1]linearValue

// linearCall is one or, within MULTI, several commands.
type linearCall struct {
	commands      [][]string
	called, ended int64 // Unix milliseconds
	acknowledged  bool  // else it ended with the server that was to answer: it happened before that, or never
}

// linearModel judges histories. The moment at which a command looked at the
// clock is not known: each that makes a difference is tried.
func linearModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{linearState{}} },
		Step: func(state, input, output any) (next []any) {
			call := input.(linearCall)
			if !call.acknowledged { // perhaps it never happened
				next = append(next, state)
			}
			for _, now := range moments(state.(linearState), call) {
				after := state.(linearState)
				reply := after.run(call.commands, now)
				if (!call.acknowledged || reply == output.(string)) && !slices.Contains(next, any(after)) {
					next = append(next, after)
				}
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string {
			call := input.(linearCall)
			if !call.acknowledged {
				output = "?"
			}
			return fmt.Sprintf("%v at %d -> %v", call.commands, call.called, output)
		},
		DescribeState: func(state any) string { return fmt.Sprint(state) },
	}
	return m.ToModel()
}

// moments are the times at which the call may have looked at the clock, one for
// each outcome.
func moments(s linearState, call linearCall) []int64 {
	list := []int64{call.called}
	deadlines := []int64{}
	for _, v := range s {
		deadlines = append(deadlines, v.deadline)
	}
	for _, cmd := range call.commands { // one may pass while the others run
		if at := slices.Index(cmd, "PXAT"); at > 0 {
			deadlines = append(deadlines, number(cmd[at+1]))
		} else if cmd[0] == "PEXPIREAT" {
			deadlines = append(deadlines, number(cmd[2]))
		}
	}
	for _, at := range deadlines {
		if at > call.called && at <= call.ended && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return n
}

// run does commands and returns the replies.
func (s *linearState) run(commands [][]string, now int64) string {
	replies := make([]string, len(commands))
	for i, cmd := range commands {
		for k := range s {
			if s[k].deadline != 0 && s[k].deadline <= now {
				s[k] = linearValue{}
			}
		}
		replies[i] = s.do(cmd, now)
	}
	return strings.Join(replies, " ")
}

func (s *linearState) key(name string) *linearValue { return &s[slices.Index(linearKeys[:], name)] }

// do does one command. Deadlines that have passed take the key at once.
func (s *linearState) do(cmd []string, now int64) string {
	switch cmd[0] {
	case "EVAL":
		first, second := s.key(cmd[3]), s.key(cmd[4])
		old := "nil"
		if first.set {
			old = first.text
		}
		n := int64(0)
		if second.set {
			n = number(second.text)
		}
		second.set, second.text = true, strconv.FormatInt(n+1, 10)
		*first = linearValue{set: true, text: second.text}
		return old
	case "XADD", "XGROUP", "XREADGROUP", "XACK", "XCLAIM":
		return s[len(linearKeys)].queue(cmd)
	}
	v := s.key(cmd[1])
	switch cmd[0] {
	case "GET":
		if !v.set {
			return "nil"
		}
		return v.text
	case "SET":
		*v = linearValue{set: true, text: cmd[2]}
		if len(cmd) > 3 {
			v.expireAt(number(cmd[4]), now)
		}
		return "OK"
	case "MSET":
		for i := 1; i < len(cmd); i += 2 {
			*s.key(cmd[i]) = linearValue{set: true, text: cmd[i+1]}
		}
		return "OK"
	case "DEL":
		n := 0
		for _, name := range cmd[1:] {
			if v := s.key(name); v.set {
				*v = linearValue{}
				n++
			}
		}
		return strconv.Itoa(n)
	case "INCR":
		n := int64(0)
		if v.set {
			n = number(v.text)
		}
		v.set, v.text = true, strconv.FormatInt(n+1, 10)
		return v.text
	case "PEXPIREAT":
		if !v.set {
			return "0"
		}
		v.expireAt(number(cmd[2]), now)
		return "1"
	case "PERSIST":
		if v.deadline == 0 {
			return "0"
		}
		v.deadline = 0
		return "1"
	}
	panic("BUG: no command " + cmd[0])
}

// queue does a command on the queue.
func (v *linearValue) queue(cmd []string) string {
	switch entry := " " + cmd[len(cmd)-1]; {
	case cmd[0] == "XADD" && number(entry[1:]) <= v.last:
		return "ERR"
	case cmd[0] == "XADD":
		v.last = number(entry[1:])
		v.text += entry
		return "added"
	case cmd[0] == "XGROUP" && v.set:
		return "BUSYGROUP"
	case cmd[0] == "XGROUP":
		v.set = true
		return "OK"
	case cmd[0] == "XACK":
		return strconv.Itoa(v.takePending(entry))
	case !v.set:
		return "NOGROUP"
	case cmd[0] == "XCLAIM":
		n := v.takePending(entry)
		v.pending += strings.Repeat(entry, n)
		return strconv.Itoa(n)
	case v.text == "":
		return "nil"
	}
	next, rest, more := strings.Cut(v.text[1:], " ")
	if v.text = ""; more {
		v.text = " " + rest
	}
	v.pending += " " + next
	return next
}

// takePending removes an entry from those that are pending, if it is one, and returns how many it has removed.
func (v *linearValue) takePending(entry string) int {
	list := strings.Fields(v.pending)
	at := slices.Index(list, entry[1:])
	if at < 0 {
		return 0
	}
	v.pending = ""
	for _, other := range slices.Sorted(slices.Values(slices.Delete(list, at, at+1))) { // so that states are equal whatever the order
		v.pending += " " + other
	}
	return 1
}

func (v *linearValue) expireAt(at, now int64) {
	if v.deadline = at; at <= now {
		*v = linearValue{}
	}
}
