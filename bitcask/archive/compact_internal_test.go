package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/vfs"
)

// compactLab has an archiver that makes one log object of ten.
func compactLab(t *testing.T, to func(Store) Store) *lab {
	l := newLab(t)
	l.close()
	l.keep.compactFrom = 10
	if to != nil {
		l.faulty.Store = to(l.to)
	}
	l.open("store")
	l.fill(1)
	l.archived()
	return l
}

// single makes commits that have a log object each.
func (l *lab) single(n int) {
	l.t.Helper()
	for range n {
		l.clock.Add(1000)
		l.fill(1)
		l.until("archived", func() bool { return l.a.Status().Behind == 0 })
	}
}

// allWant compares each commit of an archive, by number and by time, with what the store was then.
func (l *lab) allWant() {
	l.t.Helper()
	spans, err := Spans(l.t.Context(), l.to)
	must(l.t, err)
	if len(spans) != 1 || spans[0].Last.Sequence != l.s.Sequence() {
		l.t.Fatalf("%d spans: %+v", len(spans), spans)
	}
	for seq := max(1, spans[0].First.Sequence); seq <= l.s.Sequence(); seq++ {
		l.wants(Target{Sequence: seq}, seq)
	}
}

// TestCompaction: of many log objects one is made, with every commit, and every time.
func TestCompaction(t *testing.T) {
	l := compactLab(t, nil)
	first, begun := l.s.Sequence(), l.clock.Load()
	for range 2 {
		l.single(60)
		l.merge()
		l.close()
		l.open("store")
		l.until("begun", func() bool { return l.a.Status().Generation != "" })
	}
	l.single(25)
	l.until("few objects", func() bool { return len(l.objects(kindLog)) < 50 })
	l.allWant()
	for n := range uint64(145) {
		l.wants(Target{Time: time.UnixMilli(begun + 1000*int64(n) + 500)}, first+n)
	}
	l.close()
	l.open("store")
	l.until("begun", func() bool { return l.a.Status().Generation != "" })
	if st, n := l.a.Status(), len(l.objects(kindLog))+len(l.objects(kindBase))+len(l.objects(kindData)); st.Gaps > 0 || st.Objects != n {
		t.Errorf("%+v, of %d objects", st, n)
	}
}

// counting is a Store whose Delete fails as it is told to.
type counting struct {
	Store
	deletes atomic.Int32
	fail    func(n int32) bool
}

func (c *counting) Delete(ctx context.Context, name string) error {
	if n := c.deletes.Add(1); c.fail(n) {
		return errDead
	}
	return c.Store.Delete(ctx, name)
}

// twice says whether a log object has no commit that another one has not.
func (l *lab) twice() bool {
	var all []id
	for _, name := range l.objects(kindLog) {
		o, _ := parseName(name)
		all = append(all, o)
	}
	return slices.ContainsFunc(all, func(o id) bool {
		return slices.ContainsFunc(all, func(in id) bool { return in != o && in.first <= o.first && o.last <= in.last })
	})
}

// TestCompactionFails: where objects cannot be deleted, or one of many cannot be put, nothing is lost, they are not put
// twice again and again, and it is said once. When it works again log objects become fewer again.
func TestCompactionFails(t *testing.T) {
	for _, from := range []int32{1, 5} {
		var dead atomic.Bool
		dead.Store(true)
		store := &counting{fail: func(n int32) bool { return n >= from && dead.Load() }}
		l := compactLab(t, func(to Store) Store { store.Store = to; return store })
		l.close()
		var log bytes.Buffer
		l.keep.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l.open("store")
		l.single(60)
		if n := store.deletes.Load(); n < from || n > from+6 {
			t.Errorf("%d objects were to be deleted, want %d or a few more", n, from)
		}
		if n, most := len(l.objects(kindLog)), 60+10; n < 50 || n > most {
			t.Errorf("%d objects", n)
		}
		l.allWant()
		dead.Store(false)
		before := len(l.objects(kindLog))
		l.single(20)
		l.until("compacted again", func() bool { return len(l.objects(kindLog)) < before && !l.twice() })
		l.allWant()
		l.close()
		if n := strings.Count(log.String(), "do not become fewer"); n != 1 {
			t.Errorf("said %d times:\n%s", n, &log)
		}
	}
	l := compactLab(t, nil)
	l.faulty.refuse(func(o id) bool { return o.kind == kindLog && o.last > o.first })
	l.single(30)
	n := len(l.objects(kindLog))
	if n < 30 || l.a.Status().Err != "" {
		t.Errorf("%d objects: %+v", n, l.a.Status())
	}
	l.faulty.refuse(func(id) bool { return false })
	l.single(20)
	l.until("compacted again", func() bool { return len(l.objects(kindLog)) <= n+11 && !l.twice() })
	l.allWant()
}

// meeting is a Store that calls a function before one of its objects is got.
type meeting struct {
	Store
	gets atomic.Int32 // until then
	then func()
}

func (m *meeting) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if m.gets.Add(-1) == -1 {
		m.then()
	}
	return m.Store.Get(ctx, name)
}

// TestRestoreMeetsCompaction: what a Restore has listed may become one object before it reads it; it has every commit all the
// same. What is really missing is an error.
func TestRestoreMeetsCompaction(t *testing.T) {
	for gets := range int32(5) {
		for _, byTime := range []bool{false, true} {
			l := compactLab(t, nil)
			l.single(8)
			want, before := l.s.Sequence(), len(l.objects(kindLog))
			target := Target{Sequence: want}
			if byTime {
				target = Target{Time: time.UnixMilli(l.clock.Load())}
			}
			from := &meeting{Store: l.to, then: func() {
				l.single(7)
				l.until("compacted", func() bool { return len(l.objects(kindLog)) < before })
			}}
			from.gets.Store(gets)
			made, err := restore(t.Context(), l.mem, from, "met", target)
			if err != nil || made.Sequence != want || from.gets.Load() >= 0 {
				t.Errorf("%v, compacted after %d objects: %+v, %v", target, gets, made, err)
			}
		}
	}
	l := compactLab(t, nil)
	l.single(8)
	want, gone := l.s.Sequence(), l.objects(kindLog)[3]
	from := &meeting{Store: l.to, then: func() { l.edit(gone, func([]byte) []byte { return nil }) }}
	_, err := restore(t.Context(), l.mem, from, "gone", Target{Sequence: want})
	if e := unrestorable(t, err); e.Object != gone {
		t.Errorf("without %s: %v", gone, err)
	}
}

// listing is a file system that calls a function after a directory has been listed, and before anything is done with that.
type listing struct {
	vfs.FS
	after atomic.Int32 // how many lists
	then  func()
}

func (l *listing) List(dir string) ([]string, error) {
	names, err := l.FS.List(dir)
	if filepath.Dir(dir) == "archive" && l.after.Add(-1) == -1 {
		l.then()
	}
	return names, err
}

// held is a Store that puts one object of many when it is told to.
type held struct {
	Store
	release chan struct{}
}

func (h *held) Put(ctx context.Context, name string, r io.Reader) error {
	if o, _ := parseName(name); o.kind == kindLog && o.last > o.first {
		select {
		case <-h.release:
		case <-ctx.Done():
		}
	}
	return h.Store.Put(ctx, name, r)
}

// TestListMeetsCompaction: while objects are listed they may become one, whose name comes too late. Restore has every commit
// from before it began all the same.
func TestListMeetsCompaction(t *testing.T) {
	for lists := range int32(2) {
		for _, singles := range []int{8, 13} { // the second one has objects after those that become one
			for _, by := range []string{"", "sequence", "time"} {
				hold := &held{release: make(chan struct{})}
				l := compactLab(t, func(to Store) Store { hold.Store = to; return hold })
				l.single(singles)
				want, before := l.s.Sequence(), len(l.objects(kindLog))
				fs := &listing{FS: l.mem, then: func() {
					close(hold.release)
					left := before - 9
					if singles < 10 {
						l.single(7)
						left += 7
					}
					l.until("compacted", func() bool { return len(l.objects(kindLog)) == left })
				}}
				fs.after.Store(lists)
				from, err := openDirectory(fs, "archive")
				must(t, err)
				target := map[string]Target{"sequence": {Sequence: want}, "time": {Time: time.UnixMilli(l.clock.Load())}}[by]
				made, err := restore(t.Context(), l.mem, from, "met", target)
				if by == "" && singles < 10 && err == nil && made.Sequence > want { // the newest may be one that came meanwhile
					made.Sequence = want
				}
				if err != nil || made.Sequence != want || fs.after.Load() >= 0 {
					t.Errorf("%v, list %d, %d objects: restored %d, want %d: %v", target, lists, singles, made.Sequence, want, err)
				}
				l.close()
			}
		}
	}
}

// TestLogIsLost: where a log object is missing, the moments after it are refused, with an error that names it and the nearest
// moment; none stands for another.
func TestLogIsLost(t *testing.T) {
	l := newLab(t)
	l.fill(1)
	l.archived()
	l.single(8)
	l.close()
	logs, newest := l.objects(kindLog), l.s.Sequence()
	lost, _ := parseName(logs[len(logs)-4])
	l.edit(lost.name(), func([]byte) []byte { return nil })
	for _, target := range []Target{{}, {Sequence: newest}, {Sequence: lost.first}, {Time: time.UnixMilli(l.clock.Load())}, {Time: time.UnixMilli(l.clock.Load() - 2500)}} {
		_, made, err := l.restore(target)
		if err == nil {
			t.Errorf("%v: restored %d of %d", target, made.Sequence, newest)
			continue
		}
		e := unrestorable(t, err)
		if want := fmt.Sprintf("%s: the log after sequence %d", generationName(lost.generation, lost.store), lost.first-1); e.Object != want || e.Before == nil || e.Before.Sequence != lost.first-1 || e.After != nil {
			t.Errorf("%v: %v", target, err)
		}
	}
	l.wants(Target{Sequence: lost.first - 1}, lost.first-1)
	l.wants(Target{Time: time.UnixMilli(l.clock.Load() - 4000)}, lost.first-1)
}
