package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// kindsHome is the package whose table says what the others ask of a kind of record.
const kindsHome = "bitcask/internal/format"

// TestNobodyComparesKinds: what the rest of the store needs to know of a kind of record is in its row of package format,
// so that a new kind is a row and what writes it. Nothing else may switch on kinds, or compare one with a constant.
func TestNobodyComparesKinds(t *testing.T) {
	written := 0
	for _, s := range sources(t) {
		if dir := path.Dir(s.name); s.test() || dir == kindsHome || dir != "bitcask" && !strings.HasPrefix(dir, "bitcask/") {
			continue
		}
		for _, at := range comparedKinds(s.file) {
			t.Errorf("%s compares a kind of record with a constant: ask its row (%s/kind.go)", s.fset.Position(at), kindsHome)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && isKind(e) {
				written++
			}
			return true
		})
	}
	if written < 20 {
		t.Errorf("only %d uses of kinds: is the pattern right?", written)
	}
}

// isKind reports whether an expression is the constant of a kind of record.
func isKind(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	if sel, is := e.(*ast.SelectorExpr); is {
		pkg, _ := sel.X.(*ast.Ident)
		name, ok = sel.Sel, pkg != nil && (pkg.Name == "format" || pkg.Name == "bitcask")
	}
	return ok && len(name.Name) > len("Kind") && strings.HasPrefix(name.Name, "Kind")
}

// comparedKinds is where a file compares something with the constant of a kind.
func comparedKinds(file *ast.File) (list []token.Pos) {
	note := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if isKind(e) {
				list = append(list, e.Pos())
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			note(n.List...)
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				note(n.X, n.Y)
			}
		}
		return true
	})
	return list
}

func TestComparedKindsAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func f(k format.Kind) bool {
	switch k {
	case format.KindString, KindElement:
	case jsontext.KindString:
	}
	add(format.KindMeta)
	return k == bitcask.KindOrder || KindBound != k || k.Kind == q.Kind
}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := comparedKinds(file); len(found) != 4 {
		t.Errorf("found %d comparisons, not 4", len(found))
	}
}
