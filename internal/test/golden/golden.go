// Package golden compares what a test made with a file that has what it is to make.
package golden

import (
	"bytes"
	"os"
	"testing"
)

// Compare compares with the file, or writes it if it is to be updated.
func Compare(t *testing.T, file string, got []byte, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s (rewrite with -update): %v, got\n%s", file, err, got)
	}
}
