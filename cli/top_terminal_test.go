//go:build linux

package cli_test

import (
	"path/filepath"
	"testing"
)

// stave top ends by q, as programs that show something again and again do, and gives the terminal back; also by Ctrl-C.
func TestTopEndsByKey(t *testing.T) {
	t.Setenv("STAVE_PASSWORD", "")
	addr, stop := serve(t, t.TempDir(), filepath.Join(t.TempDir(), "s"))
	defer stop()
	for _, key := range []string{"xq", "\x03"} {
		s := converse(t, nil, "top", "--addr", addr, "--every", "50ms")
		s.until("keys")
		if _, err := s.master.WriteString(key); err != nil {
			t.Fatal(err)
		}
		s.until("\x1b[?25h\x1b[?1049l")
		if got := s.status(); got != 0 {
			t.Errorf("%q: status %d", key, got)
		}
	}
}
