package script

import (
	"fmt"
	"math"

	"github.com/yuin/gopher-lua/ast"
)

// The compiler looks for each constant, variable and label in a list, and folds constants anew at each level of an
// expression, so a source of a megabyte could keep it busy for minutes. It cannot be interrupted. So the rewriter, which
// sees all of the source before, counts the steps that the compiler will take, and refuses what takes too many.

// maxWork is how many steps the compiler may take, each of some nanoseconds: half a second, about.
const maxWork = 100_000_000

// functionWork is how many it takes to begin a function: it makes room for a thousand instructions.
const functionWork = 10_000

// gotoWork is how many steps it takes to look whether a goto has found its label.
const gotoWork = 8

// work is what the rewriter counts.
type work struct {
	steps   int
	visible int                  // local variables in scope, of the enclosing functions too
	idents  int                  // uses of variables so far
	gotos   int                  // of the function so far
	begun   int                  // gotos when the innermost block began
	folded  map[ast.Expr]float64 // expressions that the compiler makes constants of

	constants map[any]int // of the function: where in its list they are
}

// take counts steps.
func (r *rewriter) take(at ast.PositionHolder, steps int) {
	if r.work.steps += steps; r.work.steps > maxWork && r.err == nil {
		r.err = fmt.Errorf("%s:%d: the script is too complex to be compiled: it has too many constants, variables or labels in one function, or too deep expressions", r.chunk, at.Line())
	}
}

// constant counts a use of a constant. Of NaN each use is another constant, here and for the compiler.
func (r *rewriter) constant(at ast.PositionHolder, value any) {
	i, known := r.work.constants[value]
	if !known {
		i = len(r.work.constants)
		r.work.constants[value] = i
	}
	r.take(at, i)
}

// fold notes that an expression becomes a constant.
func (r *rewriter) fold(e ast.Expr, value float64) {
	r.work.folded[e] = value
	r.constant(e, value)
}

// foldArithmetic does so if both operands are constants.
func (r *rewriter) foldArithmetic(e *ast.ArithmeticOpExpr) {
	a, isA := r.work.folded[e.Lhs]
	b, isB := r.work.folded[e.Rhs]
	if !isA || !isB {
		return
	}
	switch e.Operator {
	case "+":
		r.fold(e, a+b)
	case "-":
		r.fold(e, a-b)
	case "*":
		r.fold(e, a*b)
	case "/":
		r.fold(e, a/b)
	case "^":
		r.fold(e, math.Pow(a, b))
	}
}

// variable counts the use of a variable, which is a local one, or one of an enclosing function, or a constant that
// names a global one.
func (r *rewriter) variable(e *ast.IdentExpr) {
	r.work.idents++
	r.take(e, r.work.visible)
	r.constant(e, e.Value)
}

// function rewrites a function's body.
func (r *rewriter) function(f *ast.FunctionExpr) {
	outer := r.work
	r.work.gotos, r.work.begun, r.work.constants = 0, 0, map[any]int{}
	r.work.visible += len(f.ParList.Names) + 1
	r.take(f, functionWork)
	r.block(f.Stmts)
	inner := r.work
	r.work = outer
	r.work.steps, r.work.idents = inner.steps, inner.idents
	r.take(f, min(inner.idents-outer.idents, outer.visible)*outer.visible) // what it has of the enclosing ones is looked up in each
}

// block rewrites the statements of a block, whose local variables are in scope until its end.
func (r *rewriter) block(list []ast.Stmt) {
	visible, begun := r.work.visible, r.work.begun
	r.work.begun = r.work.gotos
	labels := 0 // in a row
	for _, stmt := range list {
		if _, is := stmt.(*ast.LabelStmt); is {
			labels++
			r.take(stmt, labels)
		} else {
			labels = 0
		}
		r.stmt(stmt)
	}
	if len(list) > 0 {
		r.take(list[0], gotoWork*(r.work.gotos-r.work.begun))
	}
	r.work.visible, r.work.begun = visible, begun
}

// rewriteChunk rewrites all of a source.
func rewriteChunk(tree []ast.Stmt, chunk string, words map[string]struct{}) error {
	r := rewriter{chunk: chunk, words: words, work: work{folded: map[ast.Expr]float64{}, constants: map[any]int{}}}
	r.block(tree)
	return r.err
}
