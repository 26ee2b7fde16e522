package slowlog_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/slowlog"
)

// get is SLOWLOG GET with a count, or without; it returns the ids of the entries, or the error.
func get(t *testing.T, l *slowlog.Log, count ...string) (ids []int64, err error) {
	t.Helper()
	var out resp.Writer
	args := [][]byte{[]byte("slowlog"), []byte("get")}
	for _, word := range count {
		args = append(args, []byte(word))
	}
	if err := l.Get(&command.Call{Command: &command.Command{Name: "slowlog|get", Container: &command.Command{Name: "slowlog"}}, Args: args, Out: &out}); err != nil {
		return nil, err
	}
	reply, _, err := resp.Decode(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range reply.Items {
		if len(entry.Items) != 6 {
			t.Fatalf("an entry has %d fields", len(entry.Items))
		}
		ids = append(ids, entry.Items[0].Int)
	}
	return ids, nil
}

func TestNewestEntriesAreKept(t *testing.T) {
	var l slowlog.Log
	l.Limit(20)
	for i := range 30 {
		l.Add(slowlog.Entry{Took: time.Duration(i) * time.Millisecond, Args: []string{"get", "k"}})
	}
	if n, last, next := l.Usage(); n != 20 || last != 29*time.Millisecond || next != 30 {
		t.Errorf("%d entries, the last took %v, the next id is %d", n, last, next)
	}
	for count, want := range map[string][]int64{"": {29, 28, 27, 26, 25, 24, 23, 22, 21, 20}, "2": {29, 28}, "0": nil, "-1": ids(29, 10), "1000": ids(29, 10)} {
		if got, err := get(t, &l, slices.DeleteFunc([]string{count}, func(s string) bool { return s == "" })...); err != nil || !slices.Equal(got, want) {
			t.Errorf("count %q: %d, %v", count, got, err)
		}
	}
	for _, wrong := range [][]string{{"-2"}, {"x"}, {"1", "2"}} {
		if got, err := get(t, &l, wrong...); err == nil {
			t.Errorf("%q: %d", wrong, got)
		}
	}
	l.Limit(3)
	if got, _ := get(t, &l); !slices.Equal(got, ids(29, 27)) {
		t.Errorf("after a lower limit: %d", got)
	}
	l.Reset()
	l.Add(slowlog.Entry{})
	if got, _ := get(t, &l); !slices.Equal(got, []int64{30}) {
		t.Errorf("after a reset, and one more: %d", got)
	}
	l.Limit(0)
	l.Add(slowlog.Entry{})
	if n, _, _ := l.Usage(); n != 0 {
		t.Errorf("a log without room keeps %d entries", n)
	}
}

// ids are those from the first down to the last.
func ids(first, last int64) (list []int64) {
	for id := first; id >= last; id-- {
		list = append(list, id)
	}
	return list
}

func TestArgsAreCut(t *testing.T) {
	many := make([][]byte, 40)
	for i := range many {
		many[i] = fmt.Append(nil, i)
	}
	got := slowlog.Args(many, 0)
	if len(got) != 32 || got[30] != "30" || got[31] != "... (9 more arguments)" {
		t.Errorf("40 arguments: %q", got)
	}
	if got := slowlog.Args(many[:32], 0); len(got) != 32 || got[31] != "31" {
		t.Errorf("32 arguments: %q", got)
	}
	long := slowlog.Args([][]byte{bytes.Repeat([]byte("x"), 128), bytes.Repeat([]byte("y"), 130)}, 5)
	if want := []string{strings.Repeat("x", 128), strings.Repeat("y", 128) + "... (2 more bytes)", "... (5 more commands of a pipeline)"}; !slices.Equal(long, want) {
		t.Errorf("long arguments: %q", long)
	}
}
