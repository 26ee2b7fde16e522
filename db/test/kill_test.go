package db_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
	"github.com/stavedb/stave/structures"
)

var (
	killRuns = flag.Int("kill.runs", 100, "how many times the kill test kills its child (default: a sample)")
	killSeed = flag.Uint64("kill.seed", 0, "seed of the kill test (0: a random one)")
)

// killEnv carries a killPlan to the child.
const killEnv = "STAVE_KILL_TEST"

// killWriters is how many writers a child has, each with a namespace of its
// own: what one does is known from the seed alone.
const killWriters = 3

// killPlan is what one child is to do.
type killPlan struct {
	dir         string
	seed, round uint64
}

func (p killPlan) String() string { return fmt.Sprintf("%d %d %s", p.seed, p.round, p.dir) }

func parseKillPlan(text string) (p killPlan, err error) {
	_, err = fmt.Sscanf(text, "%d %d", &p.seed, &p.round)
	p.dir = strings.SplitN(text, " ", 3)[2]
	return p, err
}

func (p killPlan) options() *db.Options {
	rng := rand.New(rand.NewPCG(p.seed, p.round))
	return seam.With(&db.Options{Namespaces: modelNamespaces, Sync: db.SyncMode(p.round % 3), SyncEvery: 10 * time.Millisecond, SegmentSize: 4<<10 + rng.Int64N(12<<10), NoMerge: true, Merge: merge.Policy{TriggerRatio: 0.3, IncludeRatio: 0.1, SmallCount: 2}},
		seam.Options{NoMapping: p.round%4 == 3, Copies: seam.CopiesOn + seam.Copies(rng.IntN(2)), CopyStep: 2 << 10 << rng.IntN(6), Load: seam.Load(rng.IntN(4))})
}

// operation does the i-th thing that a writer does in its namespace.
func (p killPlan) operation(writer, i int, s *db.Store) error {
	rng := rand.New(rand.NewPCG(p.seed^p.round<<32, uint64(writer)<<32|uint64(i)))
	var err error
	switch n := rng.IntN(100); {
	case n == 0:
		err = s.Flush()
	case n < 4: // a library, which is in several parts now and then, and what two keys say of it
		text := strings.Repeat(strconv.Itoa(i)+" ", rng.IntN(3)*rng.IntN(100))
		if rng.IntN(8) == 0 {
			text = strings.Repeat(text, 200)
		}
		err = s.Update(func(tx *db.Tx) error {
			for _, key := range []string{"library", "k1"} {
				if err := tx.String(key).Put([]byte(strconv.Itoa(len(text)))); err != nil {
					return err
				}
			}
			return serverside.DB.PutLibrary(tx, fmt.Sprint(writer, "_", rng.IntN(3)), text)
		})
	case n < 15:
		failing := rng.IntN(5) == 0
		err = s.Update(func(tx *db.Tx) error {
			for range 2 + rng.IntN(6) {
				if err := killOperation(rng, tx); err != nil && !refused(err) {
					return err
				}
			}
			if failing {
				return db.ErrNotFound
			}
			return nil
		})
	default:
		err = killOperation(rng, s)
	}
	if refused(err) {
		return nil
	}
	return err
}

// refused separates a refusal, which is the same whenever the operation is repeated, from a
// failure.
func refused(err error) bool {
	var refusal structures.Error
	return errors.Is(err, db.ErrNotFound) || errors.As(err, &refusal)
}

// killOperation does one thing whose outcome depends on the data alone.
func killOperation(rng *rand.Rand, k keys) error {
	name := func() string { return fmt.Sprint("k", rng.IntN(6)) }
	elem := func() string { return fmt.Sprint("e", rng.IntN(30)) }
	value := []byte(strings.Repeat(strconv.Itoa(rng.Int()), rng.IntN(12)))
	var err error
	switch rng.IntN(21) {
	case 0, 1:
		err = k.String(name()).Put(value)
	case 2:
		_, err = k.String("counter").Incr(1)
	case 3, 4:
		_, err = k.Hash("hash"+name()).Put(elem(), value)
	case 5:
		_, err = k.Hash("hash"+name()).Delete(elem(), elem())
	case 6:
		_, err = k.List("list"+name()).PushBack(value, value)
	case 7:
		_, err = k.List("list" + name()).PushFront(value)
	case 8:
		_, err = k.List("list" + name()).PopFront()
	case 9, 10:
		_, err = k.SortedSet("zset"+name()).Add(db.Scored{Member: elem(), Score: float64(rng.IntN(10))}, db.Scored{Member: elem(), Score: 1})
	case 11:
		_, err = k.SortedSet("zset"+name()).Remove(elem(), elem())
	case 12:
		_, err = k.Set("set"+name()).Add(elem(), elem())
	case 13:
		_, err = k.Key([]string{"", "hash", "list", "zset", "set", "stream"}[rng.IntN(6)] + name()).Delete()
	case 14:
		_, err = k.Key(name()).ExpireAt(time.UnixMilli(4e12 + rng.Int64N(1e12)))
	case 15:
		err = k.Key("hash" + name()).Rename("hash" + name())
	case 16, 17:
		id := db.StreamID{Ms: uint64(1 + rng.IntN(1000)), Seq: uint64(rng.IntN(3))}
		o := db.StreamAddOptions{ID: id, Trim: &db.StreamTrim{MaxLen: 4 + rng.IntN(8)}}
		_, err = k.Stream("stream"+name()).AddWith(o, db.Field{Name: elem(), Value: value})
	case 18:
		_, err = k.Stream("stream" + name()).Delete(db.StreamID{Ms: uint64(1 + rng.IntN(1000)), Seq: uint64(rng.IntN(3))})
	default:
		err = changeGroup(k.Stream("stream"+name()), fmt.Sprint("g", rng.IntN(2)), rng)
	}
	return err
}

// changeGroup changes a group of a stream, by calls that take no time from the clock.
func changeGroup(s db.Stream, name string, rng *rand.Rand) (err error) {
	g := s.Group(name)
	state := db.StreamGroupState{Name: name, Consumers: []db.StreamConsumer{{Name: "a", Seen: 1, Active: -1}, {Name: "b", Seen: 2, Active: 2}}}
	for i := range 1 + rng.IntN(20) {
		state.Pending = append(state.Pending, db.StreamPending{
			ID: db.StreamID{Ms: uint64(i * 50)}, Consumer: []string{"a", "b"}[rng.IntN(2)], Delivered: 3, Deliveries: rng.Int64N(5),
		})
	}
	switch rng.IntN(8) {
	case 0, 1, 2:
		err = s.RestoreGroup(state)
	case 3:
		err = g.Create(db.StreamGroupStart{Last: true, Make: rng.IntN(2) == 0})
	case 4, 5:
		_, err = g.Ack(db.StreamID{Ms: 50}, db.StreamID{Ms: 100}, db.StreamID{Ms: uint64(rng.IntN(20) * 50)})
	case 6:
		_, err = g.DeleteConsumer("a")
	case 7:
		_, err = g.Destroy()
	}
	if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrExists) || errors.Is(err, structures.ErrNoGroup) {
		return nil
	}
	return err
}

// TestKilledChild is the child: it writes until it is killed, and says so, on
// file 3, after each acknowledged operation.
func TestKilledChild(t *testing.T) {
	text := os.Getenv(killEnv)
	if text == "" {
		t.Skip("this is the child of TestKill")
	}
	p, err := parseKillPlan(text)
	must(t, err)
	out := os.NewFile(3, "acknowledgements")
	s, err := db.Open(p.dir, p.options())
	must(t, err)
	failed := make(chan error)
	for w := range killWriters {
		view, err := s.Use(w)
		must(t, err)
		go func() {
			for i := 0; ; i++ {
				err := p.operation(w, i, view)
				if err == nil {
					_, err = fmt.Fprintf(out, "%d %d\n", w, i)
				}
				if err != nil {
					failed <- fmt.Errorf("writer %d, operation %d: %w", w, i, err)
				}
			}
		}()
	}
	go func() {
		for n := 0; ; n++ {
			if _, err := s.Merge(context.Background(), merge.RunOptions{All: n%4 == 0}); err != nil {
				failed <- fmt.Errorf("merge: %w", err)
			}
			time.Sleep(time.Duration(n%5) * time.Millisecond)
		}
	}()
	t.Fatal(<-failed)
}

// TestKill kills a process that writes, again and again in one directory, and
// finds every acknowledged write: of each writer the state is that of its last
// acknowledged operation, or of the one after, which was in flight.
func TestKill(t *testing.T) {
	runs := *killRuns
	if testing.Short() {
		runs = min(runs, 5)
	}
	seed := chance.Draw(*killSeed)
	share := longTests.Start(t, 1, "kill.seed", "kill.runs")
	runs = share.Cases(runs)
	t.Logf("replay with -kill.seed %d -kill.runs %d", seed, runs)
	kills := share.Part(t, 5)
	defer kills.End()
	dir := t.TempDir()
	// The same operations on a store in memory say what there should be.
	shadow, err := db.Open("shadow", seam.With(&db.Options{Namespaces: modelNamespaces, NoMerge: true, SegmentSize: 64 << 20}, seam.Options{FS: vfs.NewMem()}))
	must(t, err)
	defer shadow.Close()
	total, inFlight := 0, 0
	round := 0
	for ; kills.More(round, runs); round++ {
		p := killPlan{dir: dir, seed: seed, round: uint64(round)}
		acked := runAndKill(t, p)
		for w, n := range acked {
			view, err := shadow.Use(w)
			must(t, err)
			for i := range n {
				must(t, p.operation(w, i, view))
			}
			total += n
		}
		inFlight += compareKilled(t, p, acked, shadow)
	}
	t.Logf("%d kills, %d operations acknowledged, %d found that were in flight", round, total, inFlight)
}

// runAndKill runs a child for a while and returns how many operations each of
// its writers has acknowledged.
func runAndKill(t *testing.T, p killPlan) (acked [killWriters]int) {
	t.Helper()
	read, write, err := os.Pipe()
	must(t, err)
	defer read.Close()
	var stderr strings.Builder
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	cmd.Env = append(os.Environ(), killEnv+"="+p.String())
	cmd.ExtraFiles = []*os.File{write}
	cmd.Stdout, cmd.Stderr = &stderr, &stderr
	must(t, cmd.Start())
	must(t, write.Close())

	rng := rand.New(rand.NewPCG(p.seed, p.round^1<<40))
	wait := time.Duration(5+rng.IntN(295)) * time.Millisecond
	lines := bufio.NewReader(read)
	var early string
	if p.round%4 > 0 { // else it may be killed while it opens the store
		if early, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("round %d: the child ended by itself: %v\n%s", p.round, cmd.Wait(), stderr.String())
		}
	}
	kill := time.AfterFunc(wait, func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("kill: %v", err)
		}
	})
	defer kill.Stop()
	for line := early; ; {
		if line != "" {
			var w, i int
			if _, err := fmt.Sscanf(line, "%d %d\n", &w, &i); err != nil || i != acked[w] {
				t.Fatalf("round %d: acknowledgement %q after %v", p.round, line, acked)
			}
			acked[w]++
		}
		if line, err = lines.ReadString('\n'); err == io.EOF {
			break // a line without its end counts as not received
		}
		must(t, err)
	}
	if err := cmd.Wait(); strings.Contains(stderr.String(), "FAIL") {
		t.Fatalf("round %d: the child failed: %v\n%s", p.round, err, stderr.String())
	}
	return acked
}

// compareKilled compares what a killed child left with the shadow, which advances by one operation
// where the files have it.
func compareKilled(t *testing.T, p killPlan, acked [killWriters]int, shadow *db.Store) (inFlight int) {
	t.Helper()
	o := p.options()
	// The next child then finds the files of the kill. The first may have been killed before there
	// was a store, which cannot be opened for reading.
	o.ReadOnly = p.round%2 == 0 && (p.round > 0 || acked != [killWriters]int{})
	s, err := db.Open(p.dir, o)
	if err != nil {
		t.Fatalf("round %d: open after the kill: %v", p.round, err)
	}
	defer func() { must(t, s.Close()) }()
	_, err = s.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("round %d: check: %v", p.round, f) })
	must(t, err)
	have, err := readModel(s)
	must(t, err)
	for w := range killWriters {
		want, err := readModel(shadow)
		must(t, err)
		if got := have.only(w); got != want.only(w) {
			view, err := shadow.Use(w)
			must(t, err)
			must(t, p.operation(w, acked[w], view))
			inFlight++
			next, err := readModel(shadow)
			must(t, err)
			if got != next.only(w) {
				t.Fatalf("round %d: writer %d, after %d operations, %+v:\nagainst these:\n%sagainst one more:\n%s",
					p.round, w, acked[w], s.Log().Recovery(), differences(got, want.only(w)), differences(got, next.only(w)))
			}
		}
	}
	return inFlight
}

// only is the text of one namespace, and of the libraries of its writer.
func (m *model) only(ns int) string {
	one := newModel()
	one[ns] = m[ns]
	for name, text := range m[modelLibraries] {
		if strings.HasPrefix(name, fmt.Sprint(ns, "_")) {
			one[modelLibraries][name] = text
		}
	}
	return one.String()
}
