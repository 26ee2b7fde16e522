package script

import (
	"crypto/rand"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// The interpreter cannot be told how to concatenate, or how long a table is, what % leaves of -4 and 2 is -0 for it, it
// does not say of what a minus sign cannot stand in front, and loops from "1" to "2" it refuses. So these operators, and
// the bounds of loops that are not written as numbers, become calls of Go functions: the callee is a string constant that no script can contain, and
// bindConstants puts the function in its place once the prototype is made. A call costs some 100 ns more than the
// operator.

var (
	nonce      = rand.Text()
	concatName = "concat " + nonce
	lengthName = "length " + nonce
	moduloName = "modulo " + nonce
	minusName  = "minus " + nonce
	bound      = map[string]*lua.LFunction{}
)

func init() {
	bound[concatName] = &lua.LFunction{IsG: true, Env: new(lua.LTable), GFunction: concatOperator}
	bound[moduloName] = &lua.LFunction{IsG: true, Env: new(lua.LTable), GFunction: stringArithmetic("__mod", modulo)}
	bound[minusName] = &lua.LFunction{IsG: true, Env: new(lua.LTable), GFunction: stringArithmetic("__unm", minus)}
	for _, what := range loopBounds {
		bound[boundName(what)] = &lua.LFunction{IsG: true, Env: new(lua.LTable), GFunction: loopBound(what)}
	}
	bound[lengthName] = &lua.LFunction{IsG: true, Env: new(lua.LTable), GFunction: lengthOperator}
}

// bindConstants replaces the names of operators by their functions.
func bindConstants(proto *lua.FunctionProto) {
	for i, c := range proto.Constants {
		if name, ok := c.(lua.LString); ok {
			if fn := bound[string(name)]; fn != nil {
				proto.Constants[i] = fn
			}
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		bindConstants(inner)
	}
}

func (r *rewriter) stmt(stmt ast.Stmt) {
	if !r.enter(stmt) {
		return
	}
	defer func() { r.depth-- }()
	if loop, is := stmt.(*ast.NumberForStmt); is {
		checkBounds(loop)
	}
	switch s := stmt.(type) {
	case *ast.AssignStmt:
		r.list(s.Lhs)
		r.list(s.Rhs)
	case *ast.LocalAssignStmt:
		r.list(s.Exprs)
		r.work.visible += len(s.Names)
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = r.expr(s.Init), r.expr(s.Limit), r.expr(s.Step)
		r.loop(s.Stmts, 1)
	case *ast.GenericForStmt:
		r.list(s.Exprs)
		r.loop(s.Stmts, len(s.Names))
	case *ast.FuncDefStmt:
		s.Name.Func, s.Name.Receiver = r.expr(s.Name.Func), r.expr(s.Name.Receiver)
		r.constant(s, s.Name.Method)
		r.function(s.Func)
	case *ast.ReturnStmt:
		r.list(s.Exprs)
	case *ast.LabelStmt:
		r.take(s, gotoWork*(r.work.gotos-r.work.begun))
	case *ast.GotoStmt:
		r.work.gotos++
	}
}

// loop rewrites the body of a loop, which has so many variables of its own, and three that have no name.
func (r *rewriter) loop(body []ast.Stmt, variables int) {
	r.work.visible += variables + 3
	r.block(body)
	r.work.visible -= variables + 3
}

func (r *rewriter) list(exprs []ast.Expr) {
	for i := range exprs {
		exprs[i] = r.expr(exprs[i])
	}
}

func (r *rewriter) expr(expr ast.Expr) ast.Expr {
	if expr == nil || !r.enter(expr) {
		return expr
	}
	defer func() { r.depth-- }()
	switch e := expr.(type) {
	case *ast.NumberExpr:
		if f, ok := parseNumber(e.Value); ok {
			e.Value = strconv.FormatFloat(f, 'e', -1, 64) // the compiler would read 010 as 8
			r.fold(e, f)
		} else {
			r.fold(e, math.NaN()) // as for the compiler
		}
	case *ast.IdentExpr:
		r.variable(e)
	case *ast.StringExpr:
		r.constant(e, e.Value)
		if r.words != nil && len(e.Value) <= maxWord {
			r.words[strings.ToLower(e.Value)] = struct{}{}
		}
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.expr(e.Object), r.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			f.Key, f.Value = r.expr(f.Key), r.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		e.Func, e.Receiver = r.expr(e.Func), r.expr(e.Receiver)
		r.constant(e, e.Method)
		r.list(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
		if e.Operator == "%" {
			return operatorCall(moduloName, e, []ast.Expr{e.Lhs, e.Rhs})
		}
		r.foldArithmetic(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expr(e.Expr)
		if value, ok := r.work.folded[e.Expr]; ok {
			r.fold(e, -value)
		}
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.FunctionExpr:
		r.function(e)
	case *ast.UnaryLenOpExpr:
		return operatorCall(lengthName, e, []ast.Expr{r.expr(e.Expr)})
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	}
	return checkMinus(expr)
}

// loopBounds are the three expressions of a loop over numbers, as C's Lua calls them in errors.
var loopBounds = [3]string{"initial value", "limit", "step"}

func boundName(what string) string { return "'for' " + what + " " + nonce }

// checkBounds makes strings numbers where a loop begins, as in C's Lua. The interpreter would refuse them.
func checkBounds(s *ast.NumberForStmt) {
	for i, e := range []*ast.Expr{&s.Init, &s.Limit, &s.Step} {
		if *e != nil && !isNumber(*e) {
			*e = operatorCall(boundName(loopBounds[i]), *e, []ast.Expr{*e})
		}
	}
}

// loopBound is the function that does so for one of the three.
func loopBound(what string) lua.LGFunction {
	return func(L *lua.LState) int {
		f, ok := toNumber(L.Get(1))
		if !ok {
			fail(L, "'for' %s must be a number", what)
		}
		return push(L, lua.LNumber(f))
	}
}

// checkMinus makes a call of a minus sign before what may be something else than a number: the error of the interpreter
// does not say what it is.
func checkMinus(expr ast.Expr) ast.Expr {
	if e, is := expr.(*ast.UnaryMinusOpExpr); is && !isNumber(e.Expr) {
		return operatorCall(minusName, e, []ast.Expr{e.Expr})
	}
	return expr
}

// isNumber reports whether an expression is a number whatever happens, such as -1.
func isNumber(expr ast.Expr) bool {
	for {
		switch e := expr.(type) {
		case *ast.NumberExpr:
			return true
		case *ast.UnaryMinusOpExpr:
			expr = e.Expr
		default:
			return false
		}
	}
}

// maxWord is above the length of every command's name.
const maxWord = 32

// maxOperands is how many operands one call concatenates: each takes a register, of which there are 250.
const maxOperands = 40

// concat makes one call of a chain of concatenations.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var operands []ast.Expr
	var last ast.Expr = e
	for {
		next, more := last.(*ast.StringConcatOpExpr)
		if !more {
			break
		}
		operands = append(operands, r.expr(next.Lhs))
		last = next.Rhs
	}
	operands = append(operands, r.expr(last))
	for len(operands) > maxOperands {
		tail := len(operands) - maxOperands
		last := operatorCall(concatName, e, slices.Clone(operands[tail:]))
		operands = append(operands[:tail], last)
	}
	return operatorCall(concatName, e, operands)
}

// operatorCall is a call of one of the functions of bound, with a single value of each operand.
func operatorCall(name string, at ast.PositionHolder, operands []ast.Expr) ast.Expr {
	callee := &ast.StringExpr{Value: name}
	call := &ast.FuncCallExpr{Func: callee, Args: operands, AdjustRet: true}
	for _, node := range []ast.PositionHolder{callee, call} {
		node.SetLine(at.Line())
		node.SetLastLine(at.LastLine())
	}
	switch last := operands[len(operands)-1].(type) {
	case *ast.FuncCallExpr:
		last.AdjustRet = true
	case *ast.Comma3Expr:
		last.AdjustRet = true
	}
	return call
}

// concatOperator is "..": from right to left, as metamethods can tell.
func concatOperator(L *lua.LState) int {
	n := L.GetTop()
	size := 0
	for i := 1; i <= n; i++ {
		text, ok := toText(L.Get(i))
		if !ok {
			return concatObjects(L, n)
		}
		size += len(text)
	}
	of(L).allocate(L, size)
	b := make([]byte, 0, size)
	for i := 1; i <= n; i++ {
		text, _ := toText(L.Get(i))
		b = appendText(b, text)
	}
	return push(L, asString(b))
}

// concatObjects concatenates values of which not all are text.
func concatObjects(L *lua.LState, n int) int {
	sum := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		a, aIs := toText(left)
		b, bIs := toText(sum)
		if aIs && bIs {
			sum = of(L).join(L, a, b)
			continue
		}
		handler := metamethod(L, left, "__concat")
		if handler == lua.LNil {
			handler = metamethod(L, sum, "__concat")
		}
		if handler == lua.LNil {
			wrong := left
			if aIs {
				wrong = sum
			}
			fail(L, "attempt to concatenate a %s value", wrong.Type())
		}
		sum = result(L, handler, left, sum)
	}
	return push(L, sum)
}

// lengthOperator is "#".
func lengthOperator(L *lua.LState) int {
	switch v := L.Get(1).(type) {
	case lua.LString:
		return push(L, lua.LNumber(len(v)))
	case *lua.LTable:
		return push(L, lua.LNumber(tableLen(of(L).unwrap(v))))
	default:
		if handler := metamethod(L, v, "__len"); handler != lua.LNil {
			return invoke(L, handler, v)
		}
		fail(L, "attempt to get length of a %s value", v.Type())
		return 0
	}
}

// metamethod is the handler of an event of a value; nil if it has none.
func metamethod(L *lua.LState, v lua.LValue, event string) lua.LValue {
	var mt lua.LValue
	switch v := v.(type) {
	case *lua.LTable:
		mt = v.Metatable
	case *lua.LUserData:
		mt = v.Metatable
	default:
		mt = L.GetMetatable(v)
	}
	if table, ok := mt.(*lua.LTable); ok {
		return table.RawGetString(event)
	}
	return lua.LNil
}

// tableLen is a border of a table. Elements from lua.MaxArrayIndex on are in the table's hash, where they are searched
// for by doubling and halving.
func tableLen(t *lua.LTable) int {
	n := t.Len()
	if n < lua.MaxArrayIndex-1 || t.RawGet(lua.LNumber(n+1)) == lua.LNil {
		return n
	}
	there, not := n+1, 2*(n+1)
	for t.RawGet(lua.LNumber(not)) != lua.LNil {
		there, not = not, 2*not
	}
	for not-there > 1 {
		if middle := there + (not-there)/2; t.RawGet(lua.LNumber(middle)) != lua.LNil {
			there = middle
		} else {
			not = middle
		}
	}
	return there
}
