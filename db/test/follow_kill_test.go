package db_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
)

// followEnv has the seed, whether to merge, and the directory for the child of TestFollowKilled.
const followEnv = "STAVE_FOLLOW_TEST"

// followChild opens the store, makes commits until it is killed, and prints its position and the sum of its contents
// after each.
func followChild(text string) error {
	var seed uint64
	var merges bool
	var dir string
	if _, err := fmt.Sscanf(text, "%d %t %s", &seed, &merges, &dir); err != nil {
		return err
	}
	copies := seam.CopiesOn + seam.Copies(seed%2)
	w, err := db.Open(dir, seam.With(&db.Options{SegmentSize: 8 << 10, NoMerge: true, ExpireEvery: -1, SyncEvery: 10 * time.Millisecond}, seam.Options{Copies: copies}))
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 1))
	work := &followWorkload{s: w, r: r}
	for {
		at, sum, _, err := contentsOf(w)
		if err != nil {
			return err
		}
		fmt.Printf("%d %d\n", at, sum)
		if err := work.commit(); err != nil {
			return err
		}
		if merges && r.IntN(40) == 0 {
			if err := mergeEverything(w); err != nil {
				return err
			}
		}
	}
}

// TestFollowKilled: a follower goes on through any number of writers that are killed, and each state that it shows is
// one that a writer held. A state that a killed writer did not get to tell of is not known, and is not looked at.
func TestFollowKilled(t *testing.T) {
	if text := os.Getenv(followEnv); text != "" {
		fmt.Println("child:", followChild(text))
		os.Exit(1)
	}
	dir, r := t.TempDir(), chance.Rand(t)
	must(t, ok[*db.Store](t)(db.Open(dir, nil)).Close())
	f := followed(t, dir, db.Options{}, seam.Options{})
	type state struct{ at, sum uint64 }
	var told, shown []state
	var looks sync.WaitGroup
	stop := make(chan struct{})
	looks.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			at, sum, _, err := contentsOf(f)
			if err != nil {
				t.Errorf("at %d: %v", at, err)
				return
			}
			if n := len(shown); n > 0 && at < shown[n-1].at {
				t.Errorf("position %d after %d", at, shown[n-1].at)
			}
			shown = append(shown, state{at, sum})
		}
	})
	runs := 8
	if testing.Short() {
		runs = 3
	}
	for range runs {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFollowKilled$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d true %s", followEnv, r.Uint64(), dir))
		cmd.Stderr = os.Stderr
		out := ok[interface{ Read([]byte) (int, error) }](t)(cmd.StdoutPipe())
		must(t, cmd.Start())
		lines, wanted := bufio.NewScanner(out), 20+r.IntN(150)
		for n := 0; lines.Scan(); n++ {
			var s state
			if _, err := fmt.Sscanf(lines.Text(), "%d %d", &s.at, &s.sum); err != nil {
				if lines.Text() != "" && n < wanted {
					t.Errorf("the child says %q", lines.Text())
				}
				break
			}
			told = append(told, s)
			if n == wanted {
				must(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait() // it was killed
	}
	w := ok[*db.Store](t)(db.Open(dir, nil))
	defer func() { must(t, w.Close()) }()
	caughtUp(t, f, w)
	close(stop)
	looks.Wait()
	known := map[uint64]uint64{}
	for _, s := range told {
		known[s.at] = s.sum
	}
	compared := 0
	for _, s := range slices.Compact(shown) {
		if want, ok := known[s.at]; ok {
			compared++
			equal(t, fmt.Sprintf("the sum at %d", s.at), s.sum, want)
		}
	}
	_, _, want, err := contentsOf(w)
	must(t, err)
	_, _, got, err := contentsOf(f)
	must(t, err)
	equal(t, "what is shown in the end", got, want)
	t.Logf("%d states told of, %d of those shown compared, %d reloads", len(told), compared, f.FollowState().Reloads)
	must(t, f.FollowState().Err)
}
