package cli

import (
	"github.com/reeflective/readline"
	"github.com/rivo/uniseg"

	"github.com/stavedb/stave/cli/internal/humanize"
)

// The menu of completions is as high as the screen has room for, with a line that says what is left out.

// fit leaves out candidates until the menu has no more than room lines, or there is one. Of
// those shown the last one has the least in common with the first, so that the editor inserts what all have in common.
func fit(found []candidate, room, width int) (shown []candidate) {
	if menuLines(found, width) <= room || len(found) == 0 {
		return found
	}
	other, least := 0, len(found[0].value)
	for i, c := range found {
		if n := len(commonPrefix(found[0].value, c.value)); n < least {
			other, least = i, n
		}
	}
	for n := len(found) - 1; n > 0; n-- {
		shown = append(append(shown[:0], found[:n]...), found[max(other, n)])
		if menuLines(shown, width) <= room {
			return shown
		}
	}
	return found[:1]
}

// menuLines is how many lines the editor takes for candidates, at the most: for each group its heading, and then as many
// columns as fit, or a line for each candidate that has a description.
func menuLines(found []candidate, width int) (lines int) {
	type group struct {
		n, longest int
		described  bool
	}
	groups := map[string]group{}
	for _, c := range found {
		g := groups[c.group]
		groups[c.group] = group{g.n + 1, max(g.longest, len(c.value)), g.described || c.note != ""}
	}
	for _, g := range groups {
		columns := 1
		if !g.described {
			columns = max(1, width/(g.longest+2))
		}
		lines += 1 + (g.n+columns-1)/columns
	}
	return lines
}

// commonPrefix is what two texts begin with.
func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// menu is what the editor shows of candidates below a line.
func (e *fullEditor) menu(found []candidate, line string) readline.Completions {
	more := 0
	if n := len(found) - 1; n >= 0 && found[n].value == "" {
		found, more = found[:n], found[n].more
	}
	shown := found
	if height, width := e.s.Height(), e.s.Width(); height > 0 {
		down, _ := e.end(line)
		hintLines := (uniseg.StringWidth(hint(line)) + width - 1) / width
		shown = fit(found, height-(down+1)-hintLines-2, width) // a line for what is left out, and one to spare
	}
	if more >= 0 {
		more += len(found) - len(shown)
	}
	var list []readline.Completion
	for _, c := range shown {
		list = append(list, readline.Completion{Value: c.value, Display: c.value, Description: c.note, Tag: c.group})
	}
	menu := readline.CompleteRaw(list).NoSort()
	switch {
	case more > 0:
		menu = menu.Usage("and %s more", humanize.Count(int64(more)))
	case more < 0:
		menu = menu.Usage("and more")
	}
	return menu
}
