// Package lint holds the project's own rules about its source, as tests: which packages import which, which touch
// files, and how long files and functions may be. CONTRIBUTING.md and ARCHITECTURE.md state the rules; here they are
// kept.
package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the import path of the repository's root.
const module = "github.com/stavedb/stave"

// embedded are the packages that a program links for an embedded store.
var embedded = []string{"keydir", "bitcask", "merge", "ttl", "structures", "db", "codec"}

// embeddedModules are the modules that they may need besides the standard library, themselves
// included.
var embeddedModules = []string{
	module, "github.com/google/btree", "github.com/klauspost/crc32", "github.com/fsnotify/fsnotify", "golang.org/x/sys",
}

// mayImport lists for each package outside internal the packages of this module it may import. internal/vfs is listed
// like any other, for it stands for touching files; the other internal packages are free to all, within
// TestEmbeddedDependencies.
var mayImport = map[string][]string{
	"keydir":     {},
	"bitcask":    {"keydir", "internal/vfs"},
	"merge":      {"bitcask", "keydir"},
	"ttl":        {"internal/vfs"},
	"structures": {"keydir"},
	"db":         {"structures", "ttl", "merge", "bitcask", "keydir", "internal/vfs"},
	"codec":      {"db"},
	"jsonl":      {"db"},
	"redisfile":  {"db", "structures"},
	"server":     {"db", "structures"},
	"cli":        {"server", "jsonl", "redisfile", "db", "structures", "ttl", "merge", "bitcask", "internal/vfs"},
	".":          {"cli"},
	"examples":   {"codec", "jsonl", "redisfile", "db", "structures", "ttl", "merge", "bitcask", "keydir"}, // Imports of a user's program.

	// A room of a package: the package may import it, it may not import the package.
	"server/command": {"db", "structures"},
	"server/conf":    {},
	"server/acl":     {"server/command", "structures"},
	"server/script":  {},

	"cli/internal/humanize":   {},
	"cli/internal/terminal":   {"cli/internal/humanize", "jsonl"},
	"cli/internal/history":    {"cli/internal/terminal", "jsonl"},
	"cli/internal/benchmark":  {"cli/internal/humanize", "db"},
	"cli/internal/execute":    {"server"},
	"cli/internal/fileimport": {"cli/internal/execute", "cli/internal/humanize", "cli/internal/terminal", "db", "jsonl", "redisfile", "server"},
	"cli/internal/remote":     {},
	"cli/internal/transfer":   {"cli/internal/execute", "cli/internal/humanize", "cli/internal/remote", "db", "jsonl", "server", "structures"},
	"cli/internal/inspect":    {"cli/internal/humanize", "cli/internal/terminal", "db"},

	// The rooms of the server, from the lowest on: none may import one above it. They share the leaves below.
	"server/internal/clients":   roomsOfServer(),
	"server/internal/shared":    roomsOfServer("clients"),
	"server/internal/dispatch":  roomsOfServer("clients", "shared"),
	"server/internal/scripting": append(roomsOfServer("clients", "shared"), "server/script"),
	"server/internal/admin":     roomsOfServer("clients", "shared"),
	"server/internal/session":   roomsOfServer("clients", "shared", "dispatch", "scripting", "replication"),
	"server/internal/transport": roomsOfServer("clients", "shared", "session", "replication"),

	"server/internal/cluster":     {"db", "server/command"},
	"server/internal/debug":       {"db", "server/command", "server/internal/digest"},
	"server/internal/digest":      {"db"},
	"server/internal/gate":        {},
	"server/internal/introspect":  {"server/command"},
	"server/internal/latency":     {"server/command"},
	"server/internal/member":      roomsOfServer("clients", "shared"),
	"server/internal/listeners":   {"server/command", "server/internal/settings", "server/internal/socket"},
	"server/internal/redact":      {"server/command"},
	"server/internal/replication": {"db", "redisfile", "server/internal/gate"},
	"server/internal/settings":    {"server/command", "server/conf", "server/internal/socket"},
	"server/internal/slowlog":     {"server/command"},
	"server/internal/stats":       {"db", "server/command", "server/internal/latency", "server/internal/replication", "server/internal/slowlog", "server/internal/tracking"},
	"server/internal/web":         {"db", "server/internal/redact", "server/internal/socket"},

	"bitcask/internal/failure":   {},
	"bitcask/internal/system":    {"keydir"},
	"bitcask/internal/kway":      {},
	"bitcask/internal/history":   {"bitcask/internal/failure"},
	"bitcask/internal/files":     {"bitcask/internal/failure", "internal/vfs"},
	"bitcask/internal/reserve":   {"bitcask/internal/failure", "internal/vfs"},
	"bitcask/internal/format":    {"bitcask/internal/failure", "keydir"},
	"bitcask/internal/locate":    {"bitcask/internal/format", "keydir"},
	"bitcask/internal/namespace": {"bitcask/internal/failure", "bitcask/internal/format", "keydir"},
	"bitcask/internal/segment":   {"bitcask/internal/failure", "bitcask/internal/files", "bitcask/internal/format", "bitcask/internal/reserve", "internal/vfs", "keydir"},
	"bitcask/internal/manifest":  {"bitcask/internal/failure", "bitcask/internal/files", "bitcask/internal/format", "bitcask/internal/reserve", "internal/vfs", "keydir"},
	"bitcask/internal/commitlog": {"bitcask/internal/failure", "bitcask/internal/format", "bitcask/internal/manifest", "bitcask/internal/segment"},
	"bitcask/internal/pins":      {"bitcask/internal/segment"},
	"bitcask/internal/followlog": {
		"bitcask/internal/failure", "bitcask/internal/format", "bitcask/internal/manifest", "bitcask/internal/namespace",
		"bitcask/internal/segment", "internal/vfs", "keydir",
	},
	"bitcask/feed": {
		"bitcask/internal/failure", "bitcask/internal/followlog", "bitcask/internal/format", "bitcask/internal/manifest", "bitcask/internal/namespace",
		"bitcask/internal/segment", "bitcask/internal/system", "internal/vfs", "keydir",
	},
	"bitcask/internal/backup": {
		"bitcask/internal/commitlog", "bitcask/internal/failure", "bitcask/internal/format", "bitcask/internal/manifest", "bitcask/internal/segment", "internal/vfs",
	},
	"bitcask/internal/indexfile": {
		"bitcask/internal/commitlog", "bitcask/internal/failure", "bitcask/internal/format", "bitcask/internal/namespace", "bitcask/internal/segment",
		"bitcask/internal/system", "internal/vfs", "keydir",
	},
	"bitcask/internal/replay": {
		"bitcask/internal/failure", "bitcask/internal/files", "bitcask/internal/format", "bitcask/internal/indexfile", "bitcask/internal/kway",
		"bitcask/internal/locate", "bitcask/internal/manifest", "bitcask/internal/namespace", "bitcask/internal/segment", "internal/vfs", "keydir",
	},
	"bitcask/internal/check": {
		"bitcask/internal/failure", "bitcask/internal/format", "bitcask/internal/indexfile", "bitcask/internal/locate", "bitcask/internal/namespace", "bitcask/internal/segment",
		"bitcask/internal/system", "internal/vfs", "keydir",
	},
	"bitcask/internal/chanmutex": {},
	"bitcask/internal/rewrite": {
		"bitcask/internal/chanmutex", "bitcask/internal/commitlog", "bitcask/internal/failure", "bitcask/internal/format", "bitcask/internal/locate",
		"bitcask/internal/manifest", "bitcask/internal/mergeinput", "bitcask/internal/mergeselect", "bitcask/internal/namespace", "bitcask/internal/pins",
		"bitcask/internal/reserve", "bitcask/internal/segment", "internal/vfs", "keydir",
	},
	// Above the store.
	"bitcask/repair":  {"bitcask", "internal/vfs", "keydir"},
	"bitcask/dump":    {"bitcask", "internal/vfs", "keydir"},
	"bitcask/archive": {"bitcask", "internal/vfs"},
}

// serverLeaves are the packages of the server that know no room: any room may import them.
var serverLeaves = []string{
	"arena", "cluster", "debug", "gate", "introspect", "latency", "listeners", "pubsub", "redact", "replication", "settings", "slowlog", "socket", "stats", "tracking", "web",
}

// roomsOfServer is what a room of the server may import: the rooms below it, and the leaves.
func roomsOfServer(below ...string) []string {
	may := []string{"db", "structures", "server/command", "server/acl", "server/conf"}
	for _, name := range slices.Concat(serverLeaves, below) {
		may = append(may, "server/internal/"+name)
	}
	return may
}

// maxMethods is how many methods a type of the server may have, but for those that are listed.
const maxMethods = 45

// manyMethods are types that have more: what a handler may do, by which the handlers of keys read as sentences.
var manyMethods = []string{"server/command.Call", "server/script.machine"}

// TestServerTypesAreSmall: a type of the server or of a room of it has few methods, so that its state is one thing.
func TestServerTypesAreSmall(t *testing.T) {
	for dir, p := range measure(t, moduleRoot(t)) {
		if !within(dir, []string{"server"}) {
			continue
		}
		for name, n := range p.methods {
			if n > maxMethods && !slices.Contains(manyMethods, dir+"."+name) {
				t.Errorf("%s.%s has %d methods, the limit is %d: group its state into types of its own", dir, name, n, maxMethods)
			}
		}
	}
}

// noEmbedded are packages of this module that no embedded package may depend on, however indirectly.
var noEmbedded = []string{"server", "cli", "jsonl", "redisfile", "internal/resp", "internal/test"}

// Limits on size, in lines.
const (
	maxFile     = 500
	maxTestFile = 800
	maxFunction = 70
)

// source is one parsed Go file of the module.
type source struct {
	dir   string // Relative to the root, with slashes; "." for the root.
	name  string // The same with the file's name.
	file  *ast.File
	fset  *token.FileSet
	lines int
	// nested is set within a module of its own (the benchmarks, which import other stores): its imports are its own
	// affair.
	nested bool
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// sources parses every Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	root := moduleRoot(t)
	fset := token.NewFileSet()
	var all []source
	nested := "" // The nested module that the walk was in last, with a separator at its end.
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != root && (base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != root {
			nested = name + string(filepath.Separator)
		}
		if d.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		lines := fset.Position(file.FileEnd).Line - 1 // The file ends at the start of a line that is not there.
		inNested := nested != "" && strings.HasPrefix(name, nested)
		all = append(all, source{dir: path.Dir(rel), name: rel, file: file, fset: fset, lines: lines, nested: inNested})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no Go files in %s", root)
	}
	return all
}

// moduleRoot finds the directory with go.mod above this package.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above this package")
		}
		dir = filepath.Dir(dir)
	}
}

// within reports whether dir is one of the packages or below one.
func within(dir string, packages []string) bool {
	return slices.ContainsFunc(packages, func(p string) bool { return dir == p || strings.HasPrefix(dir, p+"/") })
}

func TestImportsPointOneWay(t *testing.T) {
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.dir, "/")
		if _, room := mayImport[s.dir]; room {
			top = s.dir // A room of a package, which may not import the package.
		}
		if s.test() || s.nested || top == "internal" {
			continue
		}
		allowed, listed := mayImport[top]
		if !listed {
			t.Errorf("%s: package %s has no place in the layers; give it one in mayImport", s.name, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			imported, ours := strings.CutPrefix(importPath(spec), module+"/")
			if !ours || within(imported, []string{top}) || within(imported, allowed) {
				continue
			}
			if strings.HasPrefix(imported, "internal/") && !within(imported, []string{"internal/vfs"}) {
				continue
			}
			t.Errorf("%s: %s must not import %s", s.fset.Position(spec.Pos()), top, imported)
		}
	}
}

// TestEmbeddedDependencies asks the go command what the embedded packages pull in, however indirectly.
func TestEmbeddedDependencies(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	args := []string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}{{end}}"}
	for _, p := range embedded {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = moduleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		pkg, mod := fields[0], fields[1]
		if !slices.Contains(embeddedModules, mod) {
			t.Errorf("the embedded packages pull in %s of module %s", pkg, mod)
		}
		if ours, ok := strings.CutPrefix(pkg, module+"/"); ok && within(ours, noEmbedded) {
			t.Errorf("the embedded packages pull in %s", pkg)
		}
	}
}

// notFiles are the names of package os that touch no file: the embedded packages may use these and no others.
var notFiles = []string{
	"Args", "ErrClosed", "ErrDeadlineExceeded", "ErrExist", "ErrInvalid", "ErrNotExist", "ErrPermission", "Getenv", "Getpagesize",
	"Getpid", "LinkError", "LookupEnv", "PathError", "SyscallError",
}

// fileNames are the functions of the packages other than os through which one could get around internal/vfs.
var fileNames = map[string][]string{
	"io/ioutil":     nil, // All of it.
	"os/exec":       nil,
	"path/filepath": {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"syscall":       systemCalls,
	unixPackage:     systemCalls,
}

const unixPackage = "golang.org/x/sys/unix"

var systemCalls = []string{
	"Access", "Chmod", "Close", "Copy_file_range", "CopyFileRange", "Creat", "Dup", "Faccessat", "Fallocate", "Fchmod", "Fcntl", "FcntlFlock", "Fdatasync",
	"Flock", "Fstat", "Fstatat", "Fsync", "Ftruncate", "Getdents", "Ioctl", "Link", "Linkat", "Lstat", "Mkdir", "Mkdirat", "Mmap",
	"MmapPtr", "Munmap", "Open", "Openat", "Openat2", "Pread", "Preadv", "Pwrite", "Pwritev", "RawSyscall", "RawSyscall6", "Read", "ReadDirent",
	"Readlink", "Readv", "Rename", "Renameat", "Renameat2", "Rmdir", "Seek", "Sendfile", "Stat", "Statfs", "Symlink", "Sync",
	"SyncFileRange", "Syncfs", "Syscall", "Syscall6", "Truncate", "Unlink", "Unlinkat", "Write", "Writev",
}

// atFiles are the packages below internal that may touch files. internal/test/leak is for tests only, and asks the
// kernel what internal/vfs has left open; internal/test/golden has the files of tests; internal/test/redisserver starts
// another program; internal/test/frameworks and clients are programs, and modules of their own.
var atFiles = []string{"internal/vfs", "internal/test/leak", "internal/test/golden", "internal/test/redisserver", "internal/test/frameworks", "internal/test/clients"}

// TestFilesOnlyThroughVFS keeps the one seam at which every fault can be injected: a file opened past it is not tested.
func TestFilesOnlyThroughVFS(t *testing.T) {
	for _, s := range sources(t) {
		inside := within(s.dir, embedded) || strings.HasPrefix(s.dir, "internal/") && !slices.Contains(atFiles, s.dir)
		if s.test() || !inside {
			continue
		}
		for _, use := range fileUses(s.file) {
			t.Errorf("%s: %s goes around internal/vfs", s.fset.Position(use.Pos()), use.name)
		}
	}
}

type use struct {
	ast.Node
	name string
}

// fileUses returns the uses in a file of names that touch files.
func fileUses(file *ast.File) (uses []use) {
	packages := map[string]string{} // Import path by the name it has in this file.
	for _, spec := range file.Imports {
		p := importPath(spec)
		banned, known := fileNames[p]
		if p != "os" && !known {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." || known && banned == nil {
			uses = append(uses, use{spec, p})
		}
		packages[name] = p
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		p, ok := packages[x.Name]
		if ok && (p == "os" && !slices.Contains(notFiles, sel.Sel.Name) || slices.Contains(fileNames[p], sel.Sel.Name)) {
			uses = append(uses, use{sel, x.Name + "." + sel.Sel.Name})
		}
		return true
	})
	return uses
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic("BUG: the parser let through a bad import: " + spec.Path.Value)
	}
	return p
}

// TestFileUsesAreFound proves that the rule has teeth.
func TestFileUsesAreFound(t *testing.T) {
	const text = `package p
import ("os"; sys "golang.org/x/sys/unix"; "path/filepath"; . "os"; "io/ioutil"; "syscall")
var _ = os.Getpid()
func f() {
	open := os.Open
	_, _ = open("x")
	sys.Openat(0, "", 0, 0)
	var _ *os.File
	_ = filepath.Join("a", "b")
	filepath.Walk("", nil)
	_ = syscall.ENOSPC
	sys.Madvise(nil, 0)
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, u := range fileUses(file) {
		got = append(got, u.name)
	}
	want := []string{"os", "io/ioutil", "os.Open", "sys.Openat", "os.File", "filepath.Walk"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, s := range sources(t) {
		limit := maxFile
		if s.test() {
			limit = maxTestFile
		}
		if s.lines > limit {
			t.Errorf("%s has %d lines, the limit is %d: split it by noun where there are two", s.name, s.lines, limit)
		}
		if s.test() {
			continue
		}
		for _, over := range longFunctions(s.fset, s.file) {
			t.Error(over)
		}
	}
}

func longFunctions(fset *token.FileSet, file *ast.File) (over []string) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start := fset.Position(fn.Type.Func) // Not fn.Pos: the doc comment does not count.
		if lines := fset.Position(fn.End()).Line - start.Line + 1; lines > maxFunction {
			over = append(over, fmt.Sprintf("%s: func %s has %d lines, the limit is %d", start, fn.Name.Name, lines, maxFunction))
		}
	}
	return over
}

// TestLongFunctionsAreFound proves that the rule has teeth and counts as people do.
func TestLongFunctionsAreFound(t *testing.T) {
	for lines, want := range map[int]int{maxFunction: 0, maxFunction + 1: 1} {
		text := "package p\n\n// f\n// f\nfunc f() {" + strings.Repeat("\n", lines-1) + "}\n"
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := longFunctions(fset, file); len(got) != want {
			t.Errorf("a function of %d lines: %q", lines, got)
		}
	}
}
