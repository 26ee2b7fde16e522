package lint

import (
	"go/ast"
	"strings"
	"testing"
)

// seeded are what package math/rand/v2 has that draws nothing by itself.
var seeded = map[string]bool{"New": true, "NewPCG": true, "NewChaCha8": true, "Rand": true, "PCG": true, "ChaCha8": true, "Source": true}

// TestRandomTestsHaveSeeds: what a test draws, it draws from a seed of package chance, which prints it and takes it back.
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
						t.Errorf("%s: rand.%s has a seed that nobody knows: use internal/chance", s.fset.Position(sel.Pos()), sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
