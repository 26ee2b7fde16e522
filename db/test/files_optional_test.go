package db_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// harm is what happens to the files that the store can do without.
type harm func(rng *rand.Rand, b []byte) []byte // nil: removed

var harms = map[string]harm{
	"kept":      func(_ *rand.Rand, b []byte) []byte { return b },
	"removed":   func(*rand.Rand, []byte) []byte { return nil },
	"truncated": func(rng *rand.Rand, b []byte) []byte { return b[:rng.IntN(len(b))] },
	"flipped": func(rng *rand.Rand, b []byte) []byte {
		b = slices.Clone(b)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		return b
	},
	"emptied": func(*rand.Rand, []byte) []byte { return []byte{} },
}

// optionalKinds are the kinds of those files.
var optionalKinds = map[string]func(name string) bool{
	"INDEX": func(name string) bool { return name == bitcask.IndexFile },
	"TTL":   func(name string) bool { return name == bitcask.TTLName },
	"hints": func(name string) bool { return strings.HasSuffix(name, ".hint") },
}

// TestOptionalFiles opens stores whose INDEX, TTL file and hints are as they were left, of an
// earlier time, damaged in every way, or gone, in every combination: their content is the same,
// with every deadline and every count.
func TestOptionalFiles(t *testing.T) {
	seed := chance.Seed(t)
	share := longTests.Start(t, len(optionalLives), "seed")
	for _, name := range slices.Sorted(maps.Keys(optionalLives)) {
		t.Run(name, func(t *testing.T) {
			files, earlier := optionalLives[name](t, rand.New(rand.NewPCG(seed, 0)))
			want := whatOpens(t, seam.LoadAtOpen, without(files, optionalKinds["INDEX"], optionalKinds["TTL"], optionalKinds["hints"]))
			choices := slices.Sorted(maps.Keys(harms))
			if len(earlier) > 0 {
				choices = append(choices, "earlier")
			}
			part := share.Part(t, 20)
			defer part.End()
			tried := uint64(0)
			for i, index := range choices {
				for _, deadlines := range choices {
					for _, hints := range choices {
						tried++
						rng := rand.New(rand.NewPCG(seed, tried))
						if testing.Short() && rng.IntN(4) > 0 || !part.Take(i, len(choices)) {
							continue
						}
						what := fmt.Sprintf("INDEX %s, TTL %s, hints %s", index, deadlines, hints)
						harmed := maps.Clone(files)
						harmFiles(rng, harmed, earlier, "INDEX", index)
						harmFiles(rng, harmed, earlier, "TTL", deadlines)
						harmFiles(rng, harmed, earlier, "hints", hints)
						if got := whatOpens(t, seam.Load(rng.IntN(4)), harmed); got != want {
							t.Fatalf("%s:\n%s", what, differences(got, want))
						}
					}
				}
			}
		})
	}
}

func without(files map[string]string, kinds ...func(string) bool) map[string]string {
	files = maps.Clone(files)
	for _, kind := range kinds {
		maps.DeleteFunc(files, func(name, _ string) bool { return kind(name) })
	}
	return files
}

func harmFiles(rng *rand.Rand, files, earlier map[string]string, kind, how string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !optionalKinds[kind](name) {
			continue
		}
		if how == "earlier" {
			if b, ok := earlier[name]; ok {
				files[name] = b
			}
		} else if b := harms[how](rng, []byte(files[name])); b != nil {
			files[name] = string(b)
		} else {
			delete(files, name)
		}
	}
}

// whatOpens is the whole content of a store of these files, its counts of deadlines and of live
// bytes included. It is the same when it is opened again. The INDEX is loaded as load says.
func whatOpens(t *testing.T, load seam.Load, files map[string]string) string {
	t.Helper()
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	for name, b := range files {
		f, err := mem.Open(filepath.Join("d", name), vfs.Create)
		must(t, err)
		_, err = f.WriteAt([]byte(b), 0)
		must(t, err)
		must(t, f.Close())
	}
	first := wholeStore(t, load, mem)
	if again := wholeStore(t, load, mem); again != first {
		t.Fatalf("opened again:\n%s", differences(again, first))
	}
	return first
}

func wholeStore(t *testing.T, load seam.Load, mem *vfs.Mem) string {
	t.Helper()
	o := stepOptions(mem, db.SyncNone)
	seam.Of(o).Load = load
	s, err := db.Open("d", o)
	must(t, err)
	figures := func() ([]db.NamespaceStats, []bitcask.SegmentInfo) {
		namespaces := s.Stats().Namespaces
		for i := range namespaces {
			namespaces[i].AverageTTLms = 0 // time passes
		}
		return namespaces, s.Log().Segments()
	}
	namespaces, segments := figures() // of the first moment, which are not to change
	_, err = s.Check(context.Background(), func(f bitcask.Finding) {
		if f.Rule != "I8" { // damage is found, and found again where it need not be read
			t.Errorf("check: %v", f)
		}
	})
	must(t, err)
	m, err := readModel(s)
	must(t, err)
	var b strings.Builder
	b.WriteString(m.String())
	if now, nowSegments := figures(); !slices.Equal(now, namespaces) || !slices.Equal(nowSegments, segments) {
		t.Errorf("when it was opened: %+v, %+v; when all of it was read: %+v, %+v", namespaces, segments, now, nowSegments)
	}
	for _, ns := range namespaces {
		fmt.Fprintf(&b, "namespace %d: %d keys, %d deadlines, %d in the log\n", ns.Namespace, ns.Keys, ns.Deadlines, s.Log().Deadlines(ns.Namespace))
	}
	for _, sg := range segments {
		if sg.Records > 0 {
			fmt.Fprintf(&b, "segment %d: %d records %d to %d, %d bytes live\n", sg.ID, sg.Records, sg.MinSeq, sg.MaxSeq, sg.LiveBytes)
		}
	}
	must(t, s.Close())
	return b.String()
}

// optionalLives make the files of a store, and those of an earlier time.
var optionalLives = map[string]func(t *testing.T, rng *rand.Rand) (files, earlier map[string]string){
	"closed": func(t *testing.T, rng *rand.Rand) (_, _ map[string]string) {
		l := newOptionalLife(t, rng)
		l.write(200)
		l.reopen()
		earlier := l.files()
		l.write(200)
		must(t, l.Close())
		return l.files(), earlier
	},
	"killed long after the INDEX": func(t *testing.T, rng *rand.Rand) (_, _ map[string]string) {
		l := newOptionalLife(t, rng)
		l.write(100)
		l.reopen()
		earlier := l.files()
		l.write(100)
		must(t, l.Log().SaveIndex())
		l.write(200)
		files := l.files()
		must(t, l.Close())
		return files, earlier
	},
	"with a torn tail, merged in between": func(t *testing.T, rng *rand.Rand) (_, _ map[string]string) {
		l := newOptionalLife(t, rng)
		l.write(150)
		must(t, mergeEverything(l.Store))
		l.reopen()
		earlier := l.files()
		l.write(50)
		must(t, mergeEverything(l.Store))
		must(t, l.Log().SaveIndex())
		l.write(3)
		files := l.files()
		for _, sg := range l.Log().Segments() {
			if !sg.Sealed {
				files[fmt.Sprintf("%09d.data", sg.ID)] += "half a commit"
			}
		}
		must(t, l.Close())
		return files, earlier
	},
}

// optionalLife is a store in memory that lives through everything.
type optionalLife struct {
	*db.Store
	t   *testing.T
	rng *rand.Rand
	mem *vfs.Mem
}

func newOptionalLife(t *testing.T, rng *rand.Rand) *optionalLife {
	l := &optionalLife{t: t, rng: rng, mem: vfs.NewMem()}
	l.open()
	return l
}

func (l *optionalLife) open() {
	s, err := db.Open("d", stepOptions(l.mem, db.SyncNone))
	must(l.t, err)
	l.Store = s
}

func (l *optionalLife) reopen() {
	must(l.t, l.Close())
	l.open()
}

// files reads all the files, as a kill would leave them.
func (l *optionalLife) files() map[string]string {
	files := filesIn(l.t, l.mem.Clone()) // a segment may be being sealed
	delete(files, "LOCK")
	return files
}

// filesIn reads all files of a store.
func filesIn(t *testing.T, mem *vfs.Mem) map[string]string {
	t.Helper()
	files := map[string]string{}
	names, err := mem.List("d")
	must(t, err)
	for _, name := range names {
		f, err := mem.Open(filepath.Join("d", name), vfs.ReadOnly)
		must(t, err)
		n, err := f.Size()
		must(t, err)
		b := make([]byte, n)
		_, err = f.ReadAt(b, 0)
		must(t, err)
		must(t, f.Close())
		files[name] = string(b)
	}
	return files
}

// write does that many random things.
func (l *optionalLife) write(steps int) {
	for range steps {
		ns := l.rng.IntN(3)
		s, err := l.Use(ns)
		must(l.t, err)
		must(l.t, l.step(s))
		if l.rng.IntN(60) == 0 {
			_, err := l.Merge(context.Background(), merge.RunOptions{})
			must(l.t, err)
		}
	}
}

func (l *optionalLife) step(s *db.Store) (err error) {
	key, elem := fmt.Sprint("key", l.rng.IntN(30)), fmt.Sprint("element", l.rng.IntN(10))
	value := []byte(strings.Repeat("v", l.rng.IntN(60)))
	switch typ, kerr := s.Key(key).Type(); l.rng.IntN(20) {
	case 0:
		_, err = s.Key(key).Delete()
	case 1:
		return s.Swap(l.rng.IntN(3), l.rng.IntN(3))
	case 2:
		if l.rng.IntN(5) == 0 {
			return s.Flush()
		}
	case 3, 4, 5, 6:
		_, err = s.Key(key).ExpireAt(time.UnixMilli(4e12 + l.rng.Int64N(1e6)))
	case 7:
		_, err = s.Key(key).Persist()
	case 8:
		if kerr == nil && typ != db.TypeNone {
			err = s.Key(key).Rename(key + "'")
		}
	case 9, 10, 11:
		return s.String(key).Put(value)
	default:
		key += "#" + fmt.Sprint(l.rng.IntN(4))
		switch key[len(key)-1] {
		case '0':
			_, err = s.Hash(key).Put(elem, value)
		case '1':
			_, err = s.List(key).PushBack(value, nil, value)
		case '2':
			_, err = s.Set(key).Add(elem, elem+"x")
		default:
			_, err = s.SortedSet(key).Add(db.Scored{Member: elem, Score: float64(l.rng.IntN(5))})
		}
	}
	return err
}
