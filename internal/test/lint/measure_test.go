package lint

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var measureRoot = flag.String("measure", "", "TestMeasure: print the sizes of the checkout in this directory (. is this one)")

// sizes are what TestMeasure counts of a package.
type sizes struct {
	files, lines, tests   int // Lines of product and of test files.
	comment               int // Lines that hold nothing but a comment.
	longestFile, longest  int
	longestFn, longestAny string
	methods               map[string]int // By type.
	exported              int            // Exported functions, methods of exported types, types.
	functions             []int          // Lines of each function.
}

// TestMeasure prints how large everything is: `go test ./internal/test/lint -run TestMeasure -v -measure .`, or the
// directory of another checkout in place of the dot. Product is everything but tests, internal/test, bench and
// examples.
func TestMeasure(t *testing.T) {
	if *measureRoot == "" {
		t.Skip("prints, and judges nothing: -measure DIR")
	}
	root := *measureRoot
	if !filepath.IsAbs(root) {
		root = filepath.Join(moduleRoot(t), root)
	}
	packages := measure(t, root)
	fmt.Println("package | files | lines | comment % | largest file | longest function | functions: median, p90 | largest method set | exported | test lines | ratio")
	var product sizes
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		slices.Sort(p.functions)
		median, p90 := 0, 0
		if n := len(p.functions); n > 0 {
			median, p90 = p.functions[n/2], p.functions[n*9/10]
		}
		typ, most := "-", 0
		for name, n := range p.methods {
			if n > most || n == most && name < typ {
				typ, most = name, n
			}
		}
		fmt.Printf("%s | %d | %d | %.0f | %d %s | %d %s | %d, %d | %d %s | %d | %d | %.2f\n", dir, p.files, p.lines, share(p.comment, p.lines), p.longestFile,
			p.longestAny, p.longest, p.longestFn, median, p90, most, typ, p.exported, p.tests, float64(p.tests)/max(1, float64(p.lines)))
		if isProduct(dir) {
			product.files += p.files
			product.lines += p.lines
			product.comment += p.comment
			product.tests += p.tests
		} else if within(dir, forTests) {
			product.tests += p.lines + p.tests
		}
	}
	fmt.Printf("product: %d files, %d lines, %.1f %% comment; tests and what only they use: %d lines, %.2f of it\n", product.files, product.lines,
		share(product.comment, product.lines), product.tests, float64(product.tests)/float64(product.lines))
	printKnots(t, root)
	words := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/appendix/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(root, name)
			n := len(bytes.Fields(written(filepath.ToSlash(rel), text)))
			fmt.Printf("%s: %d words\n", filepath.ToSlash(rel), n)
			words += n
		}
	}
	fmt.Printf("documents: %d words, without generated tables\n", words)
}

// written is the part of a page that somebody has written: the tables of commands, settings and seeded defects are generated.
func written(page string, text []byte) []byte {
	switch page {
	case "docs/appendix/settings.md", "docs/appendix/seeded-bugs.md":
		text, _, _ = bytes.Cut(text, []byte("\n|"))
	case "docs/COMMANDS.md":
		text, _, _ = bytes.Cut(text, []byte("## The command table"))
	}
	return text
}

// TestSizesForReviewers prints the largest packages and the types with the most methods of the product. It judges none of them:
// a bound that is always reached says what was squeezed, not what is clear. Files and functions have bounds (lint_test.go).
func TestSizesForReviewers(t *testing.T) {
	type row struct {
		name string
		n    int
	}
	var packages, types []row
	for dir, p := range measure(t, moduleRoot(t)) {
		if !isProduct(dir) {
			continue
		}
		packages = append(packages, row{dir, p.lines})
		for typ, n := range p.methods {
			types = append(types, row{dir + "." + typ, n})
		}
	}
	for what, rows := range map[string][]row{"lines": packages, "methods": types} {
		slices.SortFunc(rows, func(a, b row) int { return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name)) })
		if len(rows) < 10 {
			t.Fatalf("measured %d rows of %s: the product was not found", len(rows), what)
		}
		for _, r := range rows[:10] {
			t.Logf("%s: %d %s", r.name, r.n, what)
		}
	}
}

// forTests are the directories that only tests use; the last four stand for internal/test in checkouts before it.
var forTests = []string{"internal/test", "internal/crash", "internal/leak", "internal/lint", "internal/seeded"}

// isProduct says whether a directory holds what users run.
func isProduct(dir string) bool {
	return !within(dir, []string{"bench", "examples"}) && !within(dir, forTests)
}

func share(part, whole int) float64 { return 100 * float64(part) / max(1, float64(whole)) }

// measure reads every Go file below root, by directory.
func measure(t *testing.T, root string) map[string]*sizes {
	packages := map[string]*sizes{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != root && (base == "testdata" || strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		if packages[dir] == nil {
			packages[dir] = &sizes{methods: map[string]int{}}
		}
		return packages[dir].add(filepath.Base(rel), text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// add counts one file.
func (p *sizes) add(base string, text []byte) error {
	lines := bytes.Count(text, []byte("\n"))
	if strings.HasSuffix(base, "_test.go") {
		p.tests += lines
		return nil
	}
	p.files++
	p.lines += lines
	p.comment += commentLines(text)
	if lines > p.longestFile {
		p.longestFile, p.longestAny = lines, base
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, base, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			n := fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
			p.functions = append(p.functions, n)
			if n > p.longest {
				p.longest, p.longestFn = n, d.Name.Name
			}
			on := receiver(d)
			if on != "" {
				p.methods[on]++
			}
			if d.Name.IsExported() && (on == "" || ast.IsExported(on)) {
				p.exported++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok && typ.Name.IsExported() {
					p.exported++
				}
			}
		}
	}
	return nil
}

// receiver is the name of the type that a method is of, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	for typ := f.Recv.List[0].Type; ; {
		switch of := typ.(type) {
		case *ast.StarExpr:
			typ = of.X
		case *ast.IndexExpr:
			typ = of.X
		case *ast.IndexListExpr:
			typ = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

// commentLines counts the lines of a file that hold nothing but a comment.
func commentLines(text []byte) int {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	code, comment := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		first := file.Line(pos)
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		for n := first; n <= first+strings.Count(lit, "\n"); n++ {
			if tok == token.COMMENT {
				comment[n] = true
			} else {
				code[n] = true
			}
		}
	}
	n := 0
	for line := range comment {
		if !code[line] {
			n++
		}
	}
	return n
}
