package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// MaxSource is the length of the longest source text in bytes. It bounds the memory and the recursion of the compiler.
const MaxSource = 1 << 20

// ErrSourceTooLarge is returned by Compile for a source above MaxSource.
var ErrSourceTooLarge = fmt.Errorf("the script is larger than %d bytes", MaxSource)

// Program is a compiled script. It may be run by any machine, also by several at the same time.
type Program struct {
	Source string
	SHA    string // SHA-1 of the source in hexadecimal, which names it
	Flags  Flags
	// Declared is whether there is a first line with flags: otherwise all but NoWrites hold, as before Redis 7.
	Declared bool
	// Words are the short strings of the source, in lower case: the commands that it calls are among them, unless
	// their names are put together at run time.
	Words map[string]struct{}

	proto *lua.FunctionProto
	size  int // of proto
}

// SHA returns the name of a source text.
func SHA(source string) string {
	h := sha1.New()
	for ; len(source) > portion; source = source[portion:] {
		io.WriteString(h, source[:portion])
		runtime.Gosched()
	}
	io.WriteString(h, source)
	return hex.EncodeToString(h.Sum(nil))
}

// Compile compiles a source text, whose name in errors is chunk, such as "user_script". A wrong text is an error as
// C's compiler words it: chunk, line, message.
func Compile(source, chunk string) (*Program, error) {
	b, err := ParseShebang(source)
	if err != nil {
		return nil, err
	}
	p := &Program{Source: source, SHA: SHA(source), Declared: b.Length > 0, Words: map[string]struct{}{}}
	p.proto, err = compile(source[b.Length:], chunk, p.Words)
	if err != nil {
		return nil, err
	}
	p.size = trim(p.proto)
	return p, nil
}

// compile makes a prototype of a source without a first line for the shell. words, unless nil, takes its short strings.
func compile(source, chunk string, words map[string]struct{}) (proto *lua.FunctionProto, err error) {
	if len(source) > MaxSource {
		return nil, ErrSourceTooLarge
	}
	defer func() {
		if p := recover(); p != nil { // the parser and the compiler use panics; some reach their callers
			proto, err = nil, fmt.Errorf("%s: the script cannot be compiled: %v", chunk, p)
		}
	}()
	if strings.HasPrefix(source, "\x1b") {
		return nil, fmt.Errorf("%s: compiled code is not accepted", chunk)
	}
	tree, err := parse.Parse(strings.NewReader(source), chunk)
	if err != nil {
		return nil, syntaxError(err, chunk, strings.Count(source, "\n")+1)
	}
	if err := rewriteChunk(tree, chunk, words); err != nil {
		return nil, err
	}
	proto, err = lua.Compile(tree, chunk)
	if err != nil {
		var failed *lua.CompileError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%s:%d: %s", chunk, failed.Line, failed.Message)
		}
		return nil, err
	}
	bindConstants(proto)
	proto.IsVarArg &^= lua.VarArgNeedsArg // a chunk has no name for the table arg, and making it took a tenth of a short run
	return proto, nil
}

// syntaxError words an error of the parser as C's does.
func syntaxError(err error, chunk string, lines int) error {
	var failed *parse.Error
	if !errors.As(err, &failed) {
		return err
	}
	near := failed.Token
	line := failed.Pos.Line
	if line == parse.EOF || near == "" {
		line, near = lines, "<eof>"
	}
	message := failed.Message
	if message == "syntax error" || message == "parse error" {
		message = "unexpected symbol"
	}
	return fmt.Errorf("%s:%d: %s near '%s'", chunk, line, message, near)
}

// maxDepth bounds how deep expressions and blocks may nest: the compiler is recursive.
const maxDepth = 2000

// rewriter changes a tree before it is compiled: see the package comment.
type rewriter struct {
	chunk string
	words map[string]struct{}
	depth int
	work  work
	err   error
}

// enter counts a level, and reports whether there may be one more.
func (r *rewriter) enter(at ast.PositionHolder) bool {
	r.depth++
	r.take(at, r.depth)
	if r.depth > maxDepth && r.err == nil {
		r.err = fmt.Errorf("%s:%d: chunk has too many syntax levels", r.chunk, at.Line())
	}
	return r.err == nil
}
