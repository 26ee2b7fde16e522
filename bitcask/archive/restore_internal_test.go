package archive

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// TestDamagedBase: in the place of a base that is damaged or missing an older one serves, with the log since then, and the
// object is named. Without an older one it is an error, which has all that is damaged.
func TestDamagedBase(t *testing.T) {
	l := newLab(t)
	l.close()
	l.keep.Keep = 24 * time.Hour
	l.open("store")
	for n := range 3 {
		for i := range 7 * (n / 2) { // the third base is extracted in part before its damage is found
			l.put(fmt.Sprint("key", i), strings.Repeat("x", 500<<10))
		}
		if n > 0 {
			l.clock.Add((13 * time.Hour).Milliseconds())
			l.fill(3)
		}
		l.until("a base", func() bool { return len(l.objects(kindBase)) == n+1 })
		l.fill(30)
		l.archived()
		l.merge()
	}
	l.close()
	newest := l.s.Sequence()
	var bases []id
	for _, name := range l.objects(kindBase) {
		base, _ := parseName(name)
		bases = append(bases, base)
	}
	damage := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	missing := func([]byte) []byte { return nil }
	check := func(t Target, sequence uint64, damaged ...string) {
		l.t.Helper()
		l.wants(t, sequence)
		_, made, err := l.restore(t)
		if err != nil || !slices.Equal(made.Damaged, damaged) {
			l.t.Errorf("%v: %q is damaged, want %q; %v", t, made.Damaged, damaged, err)
		}
	}
	check(Target{}, newest)
	third, second, first := dataOf(bases[2]).name(), bases[1].name(), dataOf(bases[0]).name()
	l.edit(third, func(b []byte) []byte { b[len(b)-10] ^= 1; return b })
	check(Target{}, newest, third)
	check(Target{Time: time.UnixMilli(l.clock.Load())}, newest, third)
	check(Target{Sequence: bases[2].last}, bases[2].last, third)
	check(Target{Sequence: bases[2].last - 1}, bases[2].last-1)
	l.edit(second, damage)
	check(Target{}, newest, third, second)
	check(Target{Sequence: bases[1].last}, bases[1].last, second)
	l.edit(first, missing)
	_, _, err := l.restore(Target{})
	if e := unrestorable(t, err); e.Object != first || !failure.IsDamage(err) || !failure.IsNotExist(err) {
		t.Errorf("without any base: %v", err)
	}
}
