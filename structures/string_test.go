package structures_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

func set(t *testing.T, m *memory, key, value string) {
	t.Helper()
	_, err := m.string(key).Set([]byte(value), structures.SetOptions{})
	must(t, err)
}

func get(t *testing.T, m *memory, key string) string {
	t.Helper()
	value, ok, err := m.string(key).Get(nil)
	must(t, err)
	if !ok {
		return "(none)"
	}
	return string(value)
}

func TestSetConditions(t *testing.T) {
	for _, c := range []struct {
		name     string
		exists   bool
		o        structures.SetOptions
		done     bool
		deadline int64
	}{
		{"plain on nothing", false, structures.SetOptions{}, true, 0},
		{"plain clears the deadline", true, structures.SetOptions{}, true, 0},
		{"KEEPTTL", true, structures.SetOptions{KeepTTL: true}, true, 500},
		{"KEEPTTL on nothing", false, structures.SetOptions{KeepTTL: true}, true, 0},
		{"deadline", true, structures.SetOptions{Deadline: 900}, true, 900},
		{"NX on nothing", false, structures.SetOptions{If: structures.IfAbsent}, true, 0},
		{"NX on a key", true, structures.SetOptions{If: structures.IfAbsent, Deadline: 900}, false, 500},
		{"XX on nothing", false, structures.SetOptions{If: structures.IfPresent}, false, 0},
		{"XX on a key", true, structures.SetOptions{If: structures.IfPresent}, true, 0},
		{"NX GET on a key", true, structures.SetOptions{If: structures.IfAbsent, Get: true}, false, 500},
		{"NX GET on nothing", false, structures.SetOptions{If: structures.IfAbsent, Get: true}, true, 0},
		{"XX GET KEEPTTL", true, structures.SetOptions{If: structures.IfPresent, Get: true, KeepTTL: true}, true, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory()
			want := "(none)"
			if c.exists {
				set(t, m, "k", "old")
				must(t, m.SetDeadline("k", 500))
				want = "old"
			}
			if c.done {
				want = "new"
			}
			res, err := m.string("k").Set([]byte("new"), c.o)
			must(t, err)
			equal(t, "done", res.Done, c.done)
			equal(t, "value", get(t, m, "k"), want)
			equal(t, "existed", res.Existed, c.o.Get && c.exists)
			if res.Existed {
				equal(t, "old", string(res.Old), "old")
			}
			equal(t, "deadline", m.deadlines["k"], c.deadline)
		})
	}
}

func TestSetRefusals(t *testing.T) {
	m := newMemory()
	for want, o := range map[error][]structures.SetOptions{
		structures.ErrSyntax: {{If: structures.IfAbsent | structures.IfPresent}, {If: structures.IfGreater}, {KeepTTL: true, Deadline: 1}}, structures.ErrExpireTime: {{Deadline: -1}},
	} {
		for _, o := range o {
			if _, err := m.string("k").Set(nil, o); err != want {
				t.Errorf("%+v: %v, want %v", o, err, want)
			}
		}
	}
	if m.writes != 0 {
		t.Error("a refused SET wrote")
	}
}

// SET replaces a key of any type, and NX and XX count a key of any type.
func TestSetOverOtherTypes(t *testing.T) {
	for _, key := range []string{"string", "hash", "list", "set", "zset"} {
		m := oneOfEach(t)
		must(t, m.SetDeadline(key, 5))
		res, err := m.string(key).Set([]byte("x"), structures.SetOptions{If: structures.IfAbsent})
		must(t, err)
		equal(t, "done with NX over "+key, res.Done, false)
		res, err = m.string(key).Set([]byte("x"), structures.SetOptions{If: structures.IfPresent})
		must(t, err)
		equal(t, "done with XX over "+key, res.Done, true)
		equal(t, "value", get(t, m, key), "x")
		equal(t, "deadlines", len(m.deadlines), 0)
		typ, err := m.key(key).Type()
		must(t, err)
		equal(t, "type", typ, keydir.String)
	}
}

// The expectations are redis-server's.
func TestGetRange(t *testing.T) {
	m := newMemory()
	set(t, m, "k", "Hello")
	set(t, m, "empty", "")
	for _, c := range []struct {
		start, end int64
		want       string
	}{
		{0, -1, "Hello"}, {-3, -1, "llo"}, {-1, -3, ""}, {0, -100, "H"}, {-100, -100, "H"}, {-100, -99, "H"}, {-100, 0, "H"},
		{10, 20, ""}, {3, 1, ""}, {-5, -6, ""}, {-6, -5, "H"}, {0, 0, "H"}, {5, 5, ""}, {1, -5, ""}, {0, -6, "H"}, {0, -5, "H"},
		{2, -100, ""}, {1, 3, "ell"}, {math.MaxInt64, math.MinInt64, ""}, {math.MinInt64, math.MaxInt64, "Hello"},
	} {
		got, err := m.string("k").Range([]byte(">"), c.start, c.end)
		must(t, err)
		equal(t, "GETRANGE "+strconv.FormatInt(c.start, 10)+" "+strconv.FormatInt(c.end, 10), string(got), ">"+c.want)
		for _, key := range []string{"empty", "none"} {
			got, err := m.string(key).Range(nil, c.start, c.end)
			must(t, err)
			equal(t, "GETRANGE of the "+key+" string", string(got), "")
		}
	}
}

func TestAppendAndLen(t *testing.T) {
	m := newMemory()
	must(t, func() error { _, err := m.string("k").Append(nil); return err }())
	equal(t, "APPEND of nothing makes an empty string", get(t, m, "k"), "")
	must(t, m.SetDeadline("k", 7))
	for i, part := range []string{"Hello", "", " World"} {
		n, err := m.string("k").Append([]byte(part))
		must(t, err)
		length, err := m.string("k").Len()
		must(t, err)
		equal(t, "length", n, []int{5, 5, 11}[i])
		equal(t, "STRLEN", length, n)
	}
	equal(t, "value", get(t, m, "k"), "Hello World")
	equal(t, "deadline", m.deadlines["k"], 7)
	n, err := m.string("none").Len()
	must(t, err)
	equal(t, "STRLEN of nothing", n, 0)
	set(t, m, "k", strings.Repeat("x", 1<<20))
	if _, err := m.string("k").Append(make([]byte, structures.MaxString)); err != structures.ErrTooLong {
		t.Errorf("APPEND beyond the limit: %v", err)
	}
}

func TestIncr(t *testing.T) {
	m := newMemory()
	for _, c := range []struct {
		old   string
		delta int64
		want  int64
		err   error
	}{
		{"(none)", 1, 1, nil}, {"0", -1, -1, nil}, {"10", 32, 42, nil}, {"-5", 5, 0, nil},
		{"9223372036854775806", 1, math.MaxInt64, nil}, {"9223372036854775807", 1, 0, structures.ErrOverflow},
		{"-9223372036854775807", -1, math.MinInt64, nil}, {"-9223372036854775808", -1, 0, structures.ErrOverflow},
		{"-1", math.MinInt64, 0, structures.ErrOverflow}, {"0", math.MinInt64, math.MinInt64, nil}, {"9223372036854775807", 0, math.MaxInt64, nil},
		{"", 1, 0, structures.ErrNotInteger}, {"1 ", 1, 0, structures.ErrNotInteger}, {"01", 1, 0, structures.ErrNotInteger},
		{"-0", 1, 0, structures.ErrNotInteger}, {"1.0", 1, 0, structures.ErrNotInteger}, {"9223372036854775808", 1, 0, structures.ErrNotInteger},
		{strings.Repeat("1", 21), 1, 0, structures.ErrNotInteger}, {"abc", 1, 0, structures.ErrNotInteger},
	} {
		_, err := m.Drop("k")
		must(t, err)
		if c.old != "(none)" {
			set(t, m, "k", c.old)
			must(t, m.SetDeadline("k", 9))
		}
		n, err := m.string("k").Incr(c.delta)
		if n != c.want || err != c.err {
			t.Errorf("%q + %d = %d, %v; want %d, %v", c.old, c.delta, n, err, c.want, c.err)
		}
		want := c.old
		if c.err == nil {
			want = strconv.FormatInt(c.want, 10)
		}
		equal(t, "value", get(t, m, "k"), want)
		if c.old != "(none)" {
			equal(t, "deadline", m.deadlines["k"], 9)
		}
	}
}

func TestGetMany(t *testing.T) {
	m := oneOfEach(t)
	set(t, m, "empty", "")
	var got []string
	must(t, structures.GetMany(m, []string{"string", "hash", "none", "empty", "string"}, func(i int, value []byte) bool {
		if value == nil {
			value = []byte("nil")
		}
		got = append(got, strconv.Itoa(i)+string(value))
		return true
	}))
	equal(t, "MGET", strings.Join(got, " "), "0v 1nil 2nil 3 4v")
}

func TestGetReusesTheBuffer(t *testing.T) {
	m := newMemory()
	set(t, m, "k", "value")
	buf := make([]byte, 0, 64)
	got, ok, err := m.string("k").Get(append(buf, "x:"...))
	must(t, err)
	equal(t, "found", ok, true)
	equal(t, "appended", string(got), "x:value")
	got, ok, err = m.string("none").Get(append(buf, "x:"...))
	must(t, err)
	equal(t, "found", ok, false)
	equal(t, "untouched", string(got), "x:")
}

func TestGetAndExpire(t *testing.T) {
	m := newMemory()
	set(t, m, "k", "v")
	value, ok, err := m.string("k").GetAndExpire([]byte("="), 2000, 1000)
	equal(t, "value", string(value), "=v")
	equal(t, "ok, err", ok && err == nil, true)
	equal(t, "deadline", m.deadlines["k"], int64(2000))
	if _, _, err := m.string("k").GetAndPersist(nil); err != nil {
		t.Fatal(err)
	}
	if _, set := m.deadlines["k"]; set {
		t.Error("the deadline is still there")
	}
	if _, _, err := m.string("k").GetAndExpire(nil, 0, 1000); err != structures.ErrExpireTime {
		t.Errorf("deadline 0: %v", err)
	}
	if value, _, _ := m.string("k").GetAndExpire(nil, 1000, 1000); string(value) != "v" {
		t.Errorf("value of a key that expires now = %q", value)
	}
	if _, ok, _ := m.string("k").GetAndDelete(); ok {
		t.Error("a deadline that has passed did not delete the key")
	}
	set(t, m, "k", "w")
	value, ok, err = m.string("k").GetAndDelete()
	equal(t, "deleted", string(value), "w")
	equal(t, "ok, err", ok && err == nil, true)
	if typ, _ := (structures.Key{Txn: m, Key: "k"}).Type(); typ != 0 {
		t.Errorf("type after GetAndDelete = %v", typ)
	}
}

func TestSetRange(t *testing.T) {
	for _, c := range []struct {
		old    string
		offset int64
		part   string
		want   string
	}{
		{"", 0, "a", "a"}, {"", 2, "a", "\x00\x00a"}, {"hello", 1, "EL", "hELlo"}, {"hello", 5, "!", "hello!"}, {"hello", 7, "!", "hello\x00\x00!"},
		{"hello", 9, "", "hello"}, {"", 9, "", ""},
	} {
		m := newMemory()
		if c.old != "" {
			set(t, m, "k", c.old)
		}
		n, err := m.string("k").SetRange(c.offset, []byte(c.part))
		if err != nil || n != len(c.want) || get(t, m, "k") != c.want && c.want != "" {
			t.Errorf("%q with %q at %d: %d, %v; want %q", c.old, c.part, c.offset, n, err, c.want)
		}
	}
	m := newMemory()
	if _, err := m.string("k").SetRange(-1, nil); err != structures.ErrOffset {
		t.Errorf("negative offset: %v", err)
	}
	for _, offset := range []int64{structures.MaxString, 1<<63 - 1} {
		if _, err := m.string("k").SetRange(offset, []byte("x")); err != structures.ErrTooLong {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	equal(t, "records written by refusals", m.writes, 0)
}
