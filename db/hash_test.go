package db_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
)

func TestHashEdits(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		h := k.Hash("h")
		_, err := h.PutAll(db.Field{Name: "a", Value: []byte("one")}, db.Field{Name: "b", Value: []byte{}})
		must(t, err)
		equal(t, "length", ok[int](t)(h.ValueLen("a")), 3)
		equal(t, "random fields", len(ok[[]db.Field](t)(h.Random(5))), 2)
		equal(t, "random fields that repeat", len(ok[[]db.Field](t)(h.Random(-5))), 5)
		values, err := h.GetAndDelete("b", "none", "a")
		must(t, err)
		equal(t, "values", fmt.Sprintf("%q", values), `["" "" "one"]`)
		equal(t, "an empty value is there", values[0] != nil, true)
		equal(t, "a missing one is nil", values[1] == nil, true)
		equal(t, "the emptied hash exists", ok[bool](t)(k.Key("h").Exists()), false)
	})
}
