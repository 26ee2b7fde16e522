package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are the documents that speak of the code as it is.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root := moduleRoot(t)
	all := map[string]string{}
	for _, pattern := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md", "docs/appendix/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(rel)] = string(text)
		}
	}
	return all
}

// TestDocsNameFilesThatExist: a Go file that a document names is there. A name without a directory may be in any.
func TestDocsNameFilesThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, s := range sources(t) {
		known[s.name] = true
		known[filepath.Base(s.name)] = true
	}
	named := regexp.MustCompile("[`(]([a-z][a-zA-Z0-9_/]*\\.go)[`:)]")
	n := 0
	for page, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if n++; !known[m[1]] {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d files are named: is the pattern right?", n)
	}
}

// TestDocsNameTestsThatExist: a test, fuzz target or benchmark that a document names is there. "TestReserve..." is any
// that begins so.
func TestDocsNameTestsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() {
				known[f.Name.Name] = true
			}
		}
	}
	begins := func(prefix string) bool {
		for name := range known {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)(\\.\\.\\.)?[`/]")
	n := 0
	for page, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if n++; !known[m[1]] && (m[2] == "" || !begins(m[1])) {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d tests are named: is the pattern right?", n)
	}
}

// TestLinksResolve: a link from one page to another leads to a file that is there, and to a heading in it.
func TestLinksResolve(t *testing.T) {
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	n := 0
	for page, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			name, heading, _ := strings.Cut(m[1], "#")
			target := page
			if name != "" {
				target = path.Join(path.Dir(page), name)
			}
			if _, err := os.Stat(filepath.Join(moduleRoot(t), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if heading != "" && !slices.Contains(headings(all[target]), heading) {
				t.Errorf("%s links to %s: no such heading", page, m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d links: is the pattern right?", n)
	}
}

// headings are the names under which links reach the headings of a page.
func headings(text string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// TestInvariantsAreNamed: code outside tests that keeps an invariant of ARCHITECTURE.md says which. Check only verifies
// them.
func TestInvariantsAreNamed(t *testing.T) {
	invariants := regexp.MustCompile(`(?m)^- \*\*(I\d+)\*\*`).FindAllStringSubmatch(pages(t)["ARCHITECTURE.md"], -1)
	if len(invariants) < 11 {
		t.Fatalf("%d invariants found", len(invariants))
	}
	comments := map[string]int{}
	for _, s := range sources(t) {
		if s.test() || s.nested || strings.HasPrefix(path.Base(s.name), "check") {
			continue
		}
		for _, group := range s.file.Comments {
			for _, name := range regexp.MustCompile(`\bI\d+\b`).FindAllString(group.Text(), -1) {
				comments[name]++
			}
		}
	}
	for _, m := range invariants {
		if comments[m[1]] == 0 {
			t.Errorf("no comment in the product names %s", m[1])
		}
	}
}

// TestPagesAreShort: what a newcomer reads first stays short.
func TestPagesAreShort(t *testing.T) {
	all := pages(t)
	for page, most := range map[string]int{"ARCHITECTURE.md": 2500, "README.md": 1300, "CONTRIBUTING.md": 900} {
		if n := len(bytes.Fields([]byte(all[page]))); n > most {
			t.Errorf("%s has %d words, more than %d", page, n, most)
		}
	}
}

// TestPackagesSayWhatTheyAre: the comment of every package begins as go doc wants it, and is more than a line.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	said := map[string]string{}
	for _, s := range sources(t) {
		if !s.test() && !s.nested && s.file.Doc != nil {
			said[s.dir] += s.file.Doc.Text()
		}
	}
	for _, s := range sources(t) {
		if s.test() || s.nested || strings.HasPrefix(s.dir, "examples/") {
			continue
		}
		want := fmt.Sprintf("Package %s ", s.file.Name.Name)
		if s.file.Name.Name == "main" {
			want = "Stave "
		}
		if doc, seen := said[s.dir]; seen && doc == "reported" {
			continue
		} else if !strings.HasPrefix(doc, want) {
			t.Errorf("%s: the comment of the package begins %.40q, not with %q", s.dir, doc, want)
			said[s.dir] = "reported"
		}
	}
}

// TestWhereIs: the files that docs/WHERE.md sends a reader to declare the names of its table.
func TestWhereIs(t *testing.T) {
	declared := map[string]map[string]bool{}
	for _, s := range sources(t) {
		names := map[string]bool{}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						names[typ.Name.Name] = true
					}
				}
			}
		}
		declared[s.name] = names
	}
	rows := regexp.MustCompile("(?m)^\\| .* \\| `([^`]+\\.go)` \\| `(\\w+)` \\|$").FindAllStringSubmatch(pages(t)["docs/WHERE.md"], -1)
	if len(rows) < 20 {
		t.Errorf("%d rows found", len(rows))
	}
	for _, row := range rows {
		if !declared[row[1]][row[2]] {
			t.Errorf("%s does not declare %s", row[1], row[2])
		}
	}
}
