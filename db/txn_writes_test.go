package db_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// untold are the writes that replicas are told of by others.
var untold = map[string]string{
	"(*db.txn).Collection": "what becomes the first element",
}

// elsewhere are the functions outside txn.go that call what adds records to the log, and which these are. Whoever has to
// know of every change takes notice of the first three; the others change nothing that a store holds.
var elsewhere = map[string]string{
	"(*db.Store).flush":   "the map of namespaces: FLUSHDB and FLUSHALL",
	"(*db.Store).Swap":    "the map of namespaces: SWAPDB",
	"(*db.Tx).putLibrary": "libraries of functions",

	"(*db.Store).flushWith":  "the map of namespaces, and where a replica stands",
	"(*db.Store).swapWith":   "the same",
	"(*db.Store).install":    "the same, and libraries of functions",
	"db.putInstalled":        "the same",
	"(*db.Store).dropLoaded": "the map of namespaces, of what nobody sees",

	"(*db.Tx).commit":             "Commit adds the counts of collections that have changed, and tombstones of those that txn has emptied",
	"(*db.Tx).putOrigin":          "where a replica stands",
	"(*db.Store).keepOrigin":      "the same",
	"(*db.Store).setMember":       "what the store is in a group",
	"(*db.Store).noteReplica":     "whose replica the store is, and where it stands",
	"(*db.Store).beginLoading":    "that a replica loads",
	"(*db.core).putClock":         "the clock",
	"(*db.Store).forgetShown":     "the clock",
	"(*db.core).openBase":         "Open and Close note the history of the directory",
	"db.Open":                     "the same",
	"(*db.Store).close":           "the same",
	"(*db.Store).snapshotAt":      "the same, of a copy",
	"(*db.Store).follow":          "the same, of a store that another one replaces",
	"cli.runTail":                 "the same: a feed is read from a store of its own",
	"(*db.Store).Check":           "the same: it may open the directory once more, to read",
	"(*db.Store).CheckReplay":     "the same",
	"(*db.Store).keepReplication": "where the stream for replicas is",
	"(*db.Store).takeReplication": "the same",
}

// TestEveryWriteOfAKeyPassesTxn: what adds records to the log is called by methods of txn in txn.go, which is where
// effects are recorded, and by the functions of elsewhere. The methods are found by their calls, not by their names: no
// new one escapes. Each of those writes captures what it amounts to.
func TestEveryWriteOfAKeyPassesTxn(t *testing.T) {
	m := loadModule(t)
	engine := m.check(t, m.path+"/bitcask")
	adds := engine.callersOf("(*" + m.path + "/bitcask.Tx).addRecord")
	if len(adds) < 20 {
		t.Fatalf("%d functions of bitcask add records", len(adds))
	}
	found, captured := map[string]string{}, map[string]bool{}
	for _, p := range m.importing(m.path + "/bitcask") {
		if strings.HasPrefix(p, m.path+"/internal/test/") {
			continue // only tests use them
		}
		c := m.check(t, p)
		for caller, callees := range c.calls {
			for callee := range callees {
				if !adds[callee] {
					continue
				}
				name, method := strings.ReplaceAll(caller, m.path+"/", ""), callee[strings.LastIndex(callee, ".")+1:]
				if strings.HasPrefix(name, "(*db.txn).") && c.files[caller] == "txn.go" {
					captured[caller] = true
					continue
				}
				found[name] += " " + method
			}
		}
	}
	for _, name := range []string{"(*db.Store).flush", "(*db.Store).Swap", "(*db.Tx).putLibrary"} {
		captured[strings.Replace(name, "db.", m.path+"/db.", 1)] = true
	}
	c := m.check(t, m.path+"/db")
	adding, joining := c.callersOf("(*"+m.path+"/internal/effects.Effects).Add"), c.callersOf("(*"+m.path+"/internal/effects.Effects).Join")
	for caller := range captured {
		if name := strings.ReplaceAll(caller, m.path+"/", ""); !adding[caller] && !joining[caller] && untold[name] == "" {
			t.Errorf("%s writes, and says nothing of it to replicas", name)
		}
	}
	for name, callees := range found {
		if elsewhere[name] == "" {
			t.Errorf("%s calls%s, which adds records to the log", name, callees)
		}
	}
	for name := range elsewhere {
		if found[name] == "" {
			t.Errorf("%s adds no record", name)
		}
	}
}

// module is the packages of this module, by import path.
type module struct {
	path     string
	packages map[string]listedPackage
	fset     *token.FileSet
	exports  types.Importer
}

// listedPackage is what go list says of one.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
	Module                  *struct{ Path string }
}

func loadModule(t *testing.T) *module {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports,Module", "./...")
	list.Dir, list.Stderr = "..", os.Stderr
	out := ok[[]byte](t)(list.Output())
	m := &module{packages: map[string]listedPackage{}, fset: token.NewFileSet()}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		err := d.Decode(&p)
		if err == io.EOF {
			break
		}
		must(t, err)
		m.packages[p.ImportPath] = p
		if strings.HasSuffix(p.ImportPath, "/stave/db") {
			m.path = strings.TrimSuffix(p.ImportPath, "/db")
		}
	}
	m.exports = importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(m.packages[path].Export) })
	return m
}

// importing lists the packages that import one.
func (m *module) importing(path string) (list []string) {
	for p, of := range m.packages {
		if of.Module != nil && of.Module.Path == m.path && slices.Contains(of.Imports, path) && !strings.HasPrefix(p, path+"/") {
			list = append(list, p)
		}
	}
	return list
}

// checked is what the functions of a package refer to, by full name, and in which files they are.
type checked struct {
	calls map[string]map[string]bool
	files map[string]string
}

func (m *module) check(t *testing.T, path string) *checked {
	t.Helper()
	p := m.packages[path]
	var files []*ast.File
	for _, name := range p.GoFiles {
		files = append(files, ok[*ast.File](t)(parser.ParseFile(m.fset, filepath.Join(p.Dir, name), nil, 0)))
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	ok[*types.Package](t)((&types.Config{Importer: m.exports}).Check(path, m.fset, files, info))
	c := &checked{calls: map[string]map[string]bool{}, files: map[string]string{}}
	for _, file := range files {
		for _, decl := range file.Decls {
			caller := path // outside of functions
			if f, is := decl.(*ast.FuncDecl); is {
				caller = info.Defs[f.Name].(*types.Func).FullName()
			}
			c.files[caller] = filepath.Base(m.fset.Position(decl.Pos()).Filename)
			ast.Inspect(decl, func(n ast.Node) bool {
				if id, is := n.(*ast.Ident); is {
					if f, is := info.Uses[id].(*types.Func); is {
						if c.calls[caller] == nil {
							c.calls[caller] = map[string]bool{}
						}
						c.calls[caller][f.Origin().FullName()] = true
					}
				}
				return true
			})
		}
	}
	return c
}

// callersOf are all functions from which a call leads to one.
func (c *checked) callersOf(name string) map[string]bool {
	all := map[string]bool{name: true}
	for more := true; more; {
		more = false
		for caller, callees := range c.calls {
			for callee := range callees {
				if all[callee] && !all[caller] {
					all[caller], more = true, true
				}
			}
		}
	}
	return all
}
