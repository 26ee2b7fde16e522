// Package script runs Lua 5.1 scripts as Redis 7 does: the language, the sandbox, the libraries, and the conversion
// of values in both directions. It knows no server and no store: a [Host] says what a call of redis.call does.
//
// # What it is
//
// An [Engine] keeps what runs have in common: idle machines and the state of math.random. [Compile] makes a [Program]
// of a source text. [Engine.Run] executes a program and appends its reply to a writer.
//
// The interpreter is github.com/yuin/gopher-lua. Where it differs from Redis's Lua the difference is removed: by
// rewriting the syntax tree before it is compiled (rewrite.go: "..", "#" and the numbers of the source), by a
// metatable of strings (arithmetic with strings), and by libraries of our own (base, string, table, math, coroutine),
// which also keep to the limits. The texts of errors that the interpreter itself raises, such as the index of a nil,
// do not name the variable.
//
// # Guarantees
//
// A script cannot change what another one sees: globals, libraries and the metatable of strings are read-only. A machine
// that was left by an error is used again when its thread has been unwound (protect.go). One whose run was long, or was
// left by a panic or by an error in a library's function, is not.
//
// A script cannot end the process. Each instruction counts, and so does the work of a library function: after some of
// them the run looks at the clock, at whether somebody wants it to stop, and at the growth of the heap (machine.go).
// A run that is stopped stays stopped: pcall cannot catch that. Recursion is bounded by the size of the call stack,
// which also bounds the stack of the goroutine. A panic of the interpreter becomes an error of the run.
//
// # Concurrency
//
// An Engine and a Program may be used from any goroutine. A run takes place in the goroutine of its caller, and starts
// no other.
//
// # Caveats
//
// Package gopher-lua has a variable MaxArrayIndex for the whole process, which this package sets to 65536: a table
// keeps elements above that in its hash. Otherwise one assignment to a large index would take gigabytes.
//
// The limit of memory is measured as the growth of the heap of the process during the run, for Go cannot tell who
// allocated what.
package script
