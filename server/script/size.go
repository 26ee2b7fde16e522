package script

import (
	"slices"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// trim returns the memory that the compiler has taken for what has not come, some 17 kB of each function, which would stay
// as long as the script. It returns what the compiled code takes, about.
func trim(p *lua.FunctionProto) (bytes int) {
	bytes = int(unsafe.Sizeof(*p)) + heldByTables
	p.Code, p.DbgSourcePositions = slices.Clone(p.Code), slices.Clone(p.DbgSourcePositions)
	p.Constants, p.FunctionPrototypes = slices.Clone(p.Constants), slices.Clone(p.FunctionPrototypes)
	p.DbgLocals, p.DbgCalls, p.DbgUpvalues = slices.Clone(p.DbgLocals), slices.Clone(p.DbgCalls), slices.Clone(p.DbgUpvalues)
	bytes += 12*len(p.Code) + heldByConstant*len(p.Constants) + heldByLocal*len(p.DbgLocals) + 24*len(p.DbgCalls) + 16*len(p.DbgUpvalues)
	for _, c := range p.Constants {
		if text, ok := c.(lua.LString); ok {
			bytes += len(text)
		}
	}
	for _, inner := range p.FunctionPrototypes {
		bytes += trim(inner)
	}
	return bytes
}

// What the parts of compiled code take in memory besides their texts, about.
const (
	heldByTables   = 600 // the compiler's list of constants that are strings has room for 32
	heldByConstant = 64
	heldByLocal    = 56
	heldByWord     = 64 // of Program.Words
)

// Size is what the program takes in memory, about.
func (p *Program) Size() int { return len(p.Source) + p.size + heldByWord*len(p.Words) }
