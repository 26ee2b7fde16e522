package terminal

import "testing"

func TestOpenQuote(t *testing.T) {
	for line, want := range map[string]bool{
		`set k "a`: true, `set k 'a`: true, `set k "a\`: true, `set k 'a\`: true, "set k \"a\nb": true, `set "`: true,
		`set k "a"`: false, `set k "a"b`: false, `set k "a"b "c`: false, `set k it's`: true, ``: false, `set k "a\"`: true,
	} {
		if got := OpenQuote([]byte(line)); got != want {
			t.Errorf("%s: got %v", line, got)
		}
	}
}
