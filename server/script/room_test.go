package script_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/script"
)

// TestRoom: a run takes room for its arguments, its strings, its tables and the replies of its commands before it has
// them, gives back what is garbage, and ends with the host's reason when there is none.
func TestRoom(t *testing.T) {
	const mib = 1 << 20
	errFull := errors.New("full")
	e := script.NewEngine("7.4.0")
	long := []byte(strings.Repeat("a", 16*mib))
	for name, c := range map[string]struct {
		source string
		args   [][]byte
		least  int // that it takes, in MiB, of what it has: it is an estimate
		most   int
	}{
		"little":             {source: "return 'a' .. 'b'"},
		"arguments":          {"return 1", [][]byte{long, long}, 28, 34},
		"strings":            {"local t = {} for i = 1, 32 do t[i] = string.rep('x', 1048576) end return #t", nil, 28, 48},
		"tables":             {"local t = {} for i = 1, 800000 do t[i] = {i, i, i} end return #t", nil, 100, 800}, // half of it and what others lend are less
		"a reply":            {"return #redis.call('GET')", nil, 28, 90},
		"arguments of calls": {"local s = string.rep('x', 16777216) return redis.call('ECHO', s, s)", nil, 42, 90},
		"garbage":            {"for i = 1, 2000 do local s = string.rep('x', 1048576) end return 1", nil, 0, 500}, // of 2000: as late as a busy machine collects it
	} {
		t.Run(name, func(t *testing.T) {
			program, err := script.Compile(c.source, "f")
			if err != nil {
				t.Fatal(err)
			}
			run := func(limit int) (taken int, err error) {
				host := script.Host{
					Call: func(args [][]byte, out *resp.Writer) error {
						out.SetLimit(1 << 30)
						if string(args[0]) == "GET" {
							out.Bulk(long)
						} else {
							out.Int(1)
						}
						if out.Dropped() {
							return errors.New("dropped")
						}
						return nil
					},
					Hold: func(n int) bool {
						if n > limit {
							return false
						}
						taken = max(taken, n)
						return true
					},
					NoRoom: func(int) error { return errFull },
					Taken:  func() (int64, int64) { return 0, int64(taken) },
				}
				runtime.GC() // what others have left
				var out resp.Writer
				return taken, e.Run(program, &script.Run{Host: host, Name: "f", Args: c.args}, &out)
			}
			taken, err := run(1 << 40)
			t.Logf("%d MiB", taken/mib)
			if err != nil || taken/mib < c.least || taken/mib > c.most {
				t.Errorf("%v, %d MiB taken, want %d to %d", err, taken/mib, c.least, c.most)
			}
			if c.least > 0 {
				if taken, err = run(c.least / 2 * mib); err != errFull || taken > c.least/2*mib {
					t.Errorf("with half of the room: %v, %d MiB taken", err, taken/mib)
				}
			}
		})
	}
}

// TestRoomIsNotForGarbageOfOthers: a script that only computes is not stopped because there is garbage of others on the
// heap and no room.
func TestRoomIsNotForGarbageOfOthers(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the garbage stays
	program, err := script.Compile("local n = 0 for i = 1, 100000 do n = n + i end return 1", "f")
	if err != nil {
		t.Fatal(err)
	}
	e := script.NewEngine("7.4.0")
	for round := range 20 {
		garbage := make([][]byte, 64)
		for i := range garbage {
			garbage[i] = make([]byte, 1<<20)
		}
		most := 0
		host := script.Host{
			Hold:   func(n int) bool { most = max(most, n); return n <= 1<<20 },
			NoRoom: func(int) error { return errors.New("no room") },
			Taken:  func() (int64, int64) { return 0, 0 },
		}
		var out resp.Writer
		if err := e.Run(program, &script.Run{Host: host, Name: "f"}, &out); err != nil {
			t.Fatalf("round %d: %v, %d KiB claimed", round, err, most>>10) // also if what is lent is not given back
		}
	}
}

// garbage is on the heap.
var garbage [][]byte

// TestRoomIsWanted: while others wait for room a run has none for what its instructions may have allocated, which may be
// garbage of others, but what its functions have allocated keeps its room. Afterwards others may be lent as much as before.
func TestRoomIsWanted(t *testing.T) {
	const mib = 1 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the garbage stays, unless a run wants it to be collected
	defer func() { garbage = nil }()
	compile := func(source string) *script.Program {
		program, err := script.Compile(source, "f")
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	for _, size := range []int64{16, 31, 120} { // less than can be lent, nearly that, and more
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			garbage = nil
			runtime.GC()
			e := script.NewEngine("7.4.0")
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			var held, most atomic.Int64
			var wanted atomic.Bool
			done := make(chan error)
			go func() {
				host := script.Host{
					Context: ctx,
					Hold: func(n int) bool {
						held.Store(int64(n))
						most.Store(max(most.Load(), int64(n)))
						return true
					},
					NoRoom: func(int) error { return errors.New("no room") },
					Taken:  func() (int64, int64) { return 0, most.Swap(held.Load()) },
					Wanted: wanted.Load,
				}
				var out resp.Writer
				done <- e.Run(compile("local s = string.rep('x', 8388608) while true do end"), &script.Run{Host: host, Name: "f", Memory: 1 << 40}, &out)
			}()
			holds := func(from, to int64) {
				t.Helper()
				for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
					n := held.Load()
					switch {
					case n >= from*mib && n < to*mib:
						return
					case time.Now().After(deadline):
						t.Fatalf("%d MiB held, want %d to %d", n/mib, from, to)
					}
				}
			}
			holds(7, 10)
			for range size {
				garbage = append(garbage, make([]byte, mib))
			}
			holds(size, size+100)
			wanted.Store(true)
			holds(6, 12)
			wanted.Store(false)
			for range 2 * size {
				garbage = append(garbage, make([]byte, mib))
			}
			holds(size, 3*size+100)

			host := script.Host{
				Hold:   func(n int) bool { return n <= 1<<20 },
				NoRoom: func(int) error { return errors.New("no room") },
				Taken:  func() (int64, int64) { return held.Load(), 0 },
			}
			garbage = append(garbage, make([]byte, 64*mib))
			short := compile("local n = 0 for i = 1, 100000 do n = n + i end return 1")
			for deadline := time.Now().Add(20 * time.Second); ; { // the long one has given back what it was lent, or is about to
				var out resp.Writer
				err := e.Run(short, &script.Run{Host: host, Name: "f"}, &out)
				if err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("a short run has no room:", err)
				}
			}
			stop()
			if err := <-done; err == nil {
				t.Error("the run has not been stopped")
			}
		})
	}
}

// TestWritesAreNotItsMemory: what the store keeps of what a run has written does not count as memory of the run.
func TestWritesAreNotItsMemory(t *testing.T) {
	for _, says := range []bool{true, false} {
		var kept [][]byte
		got := run(t, `for i = 1, 2000 do redis.call('SET') local s = string.rep('x', 1048576) end return 1`, func(r *script.Run) {
			r.Memory = 32 << 20
			r.Host.Call = func(args [][]byte, out *resp.Writer) error {
				if len(kept) < 200 {
					kept = append(kept, make([]byte, 1<<20))
				}
				out.Simple("OK")
				return nil
			}
			if says {
				r.Host.Wrote = func() int { return len(kept) << 20 }
			}
		})
		if says && got != ":1\r\n" {
			t.Errorf("%q", got)
		}
		if !says && !strings.Contains(got, script.ErrMemory.Error()) {
			t.Errorf("of a run that keeps 200 MB: %q", got)
		}
		runtime.KeepAlive(kept)
	}
}
