package script_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server/script"
)

// repeated returns what makes a text of about n bytes of a line with a number in it, in the place of $.
func repeated(line string) func(n int) string {
	return func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.ReplaceAll(line, "$", fmt.Sprint(i)))
		}
		return b.String()
	}
}

// hostileSources are sources of a size that keep the compiler busy, in each way that it knows.
func hostileSources() map[string]func(n int) string {
	return map[string]func(n int) string{
		"numbers":          repeated("x=$.5\n"),
		"strings":          repeated("x='$'\n"),
		"globals":          repeated("v$=1\n"),
		"fields":           repeated("x.v$=1\n"),
		"methods":          repeated("x:v$()\n"),
		"calculated":       repeated("x=$+1\n"),
		"signs":            repeated("x=-$\n"),
		"table":            func(n int) string { return "return {" + repeated("$.5,")(n-9) + "}" },
		"labels":           repeated("::v$::"),
		"gotos":            func(n int) string { return repeated("do goto a end ")(n/2) + repeated("::v$:: ")(n/2) + "::a::" },
		"gotos in blocks":  func(n int) string { return repeated("goto a;")(n/2) + repeated("do end ")(n/2) + "::a::" },
		"sums":             repeated("x=a" + strings.Repeat("+a", 1500) + "\n"),
		"negations":        repeated("x=" + strings.Repeat("- ", 1500) + "a\n"),
		"conjunctions":     repeated("x=a" + strings.Repeat(" and a", 1500) + "\n"),
		"calls":            repeated("x=a" + strings.Repeat("()", 1500) + "\n"),
		"fields of fields": repeated("x=a" + strings.Repeat(".b", 1500) + "\n"),
		"blocks": func(n int) string {
			return strings.Repeat("do ", 1500) + repeated("x=y;")(n-12000) + strings.Repeat(" end", 1500)
		},
		"locals": func(n int) string {
			var b strings.Builder
			levels := 0
			for ; b.Len() < n/2; levels++ {
				b.WriteString("local function f() local a")
				for i := range 180 {
					fmt.Fprintf(&b, ",v%x_%x", levels, i)
				}
				b.WriteString("\n")
			}
			return b.String() + repeated("x=y;")(n/2-4*levels) + strings.Repeat(" end", levels)
		},
		"upvalues": func(n int) string {
			var b, uses strings.Builder
			levels := 0
			for ; b.Len() < n*2/5; levels++ {
				b.WriteString("local function f() local a")
				for i := range 180 {
					fmt.Fprintf(&b, ",v%x_%x", levels, i)
					fmt.Fprintf(&uses, "x=v%x_%x;", levels, i)
				}
				b.WriteString("\n")
			}
			return b.String() + uses.String() + strings.Repeat(" end", levels)
		},
		"functions":      repeated("do local a,b,c,d,e,f,g,h; function x() return a,b,c,d,e,f,g,h end end\n"),
		"many functions": repeated("x=function() x=$ end\n"),
		"branches":       repeated("if a then b() elseif c then d() else e() end\n"),
		"comments":       repeated("--[==[ a ]=] $ ]==] "),
	}
}

// TestCompileEnds: no source, however hostile, keeps the compiler busy: it cannot be interrupted. On a machine that is
// not busy each takes less than a second, and those that are refused a tenth of one; before, some took minutes.
func TestCompileEnds(t *testing.T) {
	const within = time.Minute
	for name, source := range hostileSources() {
		for _, n := range []int{script.MaxSource / 8, script.MaxSource * 9 / 10} {
			ended := make(chan error, 1)
			text, start := source(n), time.Now()
			go func() {
				_, err := script.Compile(text, "user_script")
				ended <- err
			}()
			select {
			case err := <-ended:
				t.Logf("%s of %d bytes: %v, %.80v", name, len(text), time.Since(start), err)
				if errors.Is(err, script.ErrSourceTooLarge) {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(within):
				t.Fatalf("%s of %d bytes: the compiler goes on after %v", name, len(text), within)
			}
		}
	}
}

// TestCompileOfLargeSources: what people and generators write is not refused, however long it is.
func TestCompileOfLargeSources(t *testing.T) {
	for name, source := range map[string]string{
		"a table of numbers":      "return {" + strings.Repeat("1,2,3,4,5,6,7,8,9,10,", 20_000) + "}",
		"a table of ten thousand": "return {" + repeated("$.5,")(70_000) + "}",
		"calls":                   strings.Repeat("redis.call('SET', KEYS[1], ARGV[1] + 1)\n", 20_000),
		"functions":               repeated("local function f() return $ end\n")(5000) + "f()",
		"functions of a library":  repeated("redis.register_function('f$', function(keys, args) local a, b = keys[1], args[1]; return redis.call('SET', a, b) end)\n")(250_000),
		"continue":                strings.Repeat("for i = 1, 3 do if i == 2 then goto continue end f(i) ::continue:: end\n", 5000),
		"a sum":                   "return 1" + strings.Repeat(" + x", 900),
		"branches":                strings.Repeat("if a then b() elseif c then d() else e() end\n", 20_000),
	} {
		if _, err := script.Compile(source, "user_script"); err != nil {
			t.Errorf("%s of %d bytes: %v", name, len(source), err)
		}
	}
}
