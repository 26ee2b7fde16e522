package structures_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// fields reads a hash whole, in three ways that must agree.
func fields(t *testing.T, m *memory, key string) map[string]string {
	t.Helper()
	got := map[string]string{}
	announced := -1
	must(t, m.hash(key).Visit(func(n int) { announced = n }, func(name, value []byte) bool {
		got[string(name)] = string(value)
		return true
	}))
	n, err := m.hash(key).Len()
	must(t, err)
	equal(t, "announced", announced, n)
	equal(t, "visited", len(got), n)
	reads := m.reads
	must(t, m.hash(key).VisitFields(func(n int) { announced = n }, func(name []byte) bool {
		if _, ok := got[string(name)]; !ok {
			t.Errorf("field %q comes without a value", name)
		}
		announced--
		return true
	}))
	equal(t, "fields that VisitFields left out", announced, 0)
	equal(t, "reads of VisitFields", m.reads, reads)
	return got
}

func TestHash(t *testing.T) {
	m := newMemory()
	h := m.hash("h")
	n, err := h.PutAll([]structures.Field{{Name: "a", Value: []byte("1")}, {Name: "", Value: nil}, {Name: "a", Value: []byte("2")}})
	must(t, err)
	equal(t, "HSET counts new fields", n, 2)
	isNew, err := h.Put("a", []byte("3"))
	must(t, err)
	equal(t, "HSET of an old field", isNew, false)
	n, ok, err := h.PutWith([]structures.Field{{Name: "a", Value: []byte("4")}}, structures.FieldDeadline{}, 0, structures.IfAbsent)
	must(t, err)
	equal(t, "HSETNX of an old field", ok || n > 0, false)
	n, ok, err = h.PutWith([]structures.Field{{Name: "b", Value: []byte("5")}}, structures.FieldDeadline{}, 0, structures.IfAbsent)
	must(t, err)
	equal(t, "HSETNX of a new field", ok && n == 1, true)
	if got, want := fields(t, m, "h"), map[string]string{"a": "3", "": "", "b": "5"}; !maps.Equal(got, want) {
		t.Errorf("hash = %v, want %v", got, want)
	}
	var got []string
	must(t, h.GetMany([]string{"b", "none", "", "b"}, func(i int, value []byte) {
		got = append(got, fmt.Sprintf("%d:%s:%v", i, value, value == nil))
	}))
	equal(t, "HMGET", strings.Join(got, " "), "0:5:false 1::true 2::false 3:5:false")
	must(t, m.SetDeadline("h", 5))
	n, err = h.Delete([]string{"a", "none", "a", "b", "", "never"})
	must(t, err)
	equal(t, "HDEL", n, 3)
	exists, err := h.Has("a")
	must(t, err)
	equal(t, "HEXISTS", exists, false)
	typ, err := m.key("h").Type()
	must(t, err)
	equal(t, "type after the last field", typ.String(), "none")
	equal(t, "deadlines", len(m.deadlines), 0)
	// The collection is still there until the commit; a new hash must not see it.
	isNew, err = h.Put("c", nil)
	must(t, err)
	equal(t, "HSET after the last field", isNew, true)
	equal(t, "size", len(fields(t, m, "h")), 1)
}

func TestHashOnNothing(t *testing.T) {
	m := newMemory()
	h := m.hash("none")
	value, ok, err := h.Get([]byte("x"), "f")
	must(t, err)
	equal(t, "HGET", string(value), "x")
	equal(t, "found", ok, false)
	n, err := h.Delete([]string{"f"})
	must(t, err)
	equal(t, "HDEL", n, 0)
	n, err = h.PutAll(nil)
	must(t, err)
	equal(t, "HSET of nothing", n, 0)
	equal(t, "size", len(fields(t, m, "none")), 0)
	next, err := h.Scan(0, structures.ScanOptions{}, func(_, _ []byte) { t.Error("a field") })
	must(t, err)
	equal(t, "cursor", next, 0)
	equal(t, "writes", m.writes, 0)
}

func TestHashLimits(t *testing.T) {
	m := newMemory()
	long := strings.Repeat("n", 1<<16)
	for _, err := range []error{
		func() error { _, err := m.hash("h").Put(long, nil); return err }(),
		func() error { _, err := m.hash("h").PutAll([]structures.Field{{Name: "f"}, {Name: long}}); return err }(),
		func() error { _, err := m.hash("h").Incr(long, 1); return err }(),
	} {
		equal[error](t, "a name that is too long", err, structures.ErrNameTooLong)
	}
	equal(t, "writes", m.writes, 0)
	_, err := m.hash("h").Put(long[1:], []byte("v"))
	must(t, err)
	ok, err := m.hash("h").Has(long)
	must(t, err)
	equal(t, "HEXISTS of a name that is too long", ok, false)
	n, err := m.hash("h").Delete([]string{long})
	must(t, err)
	equal(t, "HDEL of a name that is too long", n, 0)
}

func TestHashIncr(t *testing.T) {
	m := newMemory()
	h := m.hash("h")
	for _, c := range []struct {
		old         string
		delta, want int64
		err         error
	}{
		{"(none)", 5, 5, nil}, {"10", -3, 7, nil}, {"9223372036854775807", 1, 0, structures.ErrOverflow},
		{"-2", math.MinInt64, 0, structures.ErrOverflow}, {"", 1, 0, structures.ErrHashNotInteger}, {" 1", 1, 0, structures.ErrHashNotInteger},
		{"01", 1, 0, structures.ErrHashNotInteger}, {"1e3", 1, 0, structures.ErrHashNotInteger},
	} {
		_, err := m.Drop("h")
		must(t, err)
		if c.old != "(none)" {
			_, err = h.Put("f", []byte(c.old))
			must(t, err)
		}
		n, err := h.Incr("f", c.delta)
		if n != c.want || err != c.err {
			t.Errorf("%q + %d = %d, %v; want %d, %v", c.old, c.delta, n, err, c.want, c.err)
		}
		if c.err == nil {
			equal(t, "value", fields(t, m, "h")["f"], strconv.FormatInt(c.want, 10))
		}
	}
	_, err := m.Drop("h")
	must(t, err)
	if _, err := h.Incr("f", 1); err != nil {
		t.Fatal(err)
	}
}

// TestHashScan: one call visits all of 128 fields, and of 512 if they are short; more come in pages.
func TestHashScan(t *testing.T) {
	for _, test := range []struct {
		size, pad int
		whole     bool
	}{{1, 0, true}, {128, 0, true}, {128, 60, true}, {129, 0, true}, {129, 60, false}, {512, 0, true}, {512, 60, false}, {513, 0, false}, {1000, 0, false}} {
		m := newMemory()
		size, prefix := test.size, "field:"+strings.Repeat("1", test.pad)
		for i := range size {
			_, err := m.hash("h").Put(prefix+strconv.Itoa(i), []byte(strconv.Itoa(i)))
			must(t, err)
		}
		calls := 0
		seen := map[string]bool{}
		for cursor := uint64(0); ; {
			page := 0
			next, err := m.hash("h").Scan(cursor, structures.ScanOptions{Count: 7}, func(name, value []byte) {
				equal(t, "value", prefix+string(value), string(name))
				equal(t, "seen before", seen[string(name)], false)
				seen[string(name)] = true
				page++
			})
			must(t, err)
			calls++
			if !test.whole && page > 7 {
				t.Errorf("a page of %d", page)
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
		equal(t, "seen", len(seen), size)
		equal(t, "all at once", calls == 1, test.whole)
		reads := m.reads
		matched := 0
		_, err := m.hash("h").Scan(0, structures.ScanOptions{Count: size, Match: prefix + "1*", NoValues: true}, func(name, value []byte) {
			equal(t, "prefix", strings.HasPrefix(string(name), prefix+"1"), true)
			equal(t, "no value", value == nil, true)
			matched++
		})
		must(t, err)
		equal(t, "reads with NOVALUES", m.reads, reads)
		want := 0
		for i := range size {
			if strconv.Itoa(i)[0] == '1' {
				want++
			}
		}
		equal(t, "matched", matched, want)
	}
}

// What stays from the start of a scan to its end is seen exactly once, whatever
// else comes and goes.
func TestScanGuarantee(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	h := m.hash("h")
	stay := map[string]int{}
	for i := range 500 {
		name := fmt.Sprint("stay", i)
		stay[name] = 0
		_, err := h.Put(name, nil)
		must(t, err)
	}
	for cursor := uint64(0); ; {
		next, err := h.Scan(cursor, structures.ScanOptions{Count: 1 + rng.IntN(20), NoValues: true}, func(name, _ []byte) {
			if _, ok := stay[string(name)]; ok {
				stay[string(name)]++
			}
		})
		must(t, err)
		if cursor = next; cursor == 0 {
			break
		}
		for range rng.IntN(60) {
			name := fmt.Sprint("go", rng.IntN(300))
			if rng.IntN(2) == 0 {
				_, err = h.Put(name, nil)
			} else {
				_, err = h.Delete([]string{name})
			}
			must(t, err)
		}
	}
	for name, n := range stay {
		equal(t, "times that "+name+" was seen", n, 1)
	}
}

func TestHashAgainstModel(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	model := map[string]string{}
	for i := range 4000 {
		h := m.hash("h")
		name, value := "f"+strconv.Itoa(rng.IntN(200)), strconv.Itoa(rng.IntN(1000))
		_, had := model[name]
		switch op := rng.IntN(100); {
		case op < 45:
			isNew, err := h.Put(name, []byte(value))
			must(t, err)
			equal(t, "new", isNew, !had)
			model[name] = value
		case op < 55:
			n, err := h.Incr(name, 3)
			must(t, err)
			old, _ := strconv.Atoi(model[name])
			equal(t, "sum", n, int64(old)+3)
			model[name] = strconv.FormatInt(n, 10)
		case op < 94:
			n, err := h.Delete([]string{name})
			must(t, err)
			equal(t, "deleted", n == 1, had)
			delete(model, name)
		case op < 97:
			m.commit("h")
		case op == 97:
			_, err := m.key("h").Delete()
			must(t, err)
			clear(model)
		default:
			names := slices.Collect(maps.Keys(model))
			n, err := h.Delete(names)
			must(t, err)
			equal(t, "deleted", n, len(names))
			clear(model)
		}
		got, ok, err := h.Get(nil, name)
		must(t, err)
		want, had := model[name]
		equal(t, "found", ok, had)
		equal(t, "value", string(got), want)
		if i%50 == 0 {
			if got := fields(t, m, "h"); !maps.Equal(got, model) {
				t.Fatalf("step %d: hash = %v, want %v", i, got, model)
			}
		}
	}
}

// TestHashValuesTogether: values that are read together are those of their fields, in their order, wherever the visit
// or a read stops.
func TestHashValuesTogether(t *testing.T) {
	m := newMemory()
	h := m.hash("h")
	var all []structures.Field
	for i := range 300 {
		all = append(all, structures.Field{Name: fmt.Sprint("f", i), Value: []byte(strings.Repeat("v", i%50))})
	}
	_, err := h.PutAll(all)
	must(t, err)
	var asked []string
	for i := range 500 {
		asked = append(asked, fmt.Sprint("f", i*7%400)) // every fourth is not there, and some come twice
	}
	for _, stop := range []int{1, 3, 4, 5, 20, 63, 64, 65, 128, 299, 300, 301, 499, 1000} {
		n := 0
		must(t, h.VisitMany(asked, func(i int, value []byte) bool {
			var field int
			_, err := fmt.Sscanf(asked[i], "f%d", &field)
			must(t, err)
			if i != n || (value == nil) != (field >= 300) || value != nil && string(value) != string(all[field].Value) {
				t.Fatalf("call %d: %q has %q", n, asked[i], value)
			}
			n++
			return n < stop
		}))
		equal(t, "visited of many", n, min(stop, len(asked)))
		seen := map[string]bool{}
		must(t, h.Visit(nil, func(name, value []byte) bool {
			var field int
			_, err := fmt.Sscanf(string(name), "f%d", &field)
			must(t, err)
			if string(value) != string(all[field].Value) || seen[string(name)] {
				t.Fatalf("%q has %q, or came twice", name, value)
			}
			seen[string(name)] = true
			return len(seen) < stop
		}))
		equal(t, "visited of all", len(seen), min(stop, len(all)))
	}
	must(t, h.VisitMany(nil, func(int, []byte) bool { t.Error("called for no field"); return true }))
}

func TestHashGetAndDelete(t *testing.T) {
	m := newMemory()
	h := m.hash("h")
	_, err := h.PutAll([]structures.Field{{Name: "a", Value: []byte("1")}, {Name: "b"}, {Name: "c", Value: []byte("3")}})
	must(t, err)
	must(t, m.SetDeadline("h", 500))
	var got []string
	take := func(fields ...string) []string {
		got = nil
		must(t, h.GetAndDelete(fields, func(i int, value []byte) bool {
			if value == nil {
				got = append(got, fields[i]+" none")
			} else {
				got = append(got, fields[i]+" "+string(value))
			}
			return true
		}))
		return got
	}
	if want := []string{"a 1", "x none", "a none", "b "}; !slices.Equal(take("a", "x", "a", "b"), want) {
		t.Errorf("got %q, want %q", got, want)
	}
	equal(t, "deadline of what is left", m.deadlines["h"], int64(500))
	if want := []string{"c 3", "c none"}; !slices.Equal(take("c", "c"), want) {
		t.Errorf("got %q, want %q", got, want)
	}
	typ, err := structures.Key{Txn: m, Key: "h"}.Type()
	must(t, err)
	equal(t, "type of an emptied hash", typ, keydir.None)
	if _, set := m.deadlines["h"]; set {
		t.Error("an emptied hash leaves its deadline behind")
	}
	if want := []string{"c none"}; !slices.Equal(take("c"), want) {
		t.Errorf("of nothing: %q, want %q", got, want)
	}
}

func TestHashRandom(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	h := m.hash("h")
	all := map[string]string{}
	for _, name := range []string{"", "a", "b", "c", "\x00", "__len__"} {
		all[name] = "value of " + name
		_, err := h.Put(name, []byte(all[name]))
		must(t, err)
	}
	for _, n := range []int{0, 1, 5, 6, 100, -1, -50} {
		want := min(n, len(all))
		if n < 0 {
			want = -n
		}
		announced, seen := -1, map[string]int{}
		must(t, h.VisitRandom(n, rng.Uint64, func(n int) { announced = n }, func(name, value []byte) bool {
			equal(t, "value", string(value), all[string(name)])
			seen[string(name)]++
			return true
		}))
		total := 0
		for name, times := range seen {
			if n > 0 && times > 1 {
				t.Errorf("%d fields: %q comes %d times", n, name, times)
			}
			total += times
		}
		equal(t, "announced", announced, want)
		equal(t, "visited", total, want)
		names := 0
		must(t, h.VisitRandomFields(n, rng.Uint64, nil, func([]byte) bool { names++; return true }))
		equal(t, "names", names, want)
	}
	length, err := h.ValueLen("a")
	must(t, err)
	equal(t, "length of a value", length, len("value of a"))
	if length, err := h.ValueLen("none"); length != 0 || err != nil {
		t.Errorf("length of nothing = %d, %v", length, err)
	}
}
