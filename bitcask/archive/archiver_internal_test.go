package archive

import (
	crand "crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
)

func everything(id) bool { return true }
func nothing(id) bool    { return false }

// TestEveryCommit: each commit since the base can be restored, exactly, by any number up to the next one, next to
// rotations and merges, and goes on to be when the store was closed and opened again.
func TestEveryCommit(t *testing.T) {
	l := newLab(t)
	l.fill(20)
	l.archived()
	for range 4 {
		l.fill(40)
		l.archived()
		l.merge()
		l.close()
		l.open("store")
	}
	l.fill(5)
	l.archived()
	spans, err := Spans(t.Context(), l.to)
	must(t, err)
	if len(spans) != 1 || l.a.Status().Gaps != 0 || spans[0].Last.Sequence != l.s.Sequence() {
		t.Fatalf("%d spans, status %+v", len(spans), l.a.Status())
	}
	last := uint64(0)
	for seq := spans[0].First.Sequence; seq <= spans[0].Last.Sequence; seq++ {
		if l.states[seq] != nil {
			last = seq
		}
		if last > 0 {
			l.wants(Target{Sequence: seq}, last)
		}
	}
	l.wants(Target{}, last)
}

// TestTimes: a time leads to the last commit at which the clock showed it, or less; of times that the clock showed
// twice, to the later one.
func TestTimes(t *testing.T) {
	l := newLab(t)
	l.fill(3)
	l.archived()
	at := map[int64]uint64{}
	begin := l.clock.Load()
	tick := func(ms int64) {
		l.clock.Store(begin + ms)
		l.fill(2)
		l.archived()
		l.until("marked", func() bool { return l.a.Status().Time.UnixMilli() == begin+ms })
		at[ms] = l.s.Sequence()
	}
	for _, ms := range []int64{1000, 2000, 5000, 9000, 4000, 6000, 20000} { // the clock goes back once
		tick(ms)
	}
	for _, c := range []struct{ ask, leads int64 }{
		{1000, 1000}, {1999, 1000}, {2000, 2000}, {3999, 2000}, {4000, 4000}, {5500, 4000}, {6000, 6000}, {9000, 6000}, {19999, 6000}, {20000, 20000}, {1 << 40, 20000},
	} {
		l.wants(Target{Time: time.UnixMilli(begin + c.ask)}, at[c.leads])
	}
	_, _, err := l.restore(Target{Time: time.UnixMilli(begin - 1)})
	if e := unrestorable(t, err); e.Before != nil || e.After == nil {
		t.Errorf("before the first moment: %v", err)
	}
	_, _, err = l.restore(Target{Sequence: l.s.Sequence() + 1})
	if e := unrestorable(t, err); e.After != nil || e.Before == nil || e.Before.Sequence != l.s.Sequence() {
		t.Errorf("after the last moment: %v", err)
	}
}

// TestDeadArchive: an archive that cannot be written to stops no writer, says so, and is caught up when it can be again;
// merges release their segments after Backlog bytes. What was lost to it is a gap, which is counted, and refused.
func TestDeadArchive(t *testing.T) {
	l := newLab(t)
	l.fill(20)
	l.archived()
	before := l.s.Sequence()
	l.faulty.refuse(everything)
	l.fill(30)
	l.until("says so", func() bool { return strings.Contains(l.a.Status().Err, errDead.Error()) })
	l.faulty.refuse(nothing)
	l.archived()
	if gaps := l.a.Status().Gaps; gaps != 0 {
		t.Fatalf("%d gaps after a short while", gaps)
	}
	for seq := before; seq <= l.s.Sequence(); seq++ {
		l.wants(Target{Sequence: seq}, seq)
	}
	l.close()
	l.keep.Backlog = 1
	l.open("store")
	l.fill(1)
	l.archived()
	l.faulty.refuse(everything)
	lost := l.s.Sequence()
	l.until("lost", func() bool {
		l.fill(100)
		l.merge()
		return l.s.Sequence() > lost+3000
	})
	l.faulty.refuse(nothing)
	l.until("counted", func() bool { return l.a.Status().Gaps > 0 })
	l.archived()
	l.fill(5)
	l.archived()
	spans, err := Spans(t.Context(), l.to)
	must(t, err)
	i := 0 // a base that was made between two gaps is a span
	for i+1 < len(spans) && spans[i+1].First.Sequence <= spans[i].Last.Sequence+1 {
		i++
	}
	if i+1 >= len(spans) {
		t.Fatalf("%d spans without a gap", len(spans))
	}
	end, begin := spans[i].Last.Sequence, spans[i+1].First.Sequence
	if end < lost {
		t.Fatalf("lost from %d: spans to %d, and from %d", lost, end, begin)
	}
	l.wants(Target{Sequence: end}, end)
	l.wants(Target{Sequence: begin}, begin)
	l.wants(Target{}, l.s.Sequence())
	_, _, err = l.restore(Target{Sequence: (begin + end) / 2})
	if e := unrestorable(t, err); e.Before == nil || e.After == nil || e.Before.Sequence != end || e.After.Sequence != begin {
		t.Errorf("in the gap: %v", err)
	}
}

// TestStorePanics: a Store that panics is one that fails, until it does not.
func TestStorePanics(t *testing.T) {
	l := newLab(t)
	l.faulty.refuse(func(id) bool { panic("no disk today") })
	l.fill(5)
	l.until("says so", func() bool { return strings.Contains(l.a.Status().Err, "no disk today") })
	l.faulty.refuse(nothing)
	l.fill(5)
	l.archived()
	l.wants(Target{}, l.s.Sequence())
}

// TestOnlyWhatIsOnDisk: whatever is put into the archive, a power cut at that moment leaves it in the store.
func TestOnlyWhatIsOnDisk(t *testing.T) {
	l := newLab(t)
	l.close()
	rec := vfstest.NewRecorder(l.mem)
	l.fs = rec
	l.faulty.refuse(func(o id) bool {
		if o.kind != kindData {
			rec.Mark(fmt.Sprint("archived ", o.last))
		}
		return false
	})
	l.open("cut")
	for i := range 40 {
		l.fill(1 + i%5)
		if i%3 == 0 {
			l.archived()
		} else {
			time.Sleep(time.Duration(i%7) * time.Millisecond)
		}
	}
	l.archived()
	l.close()
	disk, marks := crash.NewDisk("cut", nil), 0
	for i, e := range rec.Events() {
		disk.Apply(i, e)
		var last uint64
		if _, err := fmt.Sscanf(e.Name, "archived %d", &last); e.Op != vfstest.OpMark || err != nil {
			continue
		}
		marks++
		mem, err := disk.Cut(crash.Weak, crash.Choice{}).Mem("cut")
		must(t, err)
		s, err := bitcask.Open("cut", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
		must(t, err)
		if have := s.Sequence(); have < last {
			t.Errorf("event %d: sequence %d was archived, and the disk has %d", i, last, have)
		}
		must(t, s.Close())
	}
	if marks < 10 {
		t.Errorf("only %d objects", marks)
	}
}

// TestOlderCopy: an older copy in the place of the store, whether it gives numbers again already or not, is noticed, and
// is a generation of its own; the commits that were archived before can still be restored.
func TestOlderCopy(t *testing.T) {
	for _, ahead := range []int{0, 30} {
		l := newLab(t)
		l.fill(5)
		l.archived()
		l.fill(25)
		l.archived()
		l.close()
		names, err := l.mem.List("store")
		must(t, err)
		must(t, l.mem.MkdirAll("older"))
		for _, name := range names {
			vfstest.Create(t, l.mem, "older/"+name, vfstest.Content(t, l.mem, "store/"+name)).Close()
		}
		l.open("store")
		l.fill(10)
		l.archived()
		l.close()
		first := l.states
		l.states, l.state = map[uint64]map[string]string{}, map[string]string{}
		if ahead > 0 { // it has as many commits, but others
			s, err := bitcask.Open("older", l.options())
			must(t, err)
			for i := range ahead {
				must(t, s.Put(fmt.Sprint("key", i%7), []byte("of the older copy")))
			}
			must(t, s.Close())
		}
		l.open("older")
		for i := range 7 {
			l.put(fmt.Sprint("key", i), "of the older copy as well")
		}
		l.archived()
		if gaps := l.a.Status().Gaps; gaps != 1 {
			t.Errorf("%d gaps", gaps)
		}
		spans, err := Spans(t.Context(), l.to)
		must(t, err)
		if len(spans) != 2 {
			t.Fatalf("%d spans", len(spans))
		}
		l.wants(Target{}, l.s.Sequence())
		l.states = first
		l.wants(Target{Sequence: 20}, 20)
		l.close()
	}
}

// TestTwoCopiesAtOnce: two copies of one store that are archived to the same place at once are no mixture when they are
// restored: it is what one of them had, or refused.
func TestTwoCopiesAtOnce(t *testing.T) {
	l := newLab(t)
	l.fill(10)
	l.archived()
	l.close()
	names, err := l.mem.List("store")
	must(t, err)
	must(t, l.mem.MkdirAll("clone"))
	for _, name := range names {
		vfstest.Create(t, l.mem, "clone/"+name, vfstest.Content(t, l.mem, "store/"+name)).Close()
	}
	forked := l.states[10]
	other := &lab{t: t, mem: l.mem, to: l.to, state: maps.Clone(forked), states: map[uint64]map[string]string{}}
	other.faulty.Store = l.to
	l.open("store")
	other.open("clone")
	defer other.close()
	for _, at := range []*lab{l, other} { // both go on with the same generation before either writes
		at.until("begun", func() bool { return at.a.Status().Generation != "" })
	}
	for i := range 20 {
		for n, at := range []*lab{l, other} {
			for range 1 + (i+n)%3 {
				at.put(fmt.Sprint("key", i%7), fmt.Sprint("of copy ", n))
			}
			at.archived()
		}
	}
	refused := 0
	for seq := uint64(11); seq <= min(l.s.Sequence(), other.s.Sequence()); seq++ {
		state, made, err := l.restore(Target{Sequence: seq})
		if err != nil {
			unrestorable(t, err)
			refused++
			continue
		}
		if !maps.Equal(state, l.states[made.Sequence]) && !maps.Equal(state, other.states[made.Sequence]) {
			t.Errorf("sequence %d: a mixture: %v", seq, state)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestKeep: what is older than Keep, or beyond KeepBytes, goes when a base can replace it, and what is left can be
// restored.
func TestKeep(t *testing.T) {
	for name, keep := range map[string]Options{"age": {Keep: time.Hour}, "bytes": {KeepBytes: 60 << 10, leastLog: 1 << 10}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.close()
			l.keep = keep
			l.keep.compactFrom = 1000 // so that compaction does not put again what is deleted by mistake
			l.open("store")
			for range 12 {
				l.fill(100)
				l.archived()
				l.merge()
				l.clock.Add(20 * time.Minute.Milliseconds())
				l.fill(1)
				l.archived()
				l.until("a base", func() bool {
					bases := l.objects(kindBase)
					newest, _ := parseName(bases[len(bases)-1])
					return name == "bytes" || l.clock.Load()-newest.from < 30*time.Minute.Milliseconds()
				})
			}
			l.until("deleted", func() bool {
				spans, err := Spans(t.Context(), l.to)
				must(t, err)
				age := time.Duration(l.clock.Load()-spans[0].First.Time.UnixMilli()) * time.Millisecond
				if name == "age" {
					return age >= time.Hour && age < 150*time.Minute
				}
				return spans[0].First.Sequence > 100 && l.a.Status().Bytes < 2*keep.KeepBytes
			})
			l.fill(5)
			l.archived()
			spans, err := Spans(t.Context(), l.to)
			must(t, err)
			if len(spans) != 1 {
				t.Errorf("%d spans", len(spans))
			}
			for _, sp := range spans {
				l.wants(Target{Sequence: sp.First.Sequence}, sp.First.Sequence)
				l.wants(Target{Sequence: sp.Last.Sequence}, sp.Last.Sequence)
			}
			l.until("no data without a base", func() bool { return len(l.objects(kindBase)) == len(l.objects(kindData)) })
		})
	}
}

// TestDamagedObject: any damage of an object that a moment needs is an error that names it, and the moments next to it
// that can be restored can be.
func TestDamagedObject(t *testing.T) {
	r := chance.Rand(t)
	l := newLab(t)
	for range 6 {
		l.fill(6)
		l.archived()
	}
	l.close()
	whole := l.s.Sequence()
	base, _ := parseName(l.objects(kindBase)[0])
	for _, k := range []kind{kindLog, kindBase, kindData} {
		names := slices.DeleteFunc(l.objects(k), func(name string) bool {
			o, _ := parseName(name)
			return k == kindLog && o.last <= base.last // no moment needs it
		})
		for range 30 {
			name := names[r.IntN(len(names))]
			var was []byte
			damage := r.IntN(3)
			l.edit(name, func(b []byte) []byte {
				was = append([]byte{}, b...)
				switch damage {
				case 0:
					return b[:r.IntN(len(b))]
				case 1:
					return append(b, 'x')
				}
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
				return b
			})
			_, _, err := l.restore(Target{Sequence: whole})
			e := unrestorable(t, err)
			if e.Object != name || e.Err == nil {
				t.Errorf("damage %d of %s: %v", damage, name, err)
			}
			if e.Before != nil {
				l.wants(Target{Sequence: e.Before.Sequence}, e.Before.Sequence)
			} else if k == kindLog {
				t.Errorf("damage %d of %s: nothing before it: %v", damage, name, err)
			}
			l.edit(name, func([]byte) []byte { return was })
		}
	}
	l.wants(Target{Sequence: whole}, whole)
	logs := l.objects(kindLog)
	gone := logs[len(logs)/2]
	o, _ := parseName(gone)
	l.edit(gone, func([]byte) []byte { return nil })
	_, _, err := l.restore(Target{Sequence: o.last})
	if e := unrestorable(t, err); !strings.Contains(e.Object, fmt.Sprint(o.first-1)) && e.Before == nil {
		t.Errorf("without %s: %v", gone, err)
	}
}

// Two keys whose hashes agree in the bits that count, in a store whose seed came from bytes that count up.
const collidingA, collidingB = "1a23e43931ed8f18", "199d1796dbeb392a"

type countingBytes byte

func (c *countingBytes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(*c)
		*c++
	}
	return len(p), nil
}

// TestCollidingKeys: two keys of one hash that were written after the base are both there in a store that was restored.
func TestCollidingKeys(t *testing.T) {
	l := newLab(t)
	l.close()
	real := crand.Reader
	crand.Reader = new(countingBytes)
	s, err := bitcask.Open("colliding", l.options())
	crand.Reader = real
	must(t, err)
	must(t, s.Close())
	l.open("colliding")
	l.fill(5)
	l.archived()
	must(t, l.s.Put(collidingA, []byte("a")))
	must(t, l.s.Put(collidingB, []byte("b")))
	l.archived()
	_, err = restore(t.Context(), l.mem, l.to, "copy", Target{})
	must(t, err)
	s, err = bitcask.Open("copy", l.options())
	must(t, err)
	for key, want := range map[string]string{collidingA: "a", collidingB: "b"} {
		if got, err := s.Get(key); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	must(t, s.Close())
}
