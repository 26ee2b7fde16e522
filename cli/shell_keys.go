package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reeflective/readline/inputrc"
	"github.com/rivo/uniseg"
)

// The line editor is set up so that each letter that is typed or pasted arrives, whatever it is and whenever it comes:
// what is lost here is a wrong value in the store.

// bindLetters makes the letters from U+0080 to U+00FF letters. In the library's tables a key with Alt is one with bit
// 0x80, as on terminals before UTF-8, so that Alt-i and é are one, and é came out as the command of Alt-i. Terminals of
// today send ESC before the key, and so the sequences are written here. An Alt key that only inserts itself goes.
func bindLetters(config *inputrc.Config) {
	config.Vars["convert-meta"] = false
	for _, binds := range config.Binds {
		for sequence, bind := range binds {
			var escaped strings.Builder
			for _, r := range sequence {
				if inputrc.IsMeta(r) {
					escaped.WriteRune(inputrc.Esc)
					r = inputrc.Demeta(r)
				}
				escaped.WriteRune(r)
			}
			if escaped.String() == sequence {
				continue
			}
			delete(binds, sequence)
			if bind.Action != "self-insert" || bind.Macro {
				binds[escaped.String()] = bind
			}
		}
	}
}

// insertTyped is the command that inserts what was typed. The library's own one, which is left the characters of ASCII,
// writes é as ^[i, and of a character of several runes only the first.
func (e *fullEditor) insertTyped(insertASCII func()) func() {
	return func() {
		typed := e.rl.Keys.Caller()
		if len(typed) == 1 && typed[0] < utf8.RuneSelf {
			insertASCII()
			return
		}
		if e.rl.Keymap.Local() == "menu-select" {
			// A letter leaves the menu, with what is chosen there. The library does so after it has looked for the key among
			// those of the menu, where it finds all beyond ASCII: without the menu it looks again.
			e.rl.Keymap.ResetLocal()
			e.rl.Keys.Feed(true, typed...)
			return
		}
		e.rl.History.SkipSave()
		e.rl.Cursor().InsertAt(typed...)
	}
}

// quoteTyped is the command of Ctrl-V, which inserts the next key as it is. The library's own one is given what is of
// ASCII, for the same reason.
func (e *fullEditor) quoteTyped(quoteASCII func()) func() {
	return func() {
		key, _ := e.rl.Keys.ReadKey()
		if key < utf8.RuneSelf {
			e.rl.Keys.Feed(true, key)
			quoteASCII()
			return
		}
		e.rl.History.SkipSave()
		e.rl.Cursor().InsertAt(key)
	}
}

// room goes as many lines down as the prompt with the typed line needs, and one more, and up again. At the lower end of
// the screen this scrolls it, without which the library, which clears the line below, would clear the last one. It is
// written before the prompt, each time the line is drawn, with the cursor where the prompt begins. ESC D is a line feed
// that stays in its column; the library splits the prompt at \n.
func (e *fullEditor) room() string {
	height := e.s.Height()
	if asksForCursor || height <= 1 {
		return ""
	}
	down, _ := e.end(string(*e.rl.Line()))
	down = min(down+1, height-1)
	return strings.Repeat("\x1bD", down) + "\x1b[" + strconv.Itoa(down) + "A"
}

// markDropped shows ^C at the end of a line that Ctrl-C has dropped, with the cursor below it. The library would
// write it over the letters at the cursor.
func (e *fullEditor) markDropped(line string) {
	if _, column := e.end(line); e.marks {
		fmt.Fprintf(e.s.Out, "\x1b[A%s^C\r\n", strings.Repeat("\x1b[C", column))
	}
}

// end is where the end of a line is: how many lines below the prompt, and in which column, counted from 0.
func (e *fullEditor) end(line string) (down, column int) {
	indent, width := uniseg.StringWidth(e.s.prompt()), e.s.Width()
	for text := range strings.SplitSeq(strings.ReplaceAll(line, "\t", "     "), "\n") {
		columns := indent + uniseg.StringWidth(text)
		down += 1 + columns/width
		column = columns % width
	}
	return down - 1, column
}
