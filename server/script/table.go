package script

import (
	"slices"

	lua "github.com/yuin/gopher-lua"
)

var tableFunctions = functions{
	"concat": tableConcat, "foreach": tableForEach, "foreachi": tableForEachI, "getn": tableGetN, "insert": tableInsert, "maxn": tableMaxN,
	"remove": tableRemove, "setn": tableSetN, "sort": tableSort,
}

// listArg is argument 1 as a table that is read.
func listArg(L *lua.LState) *lua.LTable { return of(L).unwrap(tableArg(L, 1)) }

// optEnd is argument i as the last index of a list; without it the list ends where it ends.
func optEnd(L *lua.LState, i int, t *lua.LTable) int {
	if L.Get(i) == lua.LNil {
		return tableLen(t)
	}
	return intArg(L, i)
}

func tableConcat(L *lua.LState) int {
	separator := optText(L, 2, "")
	t := listArg(L)
	from, to := optInt(L, 3, 1), optEnd(L, 4, t)
	m := of(L)
	var b []byte
	for i := from; i <= to; i++ {
		v := t.RawGet(lua.LNumber(i))
		if !lua.LVCanConvToString(v) {
			fail(L, "invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		text, _ := toText(v)
		b = m.append(L, b, text)
		if i < to {
			b = m.append(L, b, separator)
		}
		m.spend(L, 1)
	}
	return push(L, built(b))
}

// each calls argument 2 with keys and values until it returns something.
func each(L *lua.LState, next func() (k, v lua.LValue)) int {
	fn, m := functionArg(L, 2), of(L)
	for k, v := next(); k != lua.LNil; k, v = next() {
		m.spend(L, 1) // a function in Go has no instructions
		if invoke(L, fn, k, v); L.Get(-1) != lua.LNil {
			return 1
		}
		L.Pop(1)
	}
	return 0
}

func tableForEach(L *lua.LState) int {
	t, key := listArg(L), lua.LNil
	return each(L, func() (k, v lua.LValue) {
		key, v = t.Next(key)
		return key, v
	})
}

func tableForEachI(L *lua.LState) int {
	t, i := listArg(L), 0
	n := tableLen(t)
	return each(L, func() (k, v lua.LValue) {
		if i++; i > n {
			return lua.LNil, lua.LNil
		}
		return lua.LNumber(i), t.RawGet(lua.LNumber(i))
	})
}

func tableGetN(L *lua.LState) int {
	return push(L, lua.LNumber(tableLen(listArg(L))))
}

func tableSetN(L *lua.LState) int {
	tableArg(L, 1)
	fail(L, "'setn' is obsolete")
	return 0
}

func tableMaxN(L *lua.LState) int {
	t, most := listArg(L), lua.LNumber(0)
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		if n, ok := k.(lua.LNumber); ok && n > most {
			most = n
		}
		of(L).spend(L, 1)
	}
	return push(L, most)
}

func tableInsert(L *lua.LState) int {
	t := of(L).writable(L, tableArg(L, 1))
	end := tableLen(t) + 1
	switch L.GetTop() {
	case 2:
		t.RawSet(lua.LNumber(end), L.Get(2))
	case 3:
		at := intArg(L, 2)
		m := of(L)
		for i := max(end, at); i > at; i-- { // from -2^31 on, if the script says so
			m.spend(L, 1)
			t.RawSet(lua.LNumber(i), t.RawGet(lua.LNumber(i-1)))
		}
		t.RawSet(lua.LNumber(at), L.Get(3))
	default:
		fail(L, "wrong number of arguments to 'insert'")
	}
	return 0
}

func tableRemove(L *lua.LState) int {
	t := of(L).writable(L, tableArg(L, 1))
	n := tableLen(t)
	at := optInt(L, 2, n)
	if at < 1 || at > n {
		return 0
	}
	L.Push(t.RawGet(lua.LNumber(at)))
	m := of(L)
	for ; at < n; at++ {
		m.spend(L, 1)
		t.RawSet(lua.LNumber(at), t.RawGet(lua.LNumber(at+1)))
	}
	t.RawSet(lua.LNumber(n), lua.LNil)
	return 1
}

// tableSort sorts a copy of the list. An order that contradicts itself gives some order, where C may say so.
func tableSort(L *lua.LState) int {
	t := of(L).writable(L, tableArg(L, 1))
	less, own := L.Get(2).(*lua.LFunction)
	if !own && L.Get(2) != lua.LNil {
		typeError(L, 2, "function")
	}
	m, n := of(L), tableLen(t)
	m.allocate(L, 16*n)
	list := make([]lua.LValue, n)
	for i := range list {
		list[i] = t.RawGet(lua.LNumber(i + 1))
	}
	before := func(a, b lua.LValue) bool {
		m.spend(L, 1)
		if !own {
			return L.LessThan(a, b)
		}
		m.enter(L)
		is := result(L, less, a, b)
		m.leave()
		return lua.LVAsBool(is)
	}
	slices.SortFunc(list, func(a, b lua.LValue) int {
		switch {
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	})
	for i, v := range list {
		t.RawSet(lua.LNumber(i+1), v)
	}
	return 0
}
