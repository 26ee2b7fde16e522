package script

import (
	"bytes"
	"testing"
	"time"

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
		if got := m.stride(); got != want || m.left > want {
			t.Errorf("%s: %d instructions pass between two looks, %d until the next; want %d", source, got, m.left, want)
		}
		m.begin(&Run{})
		if m.stride() != lookAfter || m.left != lookAfter {
			t.Errorf("%s: in the next run %d instructions pass between two looks", source, m.stride())
		}
	}
}

// TestWaitingIsNotLasting: a run whose command has waited for others is not long for that, and leaves its machine to the
// next run.
func TestWaitingIsNotLasting(t *testing.T) {
	p, err := Compile(`redis.call("WAIT") for i = 1, 1000 do end redis.call("WAIT") for i = 1, 1000 do end`, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, waits := range []bool{true, false} {
		kept, long := 0, 0
		for range 20 { // the pool may forget one, and a busy machine take its time
			e := NewEngine("7.4.0")
			m := e.machine()
			e.release(m)
			r := &Run{}
			r.Host.Long = func(*Run) { long++ }
			r.Host.Call = func(_ [][]byte, out *resp.Writer) error {
				from := time.Now()
				time.Sleep(2 * longAfter)
				if waits {
					r.Waits(time.Since(from))
				}
				out.Simple("OK")
				return nil
			}
			var out resp.Writer
			for range 2 {
				if err := e.Run(p, r, &out); err != nil {
					t.Fatal(err)
				}
			}
			if e.machines.Get() == any(m) {
				kept++
			}
		}
		if waits && (kept == 0 || long > 20) || !waits && (kept > 0 || long != 40) {
			t.Errorf("waits for others: %v; %d machines of 20 kept, %d runs of 40 long", waits, kept, long)
		}
	}
}
