package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// arrows counts which files of a directory use what another one declares, and how many of these arrows point back up in an order of
// the files that has few such: that of Eades, Lin and Smyth (A fast and effective heuristic for the feedback arc set problem, 1993).
// It goes by names: a method counts where only one type of the package has it.
func arrows(t *testing.T, dir string) (all, back int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	files := make([]*ast.File, len(names))
	declared := map[string][]int{} // By name, methods with a dot before theirs.
	for i, name := range names {
		if files[i], err = parser.ParseFile(token.NewFileSet(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
		for _, name := range declarations(files[i]) {
			declared[name] = append(declared[name], i)
		}
	}
	uses := make([]map[int]bool, len(files))
	for i, file := range files {
		uses[i] = map[int]bool{}
		note := func(name string) {
			if at := declared[name]; len(at) == 1 && at[0] != i {
				uses[i][at[0]] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				note("." + n.Sel.Name)
			case *ast.Ident:
				note(n.Name)
			}
			return true
		})
		all += len(uses[i])
	}
	return all, backArrows(uses)
}

// declarations are the names that a file declares for its package.
func declarations(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				names = append(names, "."+d.Name.Name)
			} else {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// backArrows puts the nodes in order, sinks last, sources first, and of the rest that with the most arrows out and the fewest in, and counts the
// arrows that point to an earlier one.
func backArrows(uses []map[int]bool) (back int) {
	left := map[int]bool{}
	for i := range uses {
		left[i] = true
	}
	degrees := func(i int) (out, in int) {
		for j := range left {
			if uses[i][j] {
				out++
			}
			if uses[j][i] {
				in++
			}
		}
		return out, in
	}
	var first, last []int
	for len(left) > 0 {
		best, most, isSink := -1, 0, false
		for i := range uses {
			if !left[i] {
				continue
			}
			out, in := degrees(i)
			if out == 0 {
				best, isSink = i, true
				break
			}
			if in == 0 {
				out += len(uses)
			}
			if best < 0 || out-in > most {
				best, most = i, out-in
			}
		}
		delete(left, best)
		if isSink {
			last = append(last, best)
		} else {
			first = append(first, best)
		}
	}
	slices.Reverse(last)
	place := make([]int, len(uses))
	for n, i := range append(first, last...) {
		place[i] = n
	}
	for i := range uses {
		for j := range uses[i] {
			if place[j] < place[i] {
				back++
			}
		}
	}
	return back
}

// TestArrows: two files that use each other have one arrow back, a chain none.
func TestArrows(t *testing.T) {
	for _, c := range []struct {
		uses []map[int]bool
		back int
	}{
		{[]map[int]bool{{1: true}, {2: true}, {}}, 0},
		{[]map[int]bool{{1: true}, {0: true}}, 1},
		{[]map[int]bool{{1: true}, {2: true}, {0: true}}, 1},
		{[]map[int]bool{{1: true, 2: true}, {0: true, 2: true}, {3: true}, {2: true}}, 2},
	} {
		if got := backArrows(c.uses); got != c.back {
			t.Errorf("%v: %d arrows back, want %d", c.uses, got, c.back)
		}
	}
}

// kindNames are the constants for kinds of records, as files of other packages name them.
var kindNames = regexp.MustCompile(`\bformat\.Kind[A-Z]\w*`)

// printKnots prints what TestMeasure says of a checkout's knots: arrows of files, and files that know kinds of records.
func printKnots(t *testing.T, root string) {
	for _, dir := range []string{"server", "bitcask", "db", "structures", "cli"} {
		all, back := arrows(t, filepath.Join(root, dir))
		fmt.Printf("%s: %d arrows between its files, %d back up\n", dir, all, back)
	}
	rooms, err := filepath.Glob(filepath.Join(root, "server", "internal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		if all, back := arrows(t, room); all >= 20 {
			rel, _ := filepath.Rel(root, room)
			fmt.Printf("%s: %d arrows between its files, %d back up\n", filepath.ToSlash(rel), all, back)
		}
	}
	knowing := 0
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if kindNames.Match(text) {
			knowing++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%d product files outside bitcask/internal/format name a kind of record\n", knowing)
}
