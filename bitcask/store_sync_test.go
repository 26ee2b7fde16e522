package bitcask_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// switchingOptions are those of a store that is written to, or copied into where the mode allows it.
func switchingOptions(fs vfs.FS, mode bitcask.SyncMode, copies bool, segment int64) *bitcask.Options {
	o := seam.Options{FS: fs, NoMapping: true, Copies: seam.CopiesOff}
	if copies {
		o.Copies, o.CopyStep = seam.CopiesOn, 2<<10
	}
	return seam.With(&bitcask.Options{Sync: mode, SegmentSize: segment}, o)
}

// TestSetSyncInPowerCuts: several writers write while the mode changes, and the power goes after every operation.
// Whatever was acknowledged before SetSync(SyncAlways) returned, or while that mode held, is there; what is there of
// the rest is the first part of what each writer wrote; and a store that was damaged by a cut would not open.
func TestSetSyncInPowerCuts(t *testing.T) {
	rng := chance.Rand(t)
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		segment := []int64{400, 4 << 10, 256 << 10}[rng.IntN(3)]
		mode, copies := bitcask.SyncMode(rng.IntN(3)), round%2 == 0
		rec := vfstest.NewRecorder(vfs.NewMem())
		s, err := bitcask.Open("d", switchingOptions(rec, mode, copies, segment))
		mustBe(t, err)
		if mode == bitcask.SyncAlways {
			rec.Mark("always")
		}
		writeWhileSwitching(t, rec, s, rng)
		mustBe(t, s.Close())
		cutAndJudge(t, rec.Events(), rng, func(fs vfs.FS) *bitcask.Options {
			return switchingOptions(fs, bitcask.SyncNone, copies, segment)
		})
		if t.Failed() {
			t.Fatalf("round %d: segments of %d, copies %v, at first %v", round, segment, copies, mode)
		}
	}
}

const switchWriters = 3

// writeWhileSwitching has each writer count up its own key, and marks what was acknowledged and which promises hold.
func writeWhileSwitching(t *testing.T, rec *vfstest.Recorder, s *bitcask.Store, rng *rand.Rand) {
	var wait sync.WaitGroup
	for w := range switchWriters {
		wait.Go(func() {
			for i := 1; i <= 25; i++ {
				if err := s.Put(fmt.Sprint("key", w), []byte(strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
				rec.Mark(fmt.Sprintf("acked %d %d", w, i))
			}
		})
	}
	for range 8 {
		mode := bitcask.SyncMode(rng.IntN(3))
		if mode != bitcask.SyncAlways {
			rec.Mark("leaving")
		}
		if err := s.SetSync(mode); err != nil {
			t.Error(err)
		}
		if mode == bitcask.SyncAlways {
			rec.Mark("always")
		}
		if got := s.SyncMode(); got != mode {
			t.Errorf("the mode is %v, not %v", got, mode)
		}
	}
	wait.Wait()
}

// cutAndJudge looks at what a cut after each event leaves.
func cutAndJudge(t *testing.T, events []vfstest.Event, rng *rand.Rand, options func(vfs.FS) *bitcask.Options) {
	disk := crash.NewDisk("d", nil)
	var acked, promised [switchWriters]int
	always, begun := false, false
	for i, e := range events {
		fresh := disk.Apply(i, e)
		if e.Op == vfstest.OpMark {
			var w, n int
			switch {
			case e.Name == "always":
				always = true
			case e.Name == "leaving":
				always = false
			default:
				if _, err := fmt.Sscanf(e.Name, "acked %d %d", &w, &n); err != nil {
					t.Fatal(err)
				}
				acked[w] = n
			}
			begun = true
		} else if fresh == 0 || !begun {
			continue
		}
		if always {
			promised = acked
		}
		choices := []crash.Choice{{}, crash.All(disk.Units())}
		for keep := range crash.Choices(disk.Units(), 0, 1, rng) {
			if rng.IntN(20) == 0 {
				choices = append(choices, keep)
			}
		}
		for _, keep := range choices[:min(len(choices), 6)] {
			judgeSwitched(t, fmt.Sprintf("event %d, %v, kept %v", i, e, keep), disk.Cut(crash.Weak, keep), promised, options)
		}
	}
}

// judgeSwitched opens what is left. An acknowledged value may be followed by one that was not acknowledged.
func judgeSwitched(t *testing.T, what string, state crash.State, promised [switchWriters]int, options func(vfs.FS) *bitcask.Options) {
	t.Helper()
	mem, err := state.Mem("d")
	mustBe(t, err)
	s, err := bitcask.Open("d", options(mem))
	if err != nil {
		if strings.Trim(fmt.Sprint(promised), "[]0 ") != "" || !errors.Is(err, bitcask.ErrMissing) {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	defer func() { mustBe(t, s.Close()) }()
	for w, least := range promised {
		value, err := s.Get(fmt.Sprint("key", w))
		if err != nil && !errors.Is(err, bitcask.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
		if n, _ := strconv.Atoi(string(value)); n < least {
			t.Errorf("%s: writer %d has %d left, and %d was promised", what, w, n, least)
		}
	}
}

// TestSetSyncCoversEarlierWrites: what was acknowledged without a sync is on disk once SetSync has returned, but not
// for SyncNone.
func TestSetSyncCoversEarlierWrites(t *testing.T) {
	for mode, syncs := range map[bitcask.SyncMode]bool{bitcask.SyncAlways: true, bitcask.SyncInterval: true, bitcask.SyncNone: false} {
		for _, copies := range []bool{false, true} {
			rec := vfstest.NewRecorder(vfs.NewMem())
			s, err := bitcask.Open("d", switchingOptions(rec, bitcask.SyncNone, copies, 64<<10))
			mustBe(t, err)
			put(t, s, "k", "v")
			mustBe(t, s.SetSync(mode))
			disk := crash.NewDisk("d", nil)
			for i, e := range rec.Events() {
				disk.Apply(i, e)
			}
			left, err := disk.Cut(crash.Weak, crash.Choice{}).Mem("d")
			mustBe(t, err)
			again, err := bitcask.Open("d", switchingOptions(left, bitcask.SyncNone, copies, 64<<10))
			mustBe(t, err)
			if _, err := again.Get("k"); (err == nil) != syncs {
				t.Errorf("%v, copies %v: after a power cut %v", mode, copies, err)
			}
			closeStore(t, again)
			closeStore(t, s)
		}
	}
}

// TestSetSyncThatFails: the mode is what it was, and after a failed sync the store refuses writes.
func TestSetSyncThatFails(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s, err := bitcask.Open("d", switchingOptions(fault, bitcask.SyncNone, false, 64<<10))
	mustBe(t, err)
	if err := s.SetSync(7); !errors.Is(err, bitcask.ErrOption) || s.SyncMode() != bitcask.SyncNone {
		t.Errorf("a mode that there is not: %v, %v", err, s.SyncMode())
	}
	put(t, s, "k", "v")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO})
	if err := s.SetSync(bitcask.SyncAlways); !errors.Is(err, bitcask.ErrFailed) || s.SyncMode() != bitcask.SyncNone {
		t.Errorf("the sync fails: %v, %v", err, s.SyncMode())
	}
	if err := s.Put("k", nil); !errors.Is(err, bitcask.ErrFailed) {
		t.Errorf("a write after that: %v", err)
	}
	_ = s.Close() // fails as well
	if err := s.SetSync(bitcask.SyncNone); !errors.Is(err, bitcask.ErrClosed) {
		t.Errorf("of a closed store: %v", err)
	}
}

// TestSetSyncFirstTheModeThenTheSync: a write that comes while SetSync(SyncAlways) waits for its sync waits for one of
// its own.
func TestSetSyncFirstTheModeThenTheSync(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	o := switchingOptions(fault, bitcask.SyncNone, false, 64<<10)
	o.SyncEvery = time.Hour
	s, err := bitcask.Open("d", o)
	mustBe(t, err)
	put(t, s, "k", "v")
	before := s.Sequence()
	var late sync.WaitGroup
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Do: func(vfstest.Event) {
		late.Go(func() {
			if err := s.Put("k", []byte("late")); err != nil {
				t.Error(err)
			}
		})
		for s.Sequence() == before {
			runtime.Gosched()
		}
	}})
	mustBe(t, s.SetSync(bitcask.SyncAlways))
	late.Wait()
	if onDisk := s.Durable(s.Sequence() + 1); !onDisk {
		t.Error("a write was acknowledged that is not on disk")
	}
	closeStore(t, s)
}
