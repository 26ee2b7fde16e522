package effects_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/effects"
)

// resp is commands of words, as a client sends them.
func resp(commands ...string) string {
	var b strings.Builder
	for _, command := range commands {
		words := strings.Split(command, " ")
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	return b.String()
}

func wants(t *testing.T, e *effects.Effects, first, last int, commands ...string) {
	t.Helper()
	got, f, l := e.Take()
	if string(got) != resp(commands...) || len(commands) > 0 && (f != first || l != last) {
		t.Errorf("%q from %d to %d, want %q from %d to %d", got, f, l, resp(commands...), first, last)
	}
}

func TestTransaction(t *testing.T) {
	var e effects.Effects
	wants(t, &e, 0, 0)
	e.Add(3, "SET", "k", "v")
	wants(t, &e, 3, 3, "SET k v")
	e.Add(0, "SET", "k", "v")
	e.Add(2, "DEL", "k")
	wants(t, &e, 0, 2, "MULTI", "SET k v", "SELECT 2", "DEL k", "EXEC")
}

// TestJoin: neighbours that differ in their elements are one command, of up to 128 arguments, whatever is around these.
func TestJoin(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 60, 61, 62, 63, 64, 200} {
		var e effects.Effects
		var want []string
		for i := range n {
			f, v := "f"+strconv.Itoa(i), strings.Repeat("v", i%13)
			e.Join(0, 2, 2, "HEAD", "key", f, v, "TAIL", "end")
			if i%62 == 0 { // 4 arguments, and 62 elements of two
				want = append(want, "HEAD key TAIL end")
			}
			last := &want[len(want)-1]
			*last = strings.TrimSuffix(*last, " TAIL end") + " " + f + " " + v + " TAIL end"
		}
		if len(want) > 1 {
			want = append(append([]string{"MULTI"}, want...), "EXEC")
		}
		wants(t, &e, 0, 0, want...)
	}
	var e effects.Effects
	e.Join(0, 2, 0, "SADD", "a", "1")
	e.Join(0, 2, 0, "SADD", "b", "1")               // another head
	e.Join(0, 2, 1, "SADD", "b", "2", "x")          // another tail
	e.Join(1, 2, 1, "SADD", "b", "3", "x")          // another database
	e.Add(1, "SET", "k", "v")                       // takes nothing
	e.Join(1, 1, 0, "DEL", "k")                     //
	m := e.Mark()                                   // what was before stays as it was
	e.Join(1, 1, 0, "DEL", "l")                     //
	e.Describe(m, 1, "FLUSHDB")                     //
	e.Describe(e.Mark(), 1, "describes", "nothing") //
	e.RollbackTo(e.Mark())                          //
	wants(t, &e, 0, 1, "MULTI", "SADD a 1", "SADD b 1", "SADD b 2 x", "SELECT 1", "SADD b 3 x", "SET k v", "DEL k", "FLUSHDB", "EXEC")
}

func TestRollback(t *testing.T) {
	var e effects.Effects
	begin := e.Mark()
	e.Add(5, "SET", "a", "1")
	m := e.Mark()
	e.Add(6, "SET", "b", "2")
	e.RollbackTo(m)
	e.Add(5, "SET", "c", "3")
	e.RollbackTo(m)
	if e.Since(m) || !e.Since(begin) {
		t.Error("Since")
	}
	e.RollbackTo(begin)
	e.Add(7, "SET", "d", "4")
	wants(t, &e, 7, 7, "SET d 4")
	var none *effects.Effects
	none.RollbackTo(none.Mark())
}

// TestSlots has the keys of all commands among the slots, each where it stands.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		args  []string
		slots string
		whole bool
	}{
		{[]string{"SET", "k", "v", "KEEPTTL"}, "[1]", false},
		{[]string{"XGROUP", "CREATE", "k", "g", "0"}, "[1]", false},
		{[]string{"RENAME", "k", "l"}, "[1 2]", false},
		{[]string{"COPY", "l", "k", "DB", "1"}, "[2 1]", false},
		{[]string{"FLUSHDB"}, "[]", true},
		{[]string{"SWAPDB", "0", "1"}, "[]", true},
		{[]string{"FUNCTION", "LOAD", "REPLACE", "text"}, "[]", true},
	} {
		e := effects.Effects{SlotOf: func(key string) uint16 { return map[string]uint16{"k": 1, "l": 2}[key] }}
		before := e.Mark()
		e.Add(0, c.args...)
		e.RollbackTo(before) // more than it is does no harm
		if slots, whole := e.Slots(); fmt.Sprint(slots) != c.slots || whole != c.whole {
			t.Errorf("%v: %v, whole %t", c.args, slots, whole)
		}
	}
	var unknown effects.Effects
	unknown.Add(0, "SET", "k", "v")
	if slots, whole := unknown.Slots(); slots != nil || !whole {
		t.Errorf("without a hash: %v, whole %t", slots, whole)
	}
}
