package script

import (
	"math"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

var mathFunctions = functions{
	"abs": mathAbs, "acos": mathOf(unsigned(math.Acos)), "asin": mathOf(unsigned(math.Asin)), "atan": mathOf(math.Atan), "ceil": mathOf(math.Ceil),
	"cos": mathOf(math.Cos), "cosh": mathOf(math.Cosh), "exp": mathOf(math.Exp), "floor": mathOf(math.Floor), "log": mathOf(math.Log),
	"log10": mathOf(unsigned(math.Log10)), "sin": mathOf(math.Sin), "sinh": mathOf(math.Sinh), "sqrt": mathOf(math.Sqrt), "tan": mathOf(math.Tan),
	"tanh":  mathOf(math.Tanh),
	"deg":   mathOf(func(f float64) float64 { return f / (math.Pi / 180) }),
	"rad":   mathOf(func(f float64) float64 { return f * (math.Pi / 180) }),
	"atan2": mathOf2(math.Atan2), "fmod": mathOf2(math.Mod), "mod": mathOf2(math.Mod), "pow": mathOf2(math.Pow),
	"frexp": mathFrexp, "ldexp": mathLdexp, "modf": mathModf,
	"max": func(L *lua.LState) int { return mathExtreme(L, func(a, b float64) bool { return a > b }) },
	"min": func(L *lua.LState) int { return mathExtreme(L, func(a, b float64) bool { return a < b }) },

	"random": mathRandom, "randomseed": mathRandomSeed,
}

func (m *machine) openMath() {
	t := m.library("math", mathFunctions)
	t.RawSetString("pi", lua.LNumber(math.Pi))
	t.RawSetString("huge", lua.LNumber(math.Inf(1)))
}

// mathOf is a function of one number. A NaN stays the one that it is.
func mathOf(f func(float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		x := numberArg(L, 1)
		if !math.IsNaN(x) {
			x = f(x)
		}
		return push(L, lua.LNumber(x))
	}
}

// unsigned is f, one of the functions that make a NaN without a sign in C. The others make a negative one.
func unsigned(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		y := f(x)
		if math.IsNaN(y) {
			return quietNaN
		}
		return y
	}
}

// mathOf2 is a function of two numbers. A NaN that one of them is stays what it is, if there is one in the result.
func mathOf2(f func(a, b float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		b := numberArg(L, 2) // in C's order, which shows in errors
		a := numberArg(L, 1)
		y := f(a, b)
		switch { // C has the first of two
		case !math.IsNaN(y):
		case math.IsNaN(a):
			y = a
		case math.IsNaN(b):
			y = b
		}
		return push(L, lua.LNumber(y))
	}
}

// mathAbs takes the sign from a NaN too.
func mathAbs(L *lua.LState) int {
	return push(L, lua.LNumber(math.Abs(likeC(numberArg(L, 1)))))
}

func mathFrexp(L *lua.LState) int {
	fraction, exponent := math.Frexp(numberArg(L, 1))
	return push(L, lua.LNumber(fraction), lua.LNumber(exponent))
}

func mathLdexp(L *lua.LState) int {
	exponent := intArg(L, 2)
	return push(L, lua.LNumber(math.Ldexp(numberArg(L, 1), exponent)))
}

func mathModf(L *lua.LState) int {
	f := numberArg(L, 1)
	whole, fraction := math.Trunc(f), math.Copysign(f-math.Trunc(f), f)
	if math.IsInf(f, 0) {
		fraction = math.Copysign(0, f)
	}
	return push(L, lua.LNumber(whole), lua.LNumber(fraction))
}

func mathExtreme(L *lua.LState, better func(a, b float64) bool) int {
	best := numberArg(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		if f := numberArg(L, i); better(f, best) {
			best = f
		}
	}
	return push(L, lua.LNumber(best))
}

// random is lrand48, which Redis gives to scripts so that they see the same numbers on every machine. All scripts of
// an engine share one sequence, which begins with the same number after every start.
type random struct {
	mu sync.Mutex // guards x
	x  uint64     // 48 bits
}

func (r *random) seed(n int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.x = uint64(uint32(n))<<16 | 0x330E
}

// next returns 31 bits.
func (r *random) next() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.x = (r.x*0x5DEECE66D + 0xB) & (1<<48 - 1)
	return int64(r.x >> 17)
}

func mathRandom(L *lua.LState) int {
	const most = math.MaxInt32
	r := float64(of(L).engine.random.next()%most) / most
	low, high := 1, 0
	switch L.GetTop() {
	case 0:
		return push(L, lua.LNumber(r))
	case 1:
		high = intArg(L, 1)
		if high < 1 {
			argError(L, 1, "interval is empty")
		}
	case 2:
		low, high = intArg(L, 1), intArg(L, 2)
		if low > high {
			argError(L, 2, "interval is empty")
		}
	default:
		fail(L, "wrong number of arguments")
	}
	return push(L, lua.LNumber(math.Floor(r*float64(high-low+1))+float64(low)))
}

func mathRandomSeed(L *lua.LState) int {
	of(L).engine.random.seed(int32(toInteger(numberArg(L, 1))))
	return 0
}
