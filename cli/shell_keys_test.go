//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

// latin1 are the letters of Western Europe, which an editor may take for keys with Alt.
var latin1 = func() string {
	var letters []rune
	for r := rune(0xa0); r <= 0xff; r++ {
		letters = append(letters, r)
	}
	return string(letters)
}()

// typedTexts are texts that arrive as they were typed: letters with accents, also as two runes, letters of two columns,
// flags, families.
var typedTexts = []string{"äöüßéñ", latin1, "Málaga", "e\u0301a\u0308", "Жук日本", "🇩🇪🇫🇷👨‍👩‍👧x", "aüéßñЖ日b"}

// write types at once, as a paste does, whatever is on the screen.
func (s *conversation) write(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// onBoth runs a test of the shell on a directory and on a server. The terminal is told to mark what is pasted.
func onBoth(t *testing.T, test func(t *testing.T, place, env []string, prompt string)) {
	inputrc := filepath.Join(t.TempDir(), "inputrc")
	if err := os.WriteFile(inputrc, []byte("set enable-bracketed-paste on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STAVE_DIR", "")
	t.Setenv("STAVE_PASSWORD", "")
	env := []string{"INPUTRC=" + inputrc, "STAVE_PAGER="}
	t.Run("directory", func(t *testing.T) {
		test(t, []string{"--dir", filepath.Join(t.TempDir(), "store")}, env, "store[0]> ")
	})
	t.Run("server", func(t *testing.T) {
		addr, stop := serve(t, filepath.Join(t.TempDir(), "store"), "127.0.0.1:0")
		defer stop()
		test(t, []string{"--addr", addr}, env, addr+"[0]> ")
	})
}

// Letters of all languages are stored as they are typed, in every way to type them and in everything that is typed.
func TestLettersOnATerminal(t *testing.T) {
	onBoth(t, func(t *testing.T, place, env []string, prompt string) {
		env = append(env, "STAVE_HISTFILE="+filepath.Join(t.TempDir(), "history"))
		s := converse(t, env, append([]string{"shell", "--quiet"}, place...)...)
		ways := map[string]func(text string){
			"typed":  s.keys,
			"pasted": s.write,
			"marked": func(text string) { s.write("\x1b[200~" + text + "\x1b[201~") },
		}
		quoted := func(text string) string { return string(resp.AppendQuoted(nil, []byte(text))) }
		for _, text := range typedTexts {
			for way, enter := range ways {
				s.until(prompt)
				enter("set " + text + " " + way + text)
				s.keys("\r")
				s.until("OK\r\n")
				s.until(prompt)
				enter("get " + text)
				s.keys("\r")
				s.until(quoted(way+text) + "\r\n")
			}
		}
		steps := []struct{ typed, want string }{
			{"set München 1\r", "OK"},
			{"peek München\r", "string (int), 1 byte"},
			{":watch 0.05 get München\r", "every 50ms: get München\r\n\"1\""},
			{"\x03", "\x1b[?1049l"},
			{":set pager größer\r", ""},
			{":set nopager\r", ""},
			{"flushall\r", "[y/N] "},
			{"ÿes\r", "(not done)"},
			{"get M\t", "München"},
			{"\t\t\r", "\"1\"\r\n"},
			{"get M\tünchen\r", "\"1\"\r\n"}, // leaves the menu
			{"echo \"zwei\rZeilen für\"\r", quoted("zwei\nZeilen für") + "\r\n"},
		}
		for _, step := range steps {
			if !strings.Contains("\x03ÿ\t", step.typed[:1]) { // goes on
				s.until(prompt)
			}
			if step.typed == "\x03" {
				s.write(step.typed)
			} else {
				s.keys(step.typed)
			}
			s.until(step.want)
		}
		s.until(prompt)
		s.keys("echo später\r")
		s.until(quoted("später") + "\r\n")
		s.until(prompt)
		s.keys("exit\r")
		if got := s.status(); got != 0 {
			t.Errorf("status %d", got)
		}
		s = converse(t, env, append([]string{"shell", "--quiet"}, place...)...)
		s.until(prompt)
		s.keys("\x1b[A\x1b[A\r") // the line before exit
		s.until(quoted("später") + "\r\n")
	})
}

// Keys with Alt are commands as before: ESC with a letter. The letters that they once were are letters.
func TestAltOnATerminal(t *testing.T) {
	s := converse(t, []string{"STAVE_HISTFILE="}, "shell", "--quiet", "--dir", filepath.Join(t.TempDir(), "store"))
	for _, step := range []struct{ typed, want string }{
		{"echo eins.zwei\x1bbX", "eins.Xzwei"},                               // a word back
		{"echo eins.zwei\x01\x1bf\x1bfX", "einsX.zwei"},                      // to the beginning of the line, two words on
		{"echo eins.zwei\x1bb\x1bdX", "eins.X"},                              // deletes a word
		{"echo \x1b_", "eins.X"},                                             // the last word of the line before
		{"echo \x1b.", "eins.X"},                                             // the same
		{"echo âæõäß", "\\xc3\\xa2\\xc3\\xa6\\xc3\\xb5\\xc3\\xa4\\xc3\\x9f"}, // Alt-b, f, u, d and _ in Latin-1
	} {
		s.until("store[0]> ")
		s.write(step.typed + "\r")
		s.until("\"" + step.want + "\"\r\n")
	}
}

// What is typed while prompts are drawn, in pieces that end anywhere, is neither lost nor changed.
func TestTypedAheadByPieces(t *testing.T) {
	random := chance.Rand(t)
	onBoth(t, func(t *testing.T, place, env []string, prompt string) {
		const lines = 150
		var text strings.Builder
		values := make([]string, lines)
		for i := range values {
			values[i] = fmt.Sprintf("%d-%s", i, typedTexts[random.IntN(len(typedTexts))])
			fmt.Fprintf(&text, "set k%d %s\r", i, values[i])
		}
		s := converse(t, append(env, "STAVE_HISTFILE="), append([]string{"shell", "--quiet"}, place...)...)
		for rest := text.String(); rest != ""; {
			n := min(len(rest), 1+random.IntN(1<<random.IntN(11)))
			s.write(rest[:n])
			rest = rest[n:]
		}
		s.write("exit\r")
		if got := s.status(); got != 0 {
			t.Errorf("status %d", got)
		}
		for i, value := range values {
			if out, stderr, _ := run("", append(append([]string{"exec"}, place...), "GET", fmt.Sprintf("k%d", i))...); out != value+"\n" {
				t.Errorf("k%d: %q, typed %q, %s", i, out, value, stderr)
			}
		}
	})
}

// Keys that come in one piece with Ctrl-C, with Ctrl-V, with CR and LF, or with an answer that nobody asked for, are
// keys all the same.
func TestTypedAheadInOnePiece(t *testing.T) {
	s := converse(t, []string{"STAVE_HISTFILE="}, "shell", "--quiet", "--dir", filepath.Join(t.TempDir(), "store"))
	for typed, want := range map[string]string{
		"dropped\x03echo after-C\r":        `"after-C"`,
		"echo \x16ü-quoted\r":              `"\xc3\xbc-quoted"`,
		"echo crlf\r\n":                    `"crlf"`,
		"echo f\x1b[1;2R3\r":               `"f3"`,
		"echo \x1b[D\x1b[Cé\x1b[Dx\x05y\r": `"x\xc3\xa9y"`,
	} {
		s.until("store[0]> ")
		s.write(typed)
		s.until(want + "\r\n")
	}
}
