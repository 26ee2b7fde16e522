package settings

import (
	"strings"

	"github.com/stavedb/stave/server/command"
)

// Events is the setting in Redis's letters: bit i is for letter i of knownLetters.
type Events uint32

const knownLetters = "g$lshzxetdnKEm"

// allLetters is the value of the letter A.
const allLetters = "g$lshzxetd"

// eventBits is the setting that has these letters.
func eventBits(letters string) (f Events) {
	for i := range len(letters) {
		f |= 1 << strings.IndexByte(knownLetters, letters[i])
	}
	return f
}

// Has reports whether the setting has a letter.
func (f Events) Has(letter byte) bool { return f&eventBits(string(letter)) != 0 }

// ParseEvents reads the setting.
func ParseEvents(text string) (f Events, err error) {
	for i := range len(text) {
		switch letter := text[i]; {
		case letter == 'A':
			f |= eventBits(allLetters)
		case strings.IndexByte(knownLetters, letter) >= 0:
			f |= eventBits(string(letter))
		default:
			return 0, command.Error("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
		}
	}
	return f, nil
}

// String is the setting as CONFIG GET shows it. As in Redis, A hides n, which it does not stand
// for.
func (f Events) String() string {
	var text strings.Builder
	rest := knownLetters
	if all := eventBits(allLetters); f&all == all {
		text.WriteByte('A')
		rest = "KEm"
	}
	for i := range len(rest) {
		if f.Has(rest[i]) {
			text.WriteByte(rest[i])
		}
	}
	return text.String()
}

// setting is text that ParseEvents reads back as it was: A does not stand for n, which String hides.
func (f Events) setting() string {
	text := f.String()
	if f.Has('n') && !strings.Contains(text, "n") {
		text += "n"
	}
	return text
}
