package structures_test

import (
	"testing"

	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

var allTypes = []string{"string", "hash", "list", "set", "zset"}

func TestKeyOfEveryType(t *testing.T) {
	for _, name := range allTypes {
		m := oneOfEach(t)
		typ, err := m.key(name).Type()
		must(t, err)
		equal(t, "TYPE", typ.String(), name)
		must(t, m.SetDeadline(name, 50))
		must(t, func() error { _, _, err := m.key(name).Rename("string", 0); return err }())
		typ, err = m.key("string").Type()
		must(t, err)
		equal(t, "TYPE of the new name", typ.String(), name)
		equal(t, "deadline moves along", m.deadlines["string"], 50)
		existed, err := m.key("string").Delete()
		must(t, err)
		equal(t, "DEL", existed, true)
		existed, err = m.key("string").Delete()
		must(t, err)
		equal(t, "DEL of nothing", existed, false)
		equal(t, "deadlines", len(m.deadlines), 0)
		typ, err = m.key("string").Type()
		must(t, err)
		equal(t, "TYPE of nothing", typ, keydir.None)
	}
}

func TestRename(t *testing.T) {
	m := oneOfEach(t)
	_, ok, err := m.key("none").Rename("string", 0)
	must(t, err)
	equal(t, "RENAME of nothing", ok, false)
	_, ok, err = m.key("none").Rename("none", 0)
	must(t, err)
	equal(t, "RENAME of nothing to itself", ok, false)
	writes := m.writes
	_, ok, err = m.key("set").Rename("set", 0)
	must(t, err)
	equal(t, "RENAME to itself", ok, true)
	for _, c := range []struct {
		from, to  string
		moved, ok bool
	}{{"none", "new", false, false}, {"set", "hash", false, true}, {"set", "set", false, true}} {
		moved, ok, err := m.key(c.from).Rename(c.to, structures.IfAbsent)
		must(t, err)
		equal(t, "moved", moved, c.moved)
		equal(t, "ok", ok, c.ok)
	}
	equal(t, "writes", m.writes, writes)
	moved, ok, err := m.key("set").Rename("new", structures.IfAbsent)
	must(t, err)
	equal(t, "moved", moved && ok, true)
	equal(t, "members", members(t, m, "new"), "m")
}

func TestExpire(t *testing.T) {
	const (
		nx = structures.IfAbsent
		xx = structures.IfPresent
		gt = structures.IfGreater
		lt = structures.IfLess
	)
	for _, c := range []struct {
		current int64 // 0: none
		ms      int64
		when    structures.Condition
		done    bool
	}{
		{0, 500, 0, true}, {300, 500, 0, true}, {0, 500, nx, true}, {300, 500, nx, false}, {0, 500, xx, false}, {300, 500, xx, true},
		{0, 500, gt, false}, {300, 500, gt, true}, {500, 500, gt, false}, {700, 500, gt, false},
		{0, 500, lt, true}, {300, 500, lt, false}, {500, 500, lt, false}, {700, 500, lt, true},
		{0, 500, xx | gt, false}, {300, 500, xx | gt, true}, {0, 500, xx | lt, false}, {700, 500, xx | lt, true},
		{0, 100, 0, true}, {300, 100, lt, true}, {300, 100, gt, false}, {0, -1, 0, true}, {0, 99, nx, true},
	} {
		m := oneOfEach(t)
		if c.current != 0 {
			must(t, m.SetDeadline("set", c.current))
		}
		done, err := m.key("set").Expire(c.ms, 100, c.when)
		must(t, err)
		if done != c.done {
			t.Errorf("%+v: done is %v", c, done)
		}
		want, exists := c.current, true
		if c.done {
			want, exists = c.ms, c.ms > 100
		}
		typ, err := m.key("set").Type()
		must(t, err)
		equal(t, "exists", typ != keydir.None, exists)
		if exists {
			equal(t, "deadline", m.deadlines["set"], want)
		}
	}
	m := oneOfEach(t)
	done, err := m.key("none").Expire(500, 100, 0)
	must(t, err)
	equal(t, "EXPIRE of nothing", done, false)
	for _, when := range []structures.Condition{nx | xx, nx | gt, nx | lt, nx | xx | gt | lt} {
		_, err = m.key("none").Expire(500, 100, when)
		equal[error](t, "EXPIRE NX with others", err, structures.ErrExpireNX)
	}
	_, err = m.key("none").Expire(500, 100, gt|lt)
	equal[error](t, "EXPIRE GT LT", err, structures.ErrExpireGTLT)
}

func TestDeadlineAndPersist(t *testing.T) {
	m := oneOfEach(t)
	_, set, ok, err := m.key("none").Deadline()
	must(t, err)
	equal(t, "a deadline of nothing", set || ok, false)
	_, set, ok, err = m.key("list").Deadline()
	must(t, err)
	equal(t, "exists without a deadline", ok && !set, true)
	must(t, m.SetDeadline("list", 5))
	ms, set, ok, err := m.key("list").Deadline()
	must(t, err)
	equal(t, "exists with a deadline", ok && set, true)
	equal(t, "deadline", ms, 5)
	for i, key := range []string{"list", "list", "none"} {
		had, err := m.key(key).Persist()
		must(t, err)
		equal(t, "PERSIST", had, i == 0)
	}
}
