package structures_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/structures"
)

func TestPopFirstOfSeveral(t *testing.T) {
	m := newMemory()
	fill(t, m, "l", "a b c")
	addAll(t, m, "z", "a=1 b=2 c=3")
	key, values, ok, err := structures.PopFirst(m, []string{"none", "l", "z"}, structures.Back, 2)
	must(t, err)
	equal(t, "popped", fmt.Sprintf("%s %s %t", key, values, ok), "l [c b] true")
	_, _, ok, err = structures.PopFirst(m, []string{"none"}, structures.Back, 2)
	must(t, err)
	equal(t, "popped from nothing", ok, false)
	key, top, ok, err := structures.PopFirstScored(m, []string{"none", "z", "l"}, 2, true)
	must(t, err)
	equal(t, "popped", fmt.Sprint(key, top, ok), "z[{c 3} {b 2}] true")
	_, _, ok, err = structures.PopFirstScored(m, nil, 2, true)
	must(t, err)
	equal(t, "popped from nothing", ok, false)
}
