package seeded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// root is the module's directory.
const root = "../../.."

// bug is a file of bugs.
type bug struct {
	name  string
	what  string
	fault string
	pkg   string   // "./db"
	test  string   // what go test -run takes
	args  []string // further arguments of go test
	edits []edit
}

// edit replaces a piece of a file.
type edit struct{ file, old, new string }

// testName is the name of the test function.
func (b *bug) testName() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(b.test, "^"), "/")
	return strings.TrimSuffix(name, "$")
}

// module is the directory of the module that has the bug's test, and the test's package there. A nested module may notice a bug of this
// one, which it replaces by what is here.
func (b *bug) module() (dir, pkg string) {
	if rest, ok := strings.CutPrefix(b.pkg, "./cluster/"); ok {
		return filepath.Join(root, "cluster"), "./" + rest
	}
	return root, b.pkg
}

func readBugs(dir string) ([]*bug, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.bug"))
	if err != nil {
		return nil, err
	}
	var bugs []*bug
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		b, err := parseBug(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		b.name = strings.TrimSuffix(filepath.Base(file), ".bug")
		bugs = append(bugs, b)
	}
	return bugs, nil
}

func parseBug(text string) (*bug, error) {
	b := new(bug)
	file := ""
	for lines := strings.SplitAfter(text, "\n"); len(lines) > 0; {
		line := strings.TrimSpace(lines[0])
		lines = lines[1:]
		word, rest, _ := strings.Cut(line, ": ")
		switch word {
		case "":
		case "bug":
			b.what = rest
		case "fault":
			b.fault = rest
		case "test":
			words := strings.Fields(rest)
			if len(words) < 2 {
				return nil, fmt.Errorf("%q is not a package and a test", rest)
			}
			b.pkg, b.test, b.args = words[0], words[1], words[2:]
		case "file":
			file = rest
		case "<<<<":
			e := edit{file: file}
			var ok bool
			if e.old, lines, ok = until(lines, "===="); !ok {
				return nil, fmt.Errorf("no ==== after <<<<")
			}
			if e.new, lines, ok = until(lines, ">>>>"); !ok {
				return nil, fmt.Errorf("no >>>> after ====")
			}
			b.edits = append(b.edits, e)
		default:
			return nil, fmt.Errorf("line %q", line)
		}
	}
	if b.what == "" || b.fault == "" || b.test == "" || file == "" || len(b.edits) == 0 {
		return nil, fmt.Errorf("bug, fault, test, file or edits are missing")
	}
	return b, nil
}

// until takes the lines before a mark.
func until(lines []string, mark string) (text string, rest []string, ok bool) {
	for i, line := range lines {
		if strings.TrimSpace(line) == mark {
			return strings.Join(lines[:i], ""), lines[i+1:], true
		}
	}
	return "", nil, false
}

// changed returns the files with the bug in them, by path.
func (b *bug) changed() (map[string]string, error) {
	files := map[string]string{}
	for _, e := range b.edits {
		text, ok := files[e.file]
		if !ok {
			bytes, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(bytes)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s has this %d times, not once:\n%s", e.file, n, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return files, nil
}
