package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

// drain returns every whole command and the error, if any, that ends the stream.
func drain(p *resp.Parser) (commands [][]string, err error) {
	for {
		args, err := p.Next()
		if args == nil || err != nil {
			return commands, err
		}
		command := make([]string, len(args))
		for i, arg := range args {
			command[i] = string(arg)
		}
		commands = append(commands, command)
	}
}

// parseSplit feeds stream in pieces whose sizes next chooses.
func parseSplit(limits resp.Limits, stream []byte, next func() int) (commands [][]string, err error) {
	p := resp.NewParser(limits)
	for len(stream) > 0 && err == nil {
		n := min(next(), len(stream))
		p.Feed(stream[:n])
		stream = stream[n:]
		var some [][]string
		some, err = drain(p)
		commands = append(commands, some...)
	}
	return commands, err
}

func TestParserCommands(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         [][]string
		err          string
	}{
		{"array of bulk strings", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", [][]string{{"GET", "k"}}, ""},
		{"two in one read", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", [][]string{{"PING"}, {"QUIT"}}, ""},
		{"empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", [][]string{{"ECHO", ""}}, ""},
		{"binary argument", "*1\r\n$5\r\n\x00\r\n*$\r\n", [][]string{{"\x00\r\n*$"}}, ""},
		{"empty arrays are nothing", "*0\r\n*-1\r\n*-100\r\n*1\r\n$1\r\na\r\n", [][]string{{"a"}}, ""},
		{"inline", "PING\r\nGET  key \n", [][]string{{"PING"}, {"GET", "key"}}, ""},
		{"inline quotes", `SET "a\x00\n\"b" 'it\'s \n'` + "\r\n", [][]string{{"SET", "a\x00\n\"b", "it's \\n"}}, ""},
		{"blank lines are nothing", "\r\n\n   \r\nPING\r\n", [][]string{{"PING"}}, ""},
		{"inline then array", "PING\r\n*1\r\n$4\r\nPING\r\n", [][]string{{"PING"}, {"PING"}}, ""},
		{"cut short", "*2\r\n$3\r\nGET\r\n$1\r\nk", nil, ""},
		{"unbalanced double", "GET \"a\r\n", nil, "Protocol error: unbalanced quotes in request"},
		{"unbalanced single", "GET 'a\r\n", nil, "Protocol error: unbalanced quotes in request"},
		{"quote closed inside a word", "GET \"a\"b\r\n", nil, "Protocol error: unbalanced quotes in request"},
		{"count is not a number", "*x\r\n", nil, "Protocol error: invalid multibulk length"},
		{"count is empty", "*\r\n", nil, "Protocol error: invalid multibulk length"},
		{"count has a leading zero", "*01\r\n", nil, "Protocol error: invalid multibulk length"},
		{"count above the limit", "*1048577\r\n", nil, "Protocol error: invalid multibulk length"},
		{"count beyond 32 bits", "*2147483648\r\n", nil, "Protocol error: invalid multibulk length"},
		{"count overflows 64 bits", "*18446744073709551617\r\n", nil, "Protocol error: invalid multibulk length"},
		{"count line without end", "*" + strings.Repeat("1", 17<<10), nil, "Protocol error: too big mbulk count string"},
		{"no dollar", "*1\r\n!3\r\nabc\r\n", nil, "Protocol error: expected '$', got '!'"},
		{"bulk is not a number", "*1\r\n$x\r\n", nil, "Protocol error: invalid bulk length"},
		{"bulk is negative", "*1\r\n$-1\r\n", nil, "Protocol error: invalid bulk length"},
		{"bulk above the limit", "*1\r\n$67108865\r\n", nil, "Protocol error: invalid bulk length"},
		{"bulk overflows", "*1\r\n$9223372036854775808\r\n", nil, "Protocol error: invalid bulk length"},
		{"bulk line without end", "*1\r\n$" + strings.Repeat("1", 17<<10), nil, "Protocol error: too big bulk count string"},
		{"endless inline", strings.Repeat("a", 17<<10), nil, "Protocol error: too big inline request"},
		{"commands before the error count", "PING\r\n*x\r\n", [][]string{{"PING"}}, "Protocol error: invalid multibulk length"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, size := range map[string]int{"whole": 1 << 30, "byte by byte": 1, "in sevens": 7} {
				got, err := parseSplit(resp.Limits{}, []byte(tt.stream), func() int { return size })
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: got %q, want %q", name, got, tt.want)
				}
				text := ""
				if err != nil {
					text = err.Error()
				}
				if text != tt.err {
					t.Errorf("%s: error %q, want %q", name, text, tt.err)
				}
			}
		})
	}
}

func TestParserLimits(t *testing.T) {
	limits := resp.Limits{Args: 3, Bulk: 10, Command: 40, Inline: 20, Inlines: "AUTH PING "}
	for stream, want := range map[string]string{
		"*4\r\n":                      "Protocol error: invalid multibulk length",
		"*1\r\n$11\r\n":               "Protocol error: invalid bulk length",
		"GET\r\n":                     "Protocol error: inline commands are disabled",
		"PINGS\r\n":                   "Protocol error: inline commands are disabled",
		"PIN\r\n":                     "Protocol error: inline commands are disabled",
		"PO":                          "Protocol error: inline commands are disabled",
		" PING\r\n":                   "Protocol error: inline commands are disabled",
		"\"PING\"\r\n":                "Protocol error: inline commands are disabled",
		"PING\x00\r\n":                "Protocol error: inline commands are disabled",
		"*" + strings.Repeat("9", 21): "Protocol error: too big mbulk count string",
		"*3\r\n$10\r\n0123456789\r\n$10\r\n0123456789\r\n$10\r\n": "Protocol error: too big command",
	} {
		p := resp.NewParser(limits)
		p.Feed([]byte(stream))
		_, err := p.Next()
		var violation resp.RequestError
		if !errors.As(err, &violation) || err.Error() != want {
			t.Errorf("%q: %v, want %s", stream, err, want)
		}
		p.Feed([]byte("*1\r\n$1\r\na\r\n"))
		if _, again := p.Next(); again == nil || again.Error() != want {
			t.Errorf("%q: error does not last: %v", stream, again)
		}
	}
	for _, stream := range []string{"PING\r\n", "ping \n", "auth x\r\n", "\r\n\nPing\tx\r\n"} {
		p := resp.NewParser(limits)
		for i := range len(stream) {
			args, err := p.Next()
			if args != nil || err != nil {
				t.Errorf("%q, at %d: %q, %v", stream, i, args, err)
			}
			p.Feed([]byte{stream[i]})
		}
		if args, err := p.Next(); len(args) == 0 || err != nil {
			t.Errorf("%q: %q, %v", stream, args, err)
		}
	}
	p := resp.NewParser(limits)
	p.SetLimits(resp.Limits{})
	p.Feed([]byte("GET\r\n"))
	if args, err := p.Next(); len(args) != 1 || err != nil {
		t.Errorf("raised limits do not hold: %q, %v", args, err)
	}
}

// TestParserAllocatesWhatArrives sends announcements of large arguments and measures their cost.
func TestParserAllocatesWhatArrives(t *testing.T) {
	for _, stream := range []string{"*1048576\r\n", "*1\r\n$67108864\r\n", "*1048576\r\n$67108864\r\nabc"} {
		p := resp.NewParser(resp.Limits{})
		p.Feed([]byte(stream))
		if args, err := p.Next(); args != nil || err != nil {
			t.Fatalf("%q: %v, %v", stream, args, err)
		}
		if held := p.Held(); held > 1024 {
			t.Errorf("%q holds %d bytes", stream, held)
		}
		if !p.Partial() {
			t.Errorf("%q is not seen as partial", stream)
		}
	}
}

// TestParserGrowsByWhatArrives sends a large argument in pieces: the parser holds at most four times what has arrived,
// in the end little more than that, and the copies made by growing are short.
func TestParserGrowsByWhatArrives(t *testing.T) {
	const size = 8<<20 + 12345
	for _, piece := range []int{16 << 10, 100_000} {
		p := resp.NewParser(resp.Limits{})
		stream := resp.AppendCommand(nil, []byte("SET"), []byte("k"), bytes.Repeat([]byte("value"), size/5))
		grown, held := 0, 0
		for sent := 0; sent < len(stream); {
			n := min(piece, len(stream)-sent)
			p.Feed(stream[sent:][:n])
			sent += n
			args, err := p.Next()
			if err != nil || (args != nil) != (sent == len(stream)) {
				t.Fatalf("after %d bytes: %d arguments, %v", sent, len(args), err)
			}
			if args != nil && !bytes.Equal(resp.AppendCommand(nil, args...), stream) {
				t.Fatal("another command")
			}
			if now := p.Held(); now > held+1024 { // and not only for the list of arguments
				grown, held = grown+now, now
			}
			if held > 4*sent+2*piece+1024 {
				t.Fatalf("%d bytes held after %d", held, sent)
			}
		}
		if held > size+size/100 || grown > size*4/3+16*piece {
			t.Errorf("pieces of %d: %d bytes held for a command of %d, %d allocated", piece, held, len(stream), grown)
		}
	}
}

// TestParserGrowsForManyArguments: a command of many short arguments is copied about twice, whatever its length, and its
// arguments are listed once.
func TestParserGrowsForManyArguments(t *testing.T) {
	const n = 300_000
	args := make([][]byte, n)
	for i := range args {
		args[i] = fmt.Appendf(nil, "argument:%09d", i)
	}
	stream := resp.AppendCommand(nil, args...)
	p := resp.NewParser(resp.Limits{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var got [][]byte
	for part := range slices.Chunk(stream, 16<<10) {
		var err error
		p.Feed(part)
		if got, err = p.Next(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if len(got) != n || string(got[n-1]) != string(args[n-1]) {
		t.Fatalf("%d arguments, want %d", len(got), n)
	}
	if took, most := after.TotalAlloc-before.TotalAlloc, uint64(4*len(stream)+24*n+1<<20); took > most {
		t.Errorf("%d bytes allocated for a command of %d, want at most %d", took, len(stream), most)
	}
}

func TestParserGivesMemoryBack(t *testing.T) {
	p := resp.NewParser(resp.Limits{})
	big := resp.AppendCommand(nil, []byte("SET"), []byte("k"), make([]byte, 8<<20))
	many := make([][]byte, 100_000)
	big = resp.AppendCommand(big, many...)
	p.Feed(big)
	commands, err := drain(p)
	if len(commands) != 2 || err != nil {
		t.Fatal(len(commands), err)
	}
	p.Feed([]byte("PING\r\n"))
	if held := p.Held(); held > 64<<10 {
		t.Errorf("holds %d bytes after large commands", held)
	}
}

func TestParserRewind(t *testing.T) {
	p := resp.NewParser(resp.Limits{})
	p.Feed([]byte("PING\r\n\r\n*1\r\n$1\r\na\r\n*2\r\n$1\r\nb\r\n$1\r\nc\r\n*1\r\n$x\r\n"))
	var marks []int
	for range 3 {
		if args, err := p.Next(); args == nil || err != nil {
			t.Fatal(args, err)
		}
		marks = append(marks, p.Mark())
	}
	if _, err := p.Next(); err == nil {
		t.Fatal("the error is not seen")
	}
	for i, want := range [][][]string{{{"PING"}, {"a"}, {"b", "c"}}, {{"a"}, {"b", "c"}}, {{"b", "c"}}} {
		p.Rewind(marks[i])
		got, err := drain(p)
		if !reflect.DeepEqual(got, want) || err == nil {
			t.Errorf("rewound to command %d: %q, %v", i, got, err)
		}
	}
}

// randomStream builds a stream of commands and sometimes breaks it.
func randomStream(r *rand.Rand) []byte {
	var stream []byte
	for range 1 + r.IntN(20) {
		args := make([][]byte, 1+r.IntN(6))
		for i := range args {
			args[i] = make([]byte, r.IntN(1+1<<r.IntN(11)))
			for j := range args[i] {
				args[i][j] = byte(r.Uint32())
			}
		}
		switch r.IntN(6) {
		case 0:
			for i, arg := range args {
				if i > 0 {
					stream = append(stream, ' ')
				}
				stream = resp.AppendQuoted(stream, arg)
			}
			stream = append(stream, '\r', '\n')
		case 1:
			stream = append(stream, "*0\r\n\r\n"...)
		default:
			stream = resp.AppendCommand(stream, args...)
		}
	}
	for r.IntN(3) == 0 {
		stream[r.IntN(len(stream))] = "*$\r\n-19 \"'\x00"[r.IntN(11)]
	}
	return stream
}

// TestParserAnySplit checks that how a stream is cut into reads changes nothing.
func TestParserAnySplit(t *testing.T) {
	r := chance.Rand(t)
	for range 300 {
		stream := randomStream(r)
		limits := resp.Limits{Inline: 1 << (4 + r.IntN(11))}
		want, wantErr := parseSplit(limits, stream, func() int { return len(stream) })
		for _, largest := range []int{1, 2, 5, 100, 5000} {
			got, err := parseSplit(limits, stream, func() int { return 1 + r.IntN(largest) })
			if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("stream %q in pieces up to %d: %q, %v; whole: %q, %v", stream, largest, got, err, want, wantErr)
			}
		}
	}
}

func FuzzParser(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n"), uint8(3))
	f.Add([]byte("SET \"a b\" 'c'\r\n*1\r\n$-1\r\n"), uint8(1))
	f.Add([]byte("*-1\r\n*0\r\n*1\r\n:"), uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		limits := resp.Limits{Inline: 64, Args: 16, Bulk: 256, Command: 1024}
		want, wantErr := parseSplit(limits, stream, func() int { return 1 << 30 })
		got, err := parseSplit(limits, stream, func() int { return int(size)%7 + 1 })
		if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("split %d: %q, %v; whole: %q, %v", size, got, err, want, wantErr)
		}
	})
}

func FuzzSplitLine(f *testing.F) {
	f.Add([]byte(`set "a\x00b" 'c\'d'`))
	f.Add([]byte{0, 34, 92, 39, 10})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = resp.SplitLine(b)
		args, err := resp.SplitLine(resp.AppendQuoted(nil, b))
		if err != nil || len(args) != 1 || !bytes.Equal(args[0], b) {
			t.Fatalf("%q does not survive quoting: %q, %v", b, args, err)
		}
	})
}

func TestSplitLine(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{"  \t ", nil},
		{"a b", []string{"a", "b"}},
		{`a"b c"`, []string{"ab c"}},
		{`"\x41\x4g"`, []string{"Ax4g"}},
		{`"" ''`, []string{"", ""}},
		{`"\n\r\t\b\a\q\\"`, []string{"\n\r\t\b\aq\\"}},
		{"a\vb", []string{"a\vb"}},
		{"a\x00b", []string{"a"}},
	} {
		args, err := resp.SplitLine([]byte(tt.line))
		var got []string
		for _, arg := range args {
			got = append(got, string(arg))
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %q, %v, want %q", tt.line, got, err, tt.want)
		}
	}
	for _, line := range []string{`"`, `'`, `"a`, `"a"b`, `'a'b`, `"a\"`, `a "b`, "\"a\x00\""} {
		if args, err := resp.SplitLine([]byte(line)); !errors.Is(err, resp.ErrUnbalancedQuotes) {
			t.Errorf("%q: %q, %v", line, args, err)
		}
	}
}

func BenchmarkParserPipeline(b *testing.B) {
	var stream []byte
	for range 16 {
		stream = resp.AppendCommandStrings(stream, "SET", "key:000000000042", "xxx")
	}
	p := resp.NewParser(resp.Limits{})
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		p.Feed(stream)
		for {
			args, err := p.Next()
			if err != nil {
				b.Fatal(err)
			}
			if args == nil {
				break
			}
		}
	}
}

// TestParserManyArguments: a command of many arguments is the same however it arrives, and again after Rewind.
func TestParserManyArguments(t *testing.T) {
	var stream strings.Builder
	var want []string
	const n = 3000
	fmt.Fprintf(&stream, "*%d\r\n", n)
	for i := range n {
		arg := strings.Repeat("\r", i%3) + strings.Repeat(fmt.Sprint(i), i%4)
		want = append(want, arg)
		fmt.Fprintf(&stream, "$%d\r\n%s\r\n", len(arg), arg)
	}
	stream.WriteString("*1\r\n$4\r\nPING\r\n")
	for _, size := range []int{1, 7, 1000, 5000, 1 << 20} {
		p := resp.NewParser(resp.Limits{})
		rest := []byte("*1\r\n$1\r\nx\r\n" + stream.String())
		var got [][]string
		for len(rest) > 0 {
			k := min(size, len(rest))
			p.Feed(rest[:k])
			rest = rest[k:]
			some, err := drain(p)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, some...)
		}
		if !reflect.DeepEqual(got, [][]string{{"x"}, want, {"PING"}}) {
			t.Errorf("in pieces of %d bytes the commands are others", size)
		}
	}
	p := resp.NewParser(resp.Limits{})
	text := []byte(stream.String())
	p.Feed(text[:len(text)-20])
	if args, err := p.Next(); args != nil || err != nil {
		t.Fatal(args, err)
	}
	p.Feed(text[len(text)-20:])
	for range 2 {
		args, err := p.Next()
		if err != nil || len(args) != n || string(args[n-1]) != want[n-1] {
			t.Fatalf("%d arguments, %v", len(args), err)
		}
		p.Rewind(p.Mark())
	}
}

// TestUnfinishedCommandTakesItsBytes: what has arrived of a command of a million empty arguments takes little more
// memory than its bytes, and Held knows it.
func TestUnfinishedCommandTakesItsBytes(t *testing.T) {
	const n = 1_000_000
	piece := []byte(strings.Repeat("$0\r\n\r\n", 2500))
	before := live()
	parsers := make([]*resp.Parser, 10)
	for i := range parsers {
		p := resp.NewParser(resp.Limits{})
		p.Feed([]byte("*1048576\r\n"))
		for fed := 0; fed < n; fed += 2500 {
			p.Feed(piece)
			if args, err := p.Next(); args != nil || err != nil {
				t.Fatal(args, err)
			}
		}
		parsers[i] = p
	}
	each := (live() - before) / len(parsers)
	sent := n * len("$0\r\n\r\n")
	t.Logf("%d bytes of an unfinished command take %d bytes, and Held says %d", sent, each, parsers[0].Held())
	if each > sent*3/2 {
		t.Errorf("%d bytes take %d", sent, each)
	}
	if held := parsers[0].Held(); held < each*9/10 || held > each*2 {
		t.Errorf("Held says %d bytes of %d", held, each)
	}
	runtime.KeepAlive(parsers)
}

// live is how many bytes the objects in use take.
func live() int {
	runtime.GC()
	runtime.GC() // pools let go of what they have in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Release frees the buffer and the lists of a large command once it has ended, and nothing of one that has begun.
func TestRelease(t *testing.T) {
	p := resp.NewParser(resp.Limits{})
	next := func(want int) {
		t.Helper()
		if args, err := p.Next(); err != nil || len(args) != want {
			t.Fatalf("%d arguments, %v", len(args), err)
		}
	}
	large := "*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 1_000_000) + "\r\n"
	many := "*10000\r\n" + strings.Repeat("$0\r\n\r\n", 10_000)
	p.Feed([]byte(large + many + large[:500_000]))
	next(2)
	next(10_000)
	next(0)
	p.Release()
	if p.Held() < 500_000 || !p.Partial() {
		t.Errorf("%d bytes are held of half a command", p.Held())
	}
	p.Feed([]byte(large[500_000:]))
	next(2)
	p.Release() // the parser has not said that it was the last
	next(0)
	p.Release()
	if p.Held() > 32<<10 {
		t.Errorf("%d bytes are held of nothing", p.Held())
	}
	p.Feed([]byte("PING\r\n"))
	next(1)
}
