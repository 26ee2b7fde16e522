package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// seeded are what package math/rand/v2 has that draws nothing by itself.
var seeded = map[string]bool{"New": true, "NewPCG": true, "NewChaCha8": true, "Rand": true, "PCG": true, "ChaCha8": true, "Source": true}

// TestRandomTestsHaveSeeds: a test draws only from a seed of package chance, which prints it and accepts it by a flag.
func TestRandomTestsHaveSeeds(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() || s.nested || strings.HasSuffix(s.name, "bench_test.go") {
			continue
		}
		for _, spec := range s.file.Imports {
			if importPath(spec) == "math/rand" {
				t.Errorf("%s imports math/rand: version 2 has no seed of its own", s.name)
			}
			if importPath(spec) != "math/rand/v2" {
				continue
			}
			name := "rand"
			if spec.Name != nil {
				name = spec.Name.Name
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && !seeded[sel.Sel.Name] {
					if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == name {
						t.Errorf("%s: rand.%s has a seed that nobody knows: use internal/test/chance", s.fset.Position(sel.Pos()), sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// TestChanceRunsEveryRandomTest: .ci/chance, which runs random tests with many seeds, knows all of them.
func TestChanceRunsEveryRandomTest(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(moduleRoot(t), ".ci", "chance"))
	if err != nil {
		t.Fatal(err)
	}
	run := map[string][]*regexp.Regexp{} // by package
	for _, m := range regexp.MustCompile(`(?m)^run (\S+) '(.*)'`).FindAllStringSubmatch(string(script), -1) {
		run[m[1]] = append(run[m[1]], regexp.MustCompile("^("+m[2]+")$"))
	}
	for _, s := range sources(t) {
		if !s.test() || s.nested || s.dir == "internal/test/seeded" || s.dir == "internal/test/lint" {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || !draws(f) {
				continue
			}
			known := false
			for _, re := range run[s.dir] {
				known = known || re.MatchString(f.Name.Name)
			}
			if !known {
				t.Errorf("%s: %s draws at random and .ci/chance does not run it", s.name, f.Name.Name)
			}
		}
	}
}

// draws says whether a function takes a seed from package chance.
func draws(f *ast.FuncDecl) (yes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			pkg, ok := sel.X.(*ast.Ident)
			yes = yes || ok && pkg.Name == "chance"
		}
		return true
	})
	return yes
}
