package db_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAliasesNameTheirFields reads the comments of types that db has from package structures: go doc shows nothing else
// of their fields.
func TestAliasesNameTheirFields(t *testing.T) {
	fields := map[string][]string{}
	for _, d := range packageOf(t, "../structures").Types {
		spec := d.Decl.Specs[0].(*ast.TypeSpec)
		if s, ok := spec.Type.(*ast.StructType); ok {
			fields[d.Name] = []string{}
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					fields[d.Name] = append(fields[d.Name], name.Name)
				}
			}
		}
	}
	seen := 0
	for _, d := range packageOf(t, ".").Types {
		spec := d.Decl.Specs[0].(*ast.TypeSpec)
		target, ok := spec.Type.(*ast.SelectorExpr)
		if !ok || !spec.Assign.IsValid() || fields[target.Sel.Name] == nil {
			continue
		}
		seen++
		words := strings.FieldsFunc(d.Doc, func(r rune) bool { return strings.ContainsRune(" ,\n\t", r) })
		for _, name := range fields[target.Sel.Name] {
			found := false
			for _, word := range words {
				found = found || word == name
			}
			if ast.IsExported(name) && !found {
				t.Errorf("the comment of %s does not name the field %s", d.Name, name)
			}
		}
	}
	if seen < 15 {
		t.Errorf("%d aliases of structs were found", seen)
	}
}

// belowDB are constants that no program meets: types of what the index has besides keys.
var belowDB = []string{"keydir.Deadline", "keydir.FieldDeadlines", "keydir.Chunks", "keydir.StreamGroups"}

// TestAliasesHaveTheirConstants: what a type that db has from another package can be is a name of db, too, and a program
// needs no second import for it.
func TestAliasesHaveTheirConstants(t *testing.T) {
	have, seen := map[string]bool{}, 0 // "structures.EventSet", where db has a name for it
	db := packageOf(t, ".")
	named := func(list []*doc.Value) {
		for _, v := range list {
			for _, spec := range v.Decl.Specs {
				for _, value := range spec.(*ast.ValueSpec).Values {
					if s, ok := value.(*ast.SelectorExpr); ok {
						have[s.X.(*ast.Ident).Name+"."+s.Sel.Name] = true
					}
				}
			}
		}
	}
	named(db.Consts)
	for _, d := range db.Types {
		named(d.Consts)
	}
	for name, dir := range map[string]string{"structures": "../structures", "bitcask": "../bitcask", "keydir": "../keydir", "merge": "../merge"} {
		other := map[string]*doc.Type{}
		for _, d := range packageOf(t, dir).Types {
			other[d.Name] = d
		}
		for _, d := range db.Types {
			spec := d.Decl.Specs[0].(*ast.TypeSpec)
			target, ok := spec.Type.(*ast.SelectorExpr)
			if !ok || !spec.Assign.IsValid() || target.X.(*ast.Ident).Name != name || other[target.Sel.Name] == nil {
				continue
			}
			for _, v := range other[target.Sel.Name].Consts {
				for _, constant := range v.Names {
					if seen++; ast.IsExported(constant) && !have[name+"."+constant] && !slices.Contains(belowDB, name+"."+constant) {
						t.Errorf("%s: db has no name for %s.%s", d.Name, name, constant)
					}
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d constants were found", seen)
	}
}

func packageOf(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.go")
	must(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		must(t, err)
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, "x")
	must(t, err)
	return p
}
