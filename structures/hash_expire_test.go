package structures_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

// timed is a hash as simple as can be: what Redis says of one, written down.
type timed struct {
	fields map[string]timedField
	now    int64
}

type timedField struct {
	value string
	ms    int64 // 0: no deadline
}

// pass lets time pass: fields whose deadline is not after now are gone.
func (h *timed) pass(now int64) {
	h.now = now
	maps.DeleteFunc(h.fields, func(_ string, f timedField) bool { return f.ms != 0 && f.ms <= now })
}

func (h *timed) expire(field string, ms int64, c structures.Condition) structures.FieldResult {
	f, ok := h.fields[field]
	if !ok {
		return structures.FieldMissing
	}
	switch c {
	case structures.IfAbsent:
		ok = f.ms == 0
	case structures.IfPresent:
		ok = f.ms != 0
	case structures.IfGreater:
		ok = f.ms != 0 && ms > f.ms
	case structures.IfLess:
		ok = f.ms == 0 || ms < f.ms
	}
	if !ok {
		return structures.FieldUnchanged
	}
	if ms <= h.now {
		delete(h.fields, field)
		return structures.FieldDeleted
	}
	h.fields[field] = timedField{f.value, ms}
	return structures.FieldChanged
}

func (h *timed) persist(field string) structures.FieldResult {
	f, ok := h.fields[field]
	switch {
	case !ok:
		return structures.FieldMissing
	case f.ms == 0:
		return structures.FieldWithoutTTL
	}
	h.fields[field] = timedField{value: f.value}
	return structures.FieldChanged
}

func (h *timed) change(d structures.FieldDeadline, field string) {
	switch d.Change {
	case structures.ClearDeadlines:
		h.persist(field)
	case structures.SetDeadlines:
		h.expire(field, d.MS, 0)
	}
}

func (h *timed) put(field, value string, d structures.FieldDeadline) {
	h.fields[field] = timedField{value, h.fields[field].ms}
	h.change(d, field)
}

// fieldNames draws fields, some of them twice.
func fieldNames(r *rand.Rand) []string {
	list := make([]string, 1+r.IntN(4))
	for i := range list {
		list[i] = fmt.Sprint("f", r.IntN(12))
	}
	return list
}

// TestHashDeadlinesAgainstModel compares every call on a hash with the model, while time passes in jumps and expired
// fields are deleted only sometimes.
func TestHashDeadlinesAgainstModel(t *testing.T) {
	r := chance.Rand(t)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for range rounds {
		m := newMemory()
		m.now = 1000
		model := &timed{fields: map[string]timedField{}, now: m.now}
		for range 300 {
			if r.IntN(6) == 0 {
				m.now += r.Int64N(30)
				model.pass(m.now)
			}
			timedCall(t, m, model, r)
			m.commit("h")
			timedEqual(t, m, model, r)
		}
	}
}

func timedCall(t *testing.T, m *memory, model *timed, r *rand.Rand) {
	t.Helper()
	h, list, ms := m.hash("h"), fieldNames(r), m.now-5+r.Int64N(60)
	deadline := structures.FieldDeadline{Change: structures.DeadlineChange(r.IntN(3)), MS: ms}
	var got, want []string
	add := func(to *[]string, v ...any) { *to = append(*to, fmt.Sprint(v...)) }
	pairs := make([]structures.Field, len(list))
	for i, name := range list {
		pairs[i] = structures.Field{Name: name, Value: strconv.AppendInt(nil, r.Int64N(100), 10)}
	}
	value := func(i int, v []byte) bool { add(&got, i, v == nil, string(v)); return true }
	result := func(i int, v structures.FieldResult) { add(&got, i, v) }
	wantValue := func(i int) {
		f, ok := model.fields[list[i]]
		add(&want, i, !ok, f.value)
	}
	switch r.IntN(11) {
	case 0:
		n, err := h.PutAll(pairs)
		must(t, err)
		add(&got, n)
		before := len(model.fields)
		for _, p := range pairs {
			model.put(p.Name, string(p.Value), structures.FieldDeadline{Change: structures.ClearDeadlines})
		}
		add(&want, len(model.fields)-before)
	case 1, 2, 3:
		c := structures.Condition(0)
		if r.IntN(2) == 0 {
			c = 1 << r.IntN(4)
		}
		must(t, h.Expire(ms, m.now, c, list, result))
		for i, name := range list {
			add(&want, i, model.expire(name, ms, c))
		}
	case 4:
		must(t, h.Persist(list, result))
		for i, name := range list {
			add(&want, i, model.persist(name))
		}
	case 5:
		must(t, h.GetAndExpire(deadline, m.now, list, value))
		for i, name := range list {
			wantValue(i)
			model.change(deadline, name)
		}
	case 6, 7:
		c := structures.Condition(r.IntN(3))
		_, ok, err := h.PutWith(pairs, deadline, m.now, c)
		must(t, err)
		allowed := true
		for _, name := range list {
			_, exists := model.fields[name]
			allowed = allowed && (c == 0 || exists == (c == structures.IfPresent))
		}
		for _, p := range pairs {
			if allowed {
				model.put(p.Name, string(p.Value), deadline)
			}
		}
		add(&got, ok)
		add(&want, allowed)
	case 8:
		n, err := h.Delete(list)
		must(t, err)
		add(&got, n)
		before := len(model.fields)
		for _, name := range list {
			delete(model.fields, name)
		}
		add(&want, before-len(model.fields))
	case 9:
		n, err := h.Incr(list[0], 7)
		must(t, err)
		add(&got, n)
		f := model.fields[list[0]]
		old, _ := strconv.Atoi(f.value)
		model.fields[list[0]] = timedField{strconv.Itoa(old + 7), f.ms}
		add(&want, old+7)
	case 10:
		must(t, h.GetAndDelete(list, value))
		for i := range list {
			wantValue(i)
			delete(model.fields, list[i])
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q of %v: got %q, want %q", list, model.fields, got, want)
	}
}

// timedEqual reads the hash in every way.
func timedEqual(t *testing.T, m *memory, model *timed, r *rand.Rand) {
	t.Helper()
	got := map[string]timedField{}
	for name, value := range fields(t, m, "h") {
		got[name] = timedField{value: value}
	}
	h, names := m.hash("h"), slices.Sorted(maps.Keys(got))
	must(t, h.Deadlines(names, func(i int, ms int64) {
		if ms != structures.NoDeadline {
			got[names[i]] = timedField{got[names[i]].value, ms}
		}
	}))
	if !maps.Equal(got, model.fields) {
		t.Fatalf("at %d: %v, want %v", m.now, got, model.fields)
	}
	typ, err := m.key("h").Type()
	must(t, err)
	equal(t, "type none", typ.String() == "none", len(got) == 0)
	name := fieldNames(r)[0]
	has, err := h.Has(name)
	must(t, err)
	length, err := h.ValueLen(name)
	must(t, err)
	f, exists := model.fields[name]
	equal(t, "exists", has, exists)
	equal(t, "length", length, len(f.value))
	must(t, h.Deadlines([]string{"never"}, func(_ int, ms int64) { equal(t, "deadline of no field", ms, structures.NoField) }))
	scanned := map[string]bool{}
	_, err = h.Scan(0, structures.ScanOptions{}, func(name, _ []byte) { scanned[string(name)] = true })
	must(t, err)
	equal(t, "scanned", len(scanned), len(got))
	for _, n := range []int{1, 3, 100, -5} {
		drawn, announced := []string{}, 0
		must(t, h.VisitRandom(n, r.Uint64, func(n int) { announced = n }, func(name, value []byte) bool {
			equal(t, "value of a random field", string(value), model.fields[string(name)].value)
			drawn = append(drawn, string(name))
			return true
		}))
		want := min(n, len(got))
		if n < 0 && len(got) > 0 {
			want = -n
		} else {
			want = max(want, 0)
		}
		equal(t, "announced", announced, len(drawn))
		equal(t, "drawn", len(drawn), want)
		slices.Sort(drawn)
		if n > 0 {
			equal(t, "different ones", len(slices.Compact(drawn)), want)
		}
	}
}

// TestCopyHashWithDeadlines copies what can be seen, with its deadlines.
func TestCopyHashWithDeadlines(t *testing.T) {
	m := newMemory()
	h := m.hash("h")
	_, err := h.PutAll([]structures.Field{{Name: "gone"}, {Name: "timed"}, {Name: "plain"}})
	must(t, err)
	none := func(int, structures.FieldResult) {}
	must(t, h.Expire(10, 1, 0, []string{"gone"}, none))
	must(t, h.Expire(90, 1, 0, []string{"timed"}, none))
	m.now = 10
	_, _, err = m.key("h").Copy(m, "copy", structures.IfAbsent)
	must(t, err)
	m.now = 1 // a field that has not been copied does not come back
	equal(t, "fields", len(fields(t, m, "copy")), 2)
	var got []int64
	must(t, m.hash("copy").Deadlines([]string{"gone", "timed", "plain"}, func(_ int, ms int64) { got = append(got, ms) }))
	if want := []int64{structures.NoField, 90, structures.NoDeadline}; !slices.Equal(got, want) {
		t.Errorf("deadlines %v, want %v", got, want)
	}
}

func TestHashDeadlineEvents(t *testing.T) {
	none := func(int, structures.FieldResult) {}
	value := func(int, []byte) bool { return true }
	set := func(ms int64) structures.FieldDeadline {
		return structures.FieldDeadline{Change: structures.SetDeadlines, MS: ms}
	}
	for _, c := range []struct {
		name, want string
		run        func(h structures.Hash) error
	}{
		{"set", "hexpire", func(h structures.Hash) error { return h.Expire(9, 1, 0, []string{"a"}, none) }},
		{"missing", "", func(h structures.Hash) error { return h.Expire(9, 1, 0, []string{"x"}, none) }},
		{"past", "hdel", func(h structures.Hash) error { return h.Expire(1, 1, 0, []string{"a"}, none) }},
		{"all past", "hdel del", func(h structures.Hash) error { return h.Expire(1, 1, 0, []string{"a", "b"}, none) }},
		{"persist", "hpersist", func(h structures.Hash) error { return h.Persist([]string{"b"}, none) }},
		{"nothing to persist", "", func(h structures.Hash) error { return h.Persist([]string{"a"}, none) }},
		{"read and set", "hexpire", func(h structures.Hash) error { return h.GetAndExpire(set(9), 1, []string{"a"}, value) }},
		{"read and delete", "hdel", func(h structures.Hash) error { return h.GetAndExpire(set(1), 1, []string{"a"}, value) }},
		{"write and set", "hset hexpire", func(h structures.Hash) error {
			_, _, err := h.PutWith([]structures.Field{{Name: "a"}}, set(9), 1, 0)
			return err
		}},
		{"write into the past", "hset hdel", func(h structures.Hash) error {
			_, _, err := h.PutWith([]structures.Field{{Name: "a"}}, set(1), 1, 0)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory()
			h := m.hash("h")
			_, err := h.PutAll([]structures.Field{{Name: "a"}, {Name: "b"}})
			must(t, err)
			must(t, h.Expire(5, 1, 0, []string{"b"}, none))
			m.events = nil
			must(t, c.run(h))
			var got []string
			for _, e := range m.events {
				got = append(got, strings.TrimSuffix(e, " h"))
			}
			equal(t, "events", strings.Join(got, " "), c.want)
		})
	}
}

func TestHashDeadlineRefusals(t *testing.T) {
	m := newMemory()
	_, err := m.string("s").Set(nil, structures.SetOptions{})
	must(t, err)
	h := m.hash("s")
	equal(t, "wrong type", h.Expire(5, 1, 0, []string{"a"}, nil), error(structures.ErrWrongType))
	equal(t, "wrong type", h.Persist([]string{"a"}, nil), error(structures.ErrWrongType))
	equal(t, "wrong type", h.Deadlines([]string{"a"}, nil), error(structures.ErrWrongType))
	equal(t, "too late", m.hash("h").Expire(structures.LastFieldDeadline+1, 1, 0, nil, nil), error(structures.ErrExpireTime))
	equal(t, "conditions", m.hash("h").Expire(5, 1, structures.IfAbsent|structures.IfPresent, nil, nil), error(structures.ErrExpireNX))
}
