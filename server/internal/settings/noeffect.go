package settings

import (
	_ "embed"
	"strconv"
	"strings"
)

// noEffect has a line for each setting that files of Redis have and that changes nothing here: its name and the older
// one, the default, the values, and why. Three more, whose values take a grammar, are rows of table.go.
//
//go:embed noeffect.txt
var noEffect string

// noEffectDirectives are the rows of noeffect.txt.
var noEffectDirectives = readNoEffect()

func readNoEffect() (rows []Directive) {
	for line := range strings.Lines(noEffect) {
		column := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 4)
		name, alias, _ := strings.Cut(column[0], " ")
		d := Directive{Name: name, alias: alias, def: column[1], Kind: kindOf(column[2]), Mode: kept, meaning: column[3]}
		if column[2] == "words" {
			d.each = -1
		}
		rows = append(rows, d)
	}
	return rows
}

// kindOf reads the third column of noeffect.txt: "yes or no", "text", "words", "bytes from 1", "1 to 99", or the words
// that may stand there.
func kindOf(values string) kind {
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic("BUG: server: noeffect.txt: " + err.Error())
		}
		return n
	}
	switch values {
	case "yes or no":
		return yesNo()
	case "text":
		return anyText()
	case "words":
		return words()
	}
	if least, is := strings.CutPrefix(values, "bytes from "); is {
		return bytesFrom(number(least))
	}
	if least, most, is := strings.Cut(values, " to "); is {
		return between(number(least), number(most))
	}
	return oneOf(strings.Split(values, ", ")...)
}
