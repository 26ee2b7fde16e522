package script

import (
	"fmt"
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// The library "bit" is Mike Pall's BitOp: 32 bits, results are signed.

var bitFunctions = functions{
	"tobit":   func(L *lua.LState) int { return pushBits(L, bitsArg(L, 1)) },
	"bnot":    func(L *lua.LState) int { return pushBits(L, ^bitsArg(L, 1)) },
	"bswap":   func(L *lua.LState) int { return pushBits(L, bits.ReverseBytes32(bitsArg(L, 1))) },
	"band":    bitFold(func(a, b uint32) uint32 { return a & b }),
	"bor":     bitFold(func(a, b uint32) uint32 { return a | b }),
	"bxor":    bitFold(func(a, b uint32) uint32 { return a ^ b }),
	"lshift":  bitShift(func(a uint32, n int) uint32 { return a << n }),
	"rshift":  bitShift(func(a uint32, n int) uint32 { return a >> n }),
	"arshift": bitShift(func(a uint32, n int) uint32 { return uint32(int32(a) >> n) }),
	"rol":     bitShift(bits.RotateLeft32),
	"ror":     bitShift(func(a uint32, n int) uint32 { return bits.RotateLeft32(a, -n) }),
	"tohex":   bitToHex,
}

// bitsArg is argument i modulo 2^32, rounded to the nearest integer, halves to even.
func bitsArg(L *lua.LState, i int) uint32 {
	f := numberArg(L, i) + (1<<52 + 1<<51)
	if math.IsNaN(f) {
		return 0 // Go's NaN has other bits than C's
	}
	return uint32(math.Float64bits(f))
}

func pushBits(L *lua.LState, b uint32) int {
	return push(L, lua.LNumber(int32(b)))
}

func bitFold(f func(a, b uint32) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		b := bitsArg(L, 1)
		for i := L.GetTop(); i >= 2; i-- {
			b = f(b, bitsArg(L, i))
		}
		return pushBits(L, b)
	}
}

func bitShift(f func(a uint32, n int) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		b := bitsArg(L, 1)
		return pushBits(L, f(b, int(bitsArg(L, 2)&31)))
	}
}

func bitToHex(L *lua.LState) int {
	b, n, verb := bitsArg(L, 1), 8, "%0*x"
	if L.GetTop() > 1 {
		n = int(int32(bitsArg(L, 2)))
	}
	if n < 0 {
		n, verb = -n, "%0*X"
	}
	n = min(n, 8)
	if n == 0 {
		return push(L, lua.LString(""))
	}
	return push(L, lua.LString(fmt.Sprintf(verb, n, b&uint32(uint64(1)<<(4*n)-1))))
}
