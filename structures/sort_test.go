package structures_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/structures"
)

// sorted is the result of a sort on one line; - is a missing value.
func sorted(values [][]byte, err error) string {
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, value := range values {
		if value == nil {
			words = append(words, "-")
		} else {
			words = append(words, fmt.Sprintf("%q", value))
		}
	}
	return strings.ReplaceAll(strings.Join(words, " "), `"`, "")
}

func TestSort(t *testing.T) {
	m := newMemory()
	push := func(key string, values ...string) {
		for _, value := range values {
			_, err := m.list(key).Push(structures.Back, [][]byte{[]byte(value)}, 0)
			must(t, err)
		}
	}
	push("numbers", "10", "9", "-1.5", "9", "inf")
	push("words", "b", "a", "10", "9")
	push("ids", "1", "2", "3")
	for key, value := range map[string]string{"weight:1": "30", "weight:2": "10", "name:1": "one", "name:3": "three", "x2y": "yes"} {
		set(t, m, key, value)
	}
	_, err := m.hash("object:2").Put("f", []byte("field"))
	must(t, err)
	_, err = m.set("set").Add([]string{"3", "1", "2"})
	must(t, err)
	_, err = m.zset("zset").Add([]structures.Scored{{Member: "5", Score: 1}, {Member: "4", Score: 2}, {Member: "6", Score: 3}}, 0)
	must(t, err)
	_, err = m.hash("hash").Put("f", nil)
	must(t, err)

	for _, c := range []struct {
		key  string
		o    structures.SortOptions
		want string
	}{
		{"none", structures.SortOptions{}, ""},
		{"numbers", structures.SortOptions{}, "-1.5 9 9 10 inf"},
		{"numbers", structures.SortOptions{Descending: true}, "inf 10 9 9 -1.5"},
		{"numbers", structures.SortOptions{Alpha: true}, "-1.5 10 9 9 inf"},
		{"numbers", structures.SortOptions{Limited: true, Offset: 1, Count: 2}, "9 9"},
		{"numbers", structures.SortOptions{Limited: true, Offset: -5, Count: 1}, "-1.5"},
		{"numbers", structures.SortOptions{Limited: true, Offset: 3, Count: -1}, "10 inf"},
		{"numbers", structures.SortOptions{Limited: true, Offset: 9, Count: 9}, ""},
		{"numbers", structures.SortOptions{Limited: true, Count: 1 << 62, Offset: 1 << 62}, ""},
		{"words", structures.SortOptions{}, string(structures.ErrSortScore)},
		{"words", structures.SortOptions{Alpha: true}, "10 9 a b"},
		{"words", structures.SortOptions{Unsorted: true}, "b a 10 9"},
		{"words", structures.SortOptions{Unsorted: true, Descending: true, Limited: true, Count: 2}, "9 10"},
		{"ids", structures.SortOptions{By: "weight:*"}, "3 2 1"},
		{"ids", structures.SortOptions{By: "weight:*", Alpha: true, Descending: true}, "1 2 3"},
		{"ids", structures.SortOptions{By: "name:*"}, string(structures.ErrSortScore)},
		{"ids", structures.SortOptions{Get: []string{"#", "name:*", "object:*->f", "x*y", "object:*", "plain", "name:*->"}},
			"1 one - - - - - 2 - field yes - - - 3 three - - - - -"},
		{"set", structures.SortOptions{}, "1 2 3"},
		{"zset", structures.SortOptions{}, "4 5 6"},
		{"zset", structures.SortOptions{Unsorted: true}, "5 4 6"},
		{"zset", structures.SortOptions{Unsorted: true, Descending: true}, "6 4 5"},
		{"hash", structures.SortOptions{}, string(structures.ErrWrongType)},
		{"name:1", structures.SortOptions{}, string(structures.ErrWrongType)},
	} {
		if got := sorted((structures.Key{Txn: m, Key: c.key}).Sort(c.o)); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.key, c.o, got, c.want)
		}
	}
}

func TestSortInto(t *testing.T) {
	m := newMemory()
	_, err := m.set("set").Add([]string{"b", "c", "a"})
	must(t, err)
	set(t, m, "dest", "old")
	must(t, m.SetDeadline("dest", 7))
	n, err := structures.Key{Txn: m, Key: "set"}.SortInto("dest", structures.SortOptions{Unsorted: true, By: "nosort"})
	must(t, err)
	equal(t, "length", n, 3)
	list := func(key string) string {
		var values [][]byte
		must(t, m.list(key).Visit(0, -1, nil, func(value []byte) bool {
			values = append(values, append([]byte{}, value...))
			return true
		}))
		return sorted(values, nil)
	}
	equal(t, "a set is stored in an order", list("dest"), "a b c")
	if _, set := m.deadlines["dest"]; set {
		t.Error("the destination keeps its deadline")
	}
	n, err = structures.Key{Txn: m, Key: "set"}.SortInto("set", structures.SortOptions{Alpha: true, Get: []string{"#", "none:*"}})
	must(t, err)
	equal(t, "length over itself", n, 6)
	equal(t, "what is not there is empty", list("set"), "a  b  c ")
	n, err = structures.Key{Txn: m, Key: "none"}.SortInto("set", structures.SortOptions{})
	must(t, err)
	equal(t, "length of nothing", n, 0)
	if exists, err := m.Drop("set"); exists || err != nil {
		t.Errorf("an empty result leaves a key: %t, %v", exists, err)
	}
}
