package script

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestTextsOfAnyLength: what works in portions has the results of what does not.
func TestTextsOfAnyLength(t *testing.T) {
	random := chance.Rand(t)
	long := make([]byte, 4*portion)
	for i := range long {
		long[i] = byte('a' + random.IntN(2))
	}
	size := func() int {
		if random.IntN(2) == 0 {
			return random.IntN(100)
		}
		return random.IntN(3)*portion + random.IntN(5) + portion - 2
	}
	m := NewEngine("7.4.0").machine()
	for range 50 {
		a, b := string(long[:size()]), string(long[:size()])
		if got := m.append(m.L, []byte(a), b); string(got) != a+b {
			t.Fatalf("%d bytes appended to %d give %d, wrong ones", len(b), len(a), len(got))
		}
		if got := m.join(m.L, a, b); string(got) != a+b {
			t.Fatalf("%d bytes joined to %d give %d, wrong ones", len(b), len(a), len(got))
		}
		if got := m.grow(m.L, []byte(a), len(b)); string(got) != a || cap(got) < len(a)+len(b) {
			t.Fatalf("%d bytes grown by %d are %d with room for %d", len(a), len(b), len(got), cap(got))
		}
		if got := copyString([]byte(a)); string(got) != a {
			t.Fatalf("a copy of %d bytes is another", len(a))
		}
		if n := random.IntN(4); string(repeat(a, n)) != strings.Repeat(a, n) {
			t.Fatalf("%d times %d bytes is wrong", n, len(a))
		}
		if short, n := a[:random.IntN(min(len(a), 20)+1)], random.IntN(portion/4); string(repeat(short, n)) != strings.Repeat(short, n) {
			t.Fatalf("%d times %q is wrong", n, short)
		}
		from := random.IntN(len(long) - portion/2)
		for _, part := range []string{string(long[from : from+random.IntN(100)]), a, "c", ""} {
			if got, want := index(string(long), part), strings.Index(string(long), part); got != want {
				t.Fatalf("%d bytes are found at %d, want %d", len(part), got, want)
			}
		}
	}
}

// TestLongStringsLetTheCollectorStop: whatever makes a long string stops in less than half the time that one copy
// of it takes, when all goroutines have to. Both are measured one after the other, because beside load both take longer.
func TestLongStringsLetTheCollectorStop(t *testing.T) {
	const size, tries = 64 << 20, 12
	long := bytes.Repeat([]byte("x"), size)
	for _, source := range []string{
		`return #(s .. "x")`,
		`return #(s .. "x" .. setmetatable({}, {__concat = function() return "y" end}))`,
		`return #s:rep(1)`,
		`return #s:sub(1, 1000):rep(65000)`,
		`return #s:upper()`,
		`return #s:reverse()`,
		`return #("%s"):format(s)`,
		`return #s:gsub("^y", "z")`,
		`return #("x"):gsub("x", s)`,
		`return #table.concat({s, "x"})`,
		`return #table.concat({"x", "x"}, s)`,
		`return s:find("y", 1, true)`,
		`return redis.sha1hex(s)`,
		`return #cjson.encode(s)`,
		`return #cjson.encode("\"" .. s)`,
		`return #cjson.decode("\"\\n" .. s .. "\"")`,
		`return #("%q"):format(s)`,
		`return #select(2, pcall(error, s))`,
		`return #redis.error_reply(s).err`,
		`return #select(2, pcall(coroutine.wrap(function() error(s, 0) end)))`,
		`return #cmsgpack.pack(s)`,
		`return #struct.pack("s", s)`,
		`return redis.call("SET", "k", s)`,
		`return #redis.call("GET", "k")`,
	} {
		slowest, most := time.Duration(0), time.Duration(0)
		for n := 0; n == 0 || slowest >= most && n < tries; n++ {
			most = max(timeOfCopy(long)/2, 10*time.Millisecond) // sometimes the pages are there
			slowest = slowestStop(t, source, long)
		}
		t.Logf("%s: %v of %v", source, slowest, most)
		if slowest >= most {
			t.Fatalf("%s: all wait for %v, want less than %v", source, slowest, most)
		}
	}
}

// timeOfCopy is the least time that a copy of a string takes of three.
func timeOfCopy(long []byte) time.Duration {
	copying := time.Hour
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection sends the copying thread signals, which slows it down
	for range 3 {
		debug.FreeOSMemory() // most of the time is the kernel's, which has to find the pages
		b := make([]byte, 0, len(long))
		began := time.Now()
		runtime.KeepAlive(append(b, long...))
		copying = min(copying, time.Since(began))
	}
	return copying
}

// slowestStop is how long it took at most to stop all goroutines while a script ran, to which long is s.
func slowestStop(t *testing.T, source string, long []byte) time.Duration {
	e := NewEngine("7.4.0")
	proto, err := compile("local s = ARGV[1] "+source, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{Args: [][]byte{long}}
	reply := resp.Writer{}
	reply.Bulk(long)
	r.Host.Call = func(args [][]byte, out *resp.Writer) error {
		if string(args[0]) == "GET" {
			*out = reply
		} else {
			out.Simple("OK")
		}
		return nil
	}
	m := e.machine()
	m.begin(r)
	debug.FreeOSMemory()
	over, slowest := make(chan struct{}), make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for {
			select {
			case <-over:
				slowest <- most
				return
			default:
			}
			var stats runtime.MemStats
			began := time.Now()
			runtime.ReadMemStats(&stats) // stops all
			most = max(most, time.Since(began))
			time.Sleep(time.Millisecond)
		}
	}()
	var out resp.Writer
	m.globals.RawSetString("ARGV", stringTable(m.L, r.Args))
	err = m.call(m.L.NewFunctionFromProto(proto), &out)
	close(over)
	most := <-slowest
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return most
}
