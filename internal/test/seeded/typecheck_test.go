package seeded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// checker type-checks packages of the module with some files changed. That finds what does not compile, such as an import
// that the bug leaves unused, without a build for each bug. It sees the files that are compiled on this system, and no
// tests.
type checker struct {
	fset     *token.FileSet
	importer types.Importer
	packages map[string]listed // by directory
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	list.Dir = root
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{fset: token.NewFileSet(), packages: map[string]listed{}}
	exports := map[string]string{} // files, by import path
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		c.packages[p.Dir] = p
		exports[p.ImportPath] = p.Export
	}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// check checks the packages of the changed files, which are given by path from the root of the module.
func (c *checker) check(changed map[string]string) error {
	texts := map[string]string{} // by absolute path
	dirs := map[string]bool{}
	for name, text := range changed {
		path, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			return err
		}
		texts[path] = text
		dirs[filepath.Dir(path)] = true
	}
	var errs []error
	for dir := range dirs {
		errs = append(errs, c.checkPackage(c.packages[dir], texts))
	}
	return errors.Join(errs...)
}

func (c *checker) checkPackage(p listed, texts map[string]string) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		var source any // nil: the file itself
		if text, ok := texts[path]; ok {
			source = text
			delete(texts, path)
		}
		file, err := parser.ParseFile(c.fset, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	for path := range texts {
		if filepath.Dir(path) == p.Dir {
			return fmt.Errorf("%s is not a file that is compiled here", path)
		}
	}
	_, err := (&types.Config{Importer: c.importer}).Check(p.ImportPath, c.fset, files, nil)
	return err
}
