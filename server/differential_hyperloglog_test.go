package server_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
)

// The grammar of HyperLogLogs, for the differential test. They live on keys of their own and, sometimes, on the others,
// where any command of strings may change them.
func init() {
	maps.Copy(commands, map[string]func(g *generator) []string{
		"pfadd": func(g *generator) []string {
			// A string command may have damaged a sketch on an ordinary key. Redis then adds the elements that come
			// before it notices; Stave adds all or none.
			key := g.sketchKey()
			if !strings.HasPrefix(key, "pf") {
				return join(key, g.several(0, 1, g.sketchElement))
			}
			return join(key, g.several(0, 6, g.sketchElement))
		},
		"pfcount": func(g *generator) []string { return g.several(1, 3, g.sketchKey) },
		"pfmerge": func(g *generator) []string { return g.several(1, 4, g.sketchKey) },
	})
}

func (g *generator) sketchKey() string {
	if g.chance(4) {
		return g.key()
	}
	return pick(g, "pf1", "pf2", "pf3")
}

func (g *generator) sketchElement() string {
	if g.wide {
		return strconv.Itoa(g.r.IntN(100000))
	}
	return g.element()
}

// TestHyperLogLogBytes adds elements until the sketches have become dense, and compares the strings byte by byte, the
// counts that PFCOUNT leaves in them included.
func TestHyperLogLogBytes(t *testing.T) {
	p := newPair(t)
	r := chance.Rand(t)
	same := func(args ...string) {
		t.Helper()
		if d := p.run(args); d != "" {
			t.Fatalf("%.80q: %s", args, d)
		}
	}
	size := 1
	for round := range 150 {
		key := "pf" + strconv.Itoa(round%3)
		args := []string{"pfadd", key}
		for range r.IntN(size) + 1 {
			args = append(args, strconv.FormatUint(r.Uint64(), 36))
		}
		same(args...)
		same("get", key)
		same("pfcount", key)
		same("get", key) // with the count
		same("pfcount", key)
		if round%10 == 9 {
			same("pfcount", "pf0", "pf1", "none", "pf2")
			same("pfmerge", "merged", key, "none")
			same("get", "merged")
		}
		if round%40 == 39 {
			same("del", "merged", key)
		}
		size += 1 + size/40
	}
	if held, err := p.stave.do([]string{"strlen", "pf0"}); err != nil || held.Int != 12304 {
		t.Errorf("a sketch of many elements has %d bytes, %v", held.Int, err)
	}
}
