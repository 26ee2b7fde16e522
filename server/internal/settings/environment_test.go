package settings

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestVariablesOfTheProgram: a variable that a command of the program reads does not keep a server from starting.
func TestVariablesOfTheProgram(t *testing.T) {
	named := regexp.MustCompile(`os\.(?:Getenv|LookupEnv)\("(STAVE_[A-Z_]+)"\)`)
	seen := 0
	err := fs.WalkDir(os.DirFS("../../../cli"), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile("../../../cli/" + path)
		for _, match := range named.FindAllStringSubmatch(string(source), -1) {
			seen++
			if _, err := New().Environment([]string{match[1] + "=value"}); err != nil && strings.Contains(err.Error(), "unknown") {
				t.Errorf("cli/%s reads %s: %v", path, match[1], err)
			}
		}
		return err
	})
	if err != nil || seen < 5 {
		t.Errorf("%v, %d variables", err, seen)
	}
}
