package settings

import "testing"

// TestEvents: each letter is itself, A stands for all but K, E, n and m, and what is kept is read back as it was.
func TestEvents(t *testing.T) {
	for text, want := range map[string]string{"": "", "K": "K", "m": "m", "KEA": "AKE", "gn": "gn", "An": "A", "AKEm": "AKEm"} {
		f, err := ParseEvents(text)
		if err != nil || f.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, f, err, want)
		}
		if again, err := ParseEvents(f.setting()); again != f || err != nil {
			t.Errorf("%q kept as %q is %q, %v", text, f.setting(), again, err)
		}
	}
	if _, err := ParseEvents("Kq"); err == nil {
		t.Error("q is a letter")
	}
}
