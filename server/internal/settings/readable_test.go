package settings_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stavedb/stave/server/internal/settings"
)

// TestPasswordsThatOthersMayRead: a file with passwords is to be its owner's alone; the warning does not repeat one.
func TestPasswordsThatOthersMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such permissions")
	}
	for _, tt := range []struct {
		text string
		mode os.FileMode
		line string // that is warned of, "" for none
	}{
		{"port 1\nrequirepass secret\n", 0o600, ""},
		{"port 1\nrequirepass secret\n", 0o640, "2"},
		{"RequirePass secret\nrequirepass other\n", 0o604, "1"},
		{"requirepass \"\"\nuser default on nopass ~* +@all\n", 0o644, ""},
		{"user bob on ~* >secret +get\n", 0o644, "1"},
		{"port 1\n", 0o666, ""},
	} {
		path := filepath.Join(t.TempDir(), "stave.conf")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		warnings, err := settings.New().Load(path)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(warnings, "\n")
		want := ""
		if tt.line != "" {
			want = path + ":" + tt.line + ": a password, and other users of the machine may read the file; chmod 600 it"
		}
		if got != want {
			t.Errorf("%q, mode %o: %q, want %q", tt.text, tt.mode, got, want)
		}
	}
}
