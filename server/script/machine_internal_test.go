package script

import (
	"bytes"
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// TestLongStringsAreLookedAfter: with long strings, wherever they come from, few instructions pass between two looks,
// and in the next run as many as ever.
func TestLongStringsAreLookedAfter(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 1<<24)
	for source, want := range map[string]int{
		`return 1`:                                     lookAfter,
		`return #("x"):rep(65536)`:                     lookAfter,
		`return #("x"):rep(2^20)`:                      lookAfter / 16,
		`return #(("x"):rep(2^19) .. ("x"):rep(2^19))`: lookAfter / 16,
		`return #KEYS[1]`:                              1,
		`return #ARGV[1]`:                              1,
		`return #redis.call("GET", "k")`:               1,
		`return #("x"):rep(2^20):gsub("x", "y")`:       lookAfter / 16,
	} {
		e := NewEngine("7.4.0")
		proto, err := compile(source, "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &Run{}
		r.Host.Call = func(_ [][]byte, out *resp.Writer) error {
			out.Bulk(long)
			return nil
		}
		if source == `return #KEYS[1]` {
			r.Keys = [][]byte{long}
		} else if source == `return #ARGV[1]` {
			r.Args = [][]byte{long}
		}
		m := e.machine()
		m.begin(r)
		m.globals.RawSetString("KEYS", stringTable(m.L, r.Keys))
		m.globals.RawSetString("ARGV", stringTable(m.L, r.Args))
		if err := m.call(m.L.NewFunctionFromProto(proto), &resp.Writer{}); err != nil {
			t.Errorf("%s: %v", source, err)
		}
		if got := m.stride(); got > want || got < want*3/4 || m.left > want { // a buffer may be larger than its string by a quarter
			t.Errorf("%s: %d instructions pass between two looks, %d until the next; want %d", source, got, m.left, want)
		}
		m.begin(&Run{})
		if m.stride() != lookAfter || m.left != lookAfter {
			t.Errorf("%s: in the next run %d instructions pass between two looks", source, m.stride())
		}
	}
}
