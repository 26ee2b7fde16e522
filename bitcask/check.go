package bitcask

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/stavedb/stave/bitcask/internal/check"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/seam"
)

// Finding is one broken promise of the format. Rules are the invariants of ARCHITECTURE.md that Check can see.
type Finding struct {
	Rule   string `json:"rule"`
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Key    string `json:"key,omitempty"`
	Detail string `json:"detail"`
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s at %d", f.File, f.Offset)
	if f.Key != "" {
		s += fmt.Sprintf(", key %q", f.Key)
	}
	return s + ": " + f.Detail
}

// CheckResult says how much was checked.
type CheckResult struct {
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	Records  uint64 `json:"records"`
	Hints    int    `json:"hints"`
	Index    bool   `json:"index"`    // there is an INDEX that fits the log
	Compared bool   `json:"compared"` // what a replay of the log makes was compared with that, or with what is in memory
	Keys     int    `json:"keys"`
	Findings int    `json:"findings"`
}

// Check reads the whole store and reports everything that is not as the format promises: every frame, record and footer
// verifies (I2), sequences ascend within a segment (I3), hints and the INDEX agree with the data (I8), every location
// leads to its record (I4), counts and bounds in meta records are right, order records repeat the score of their
// member, and fields with a deadline exist (I5). It writes nothing and holds one lock at a time. The error is about a
// check that could not be made, not about its findings. In a store that is open for reading it takes all processors,
// otherwise one. When ctx ends, so does the check, with its error: what has been
// reported by then is right.
func (s *Store) Check(ctx context.Context, report func(Finding)) (CheckResult, error) {
	if err := s.maintenanceMu.LockUnless(ctx); err != nil {
		return CheckResult{}, err
	}
	defer s.maintenanceMu.Unlock()
	if s.closed.Load() {
		return CheckResult{}, ErrClosed
	}
	r, err := check.Run(ctx, s.checkEnvironment(), func(rule, file string, offset int64, key, detail string) {
		report(Finding{rule, file, offset, key, detail})
	})
	return CheckResult(r), err
}

// CheckReplay is Check, and compares what the store has in memory, at one moment, with what a replay of all of its log
// without the INDEX makes of it: a kill, a snapshot and a backup give that (I12). Writes wait while the log is replayed,
// which takes as long as opening the store without an INDEX, and a second index of memory. It fails with ErrReadOnly in
// a store that is open for reading, and with what the replay fails with, such as a *CorruptError.
func (s *Store) CheckReplay(ctx context.Context, report func(Finding)) (r CheckResult, err error) {
	if s.opts.ReadOnly {
		return r, ErrReadOnly
	}
	if r, err = s.Check(ctx, report); err != nil {
		return r, err
	}
	if err := s.maintenanceMu.LockUnless(ctx); err != nil {
		return r, err
	}
	defer s.maintenanceMu.Unlock()
	if err := s.lazy.loadAll(); err != nil {
		return r, err
	}
	t, err := s.BeginAll(false)
	if err != nil {
		return r, err
	}
	defer t.End()
	snap, err := s.snapshot(ctx, SnapshotOptions{}, true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	kept := s.checkEnvironment()
	kept.Lock, kept.Unlock = func(int, bool) error { return nil }, func(int, bool) {} // t has locked them all
	n, err := check.Compare(ctx, kept, snap.checkEnvironment(), func(rule, file string, offset int64, key, detail string) {
		report(Finding{rule, file, offset, key, detail})
	})
	r.Compared, r.Findings = err == nil, r.Findings+n
	return r, err
}

// checkEnvironment is what a check needs of the store.
func (s *Store) checkEnvironment() *check.Environment {
	c := &check.Environment{
		FS: s.opts.seam.FS, Dir: s.dir, ID: s.man.Store, Seed: s.man.Seed, Segments: &s.segments, Spaces: &s.spaces, System: &s.system,
		Lock: s.lockWhole, Unlock: s.unlockWhole, Damage: s.recovery.Damage, Read: s.opts.seam.Progress, NoIndex: s.cutAt > 0, Workers: 1,
		Places: func() bool { return s.man.announces(manifest.FeaturePlaces) },
	}
	if s.opts.ReadOnly { // where nothing else is served
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if s.opts.ReadOnly && !s.opts.ReadDamaged { // the rest of a damaged log cannot tell what the INDEX should contain
		c.Again = s.openAgain
	}
	return c
}

// openAgain is check.Environment.Again.
func (s *Store) openAgain(ctx context.Context) (again *check.Environment, done func() error, err error) {
	if err := s.lazy.loadAll(); err != nil {
		return nil, nil, err
	}
	other, err := Open(s.dir, &Options{ReadOnly: true, seam: seam.Options{Load: seam.LoadAtOpen, NoMapping: s.opts.seam.NoMapping, NoHints: s.opts.seam.NoHints, FS: s.opts.seam.FS, Until: ctx}})
	if err != nil {
		return nil, nil, err
	}
	if other.recovery.Indexed && other.Sequence() == s.Sequence() {
		again = other.checkEnvironment()
	}
	return again, other.Close, nil
}
