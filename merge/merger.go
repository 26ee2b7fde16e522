package merge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/backoff"
	"github.com/stavedb/stave/internal/shield"
)

// Merger merges one store, when its policy says so or when told to. Its
// methods may be called from any goroutine.
type Merger struct {
	store  *bitcask.Store
	policy Policy
	logger *slog.Logger

	running sync.Mutex // held by the one merge that runs
	mu      sync.Mutex // guards all below
	status  Status
	cancel  context.CancelFunc
	byTick  bool // the one that runs was started by Tick
	paused  bool
	avoided map[string]*backoff.Backoff // by file: what Tick leaves out

	// Of Tick, which one goroutine calls:
	retry backoff.Backoff // after failures that no file explains
	tried []uint32        // what the last of these was about
}

// Status is a look at the merge.
type Status struct {
	Running  bool      `json:"running"`
	Paused   bool      `json:"paused"`
	Read     int64     `json:"read"`     // bytes, of the running merge
	ToRead   int64     `json:"to_read"`  // bytes, of the running merge
	Merges   uint64    `json:"merges"`   // done since Open
	Failures uint64    `json:"failures"` // since Open
	LastErr  string    `json:"last_error,omitempty"`
	Last     Result    `json:"last"`
	LastAt   time.Time `json:"last_at"`
}

// Result is what a merge did.
type Result struct {
	Segments    int           `json:"segments"`     // read
	Written     int           `json:"written"`      // segments
	BytesRead   int64         `json:"bytes_read"`   // of them
	BytesOut    int64         `json:"bytes_out"`    // written
	Copied      uint64        `json:"copied"`       // records
	Dropped     uint64        `json:"dropped"`      // records
	SegmentsNow int           `json:"segments_now"` // in the store afterwards
	Took        time.Duration `json:"took_ns"`
}

// Reclaimed is how many bytes shorter the store is for the merge.
func (r Result) Reclaimed() int64 { return r.BytesRead - r.BytesOut }

// New returns the merger of a store. It starts nothing.
func New(store *bitcask.Store, p Policy, logger *slog.Logger) *Merger {
	return &Merger{store: store, policy: p, logger: shield.Logger(logger)}
}

// RunOptions steer one merge.
type RunOptions struct {
	// All takes every segment, the active one included (it is sealed first),
	// whatever the policy says. Default: false.
	All bool
	// Progress is called now and then with bytes read and to read, on one goroutine
	// or another, never twice at a time. If it panics, or ends its goroutine, the
	// merge ends as if it were cancelled, and then Run does. Default: nobody.
	Progress func(read, total int64)
	// Unlimited ignores Policy.BytesPerSecond. Default: false.
	Unlimited bool
}

// Plan says what a merge would do now. It changes nothing.
func (m *Merger) Plan(all bool) Plan { return m.plan(all, false) }

func (m *Merger) plan(all, byTick bool) Plan {
	return m.policy.Pick(m.segments(byTick), m.store.SegmentSize(), all)
}

// Run merges once. It does nothing if the plan takes no segment. It fails with
// bitcask.ErrMergeBusy while another merge runs, with the context's error when
// cancelled, and with a *bitcask.CorruptError if a live record does not verify:
// its segment stays. What has been merged by then stays merged.
func (m *Merger) Run(ctx context.Context, o RunOptions) (Result, error) { return m.run(ctx, o, false) }

func (m *Merger) run(ctx context.Context, o RunOptions, byTick bool) (Result, error) {
	if !m.running.TryLock() {
		return Result{}, bitcask.ErrMergeBusy
	}
	defer m.running.Unlock()
	if o.All {
		// On a full disk it goes on without the active segment.
		if err := m.store.Rotate(); err != nil && !bitcask.NoSpace(err) {
			return Result{}, err
		}
	}
	plan := m.plan(o.All, byTick)
	full := m.store.Full()
	if len(plan.IDs()) == 0 && !full {
		return Result{SegmentsNow: len(plan.Choices)}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.begin(plan.Reads, cancel, byTick)
	r := running{
		Merger: m, ctx: ctx, o: o, byTick: byTick, reads: plan.Reads,
		limit: newBucket(m.policy.withDefaults(m.store.SegmentSize()).BytesPerSecond, m.store.Appended),
	}
	start := time.Now()
	outcome := errProgress
	defer func() { m.end(r.res, outcome) }()
	var err error
	if !full {
		err = r.rewrite(plan.IDs())
	}
	if full || bitcask.NoSpace(err) {
		err = r.frugal(err)
	}
	r.res.SegmentsNow, r.res.Took = len(m.store.Segments()), time.Since(start)
	outcome = err
	return r.res, err
}

// running is a merge that runs.
type running struct {
	*Merger
	ctx    context.Context
	o      RunOptions
	byTick bool
	reads  int64
	limit  *bucket
	res    Result
}

// rewrite merges some segments.
func (r *running) rewrite(ids []uint32) error {
	done, err := r.store.Rewrite(r.ctx, ids, bitcask.RewriteOptions{
		Throttle: func(n int) error {
			if r.o.Unlimited {
				return nil
			}
			return r.limit.take(r.ctx, n)
		},
		Progress: func(n int64) {
			read := r.advance(n)
			if r.o.Progress != nil {
				r.o.Progress(read, max(r.reads, read))
			}
		},
	})
	r.res.Segments += len(done.In)
	r.res.Written += len(done.Out)
	r.res.BytesRead += done.BytesIn
	r.res.BytesOut += done.BytesOut
	r.res.Copied += done.Copied
	r.res.Dropped += done.Dropped
	return err
}

// errProgress is how a merge ends of which Progress panicked.
var errProgress = errors.New("merge: Progress has panicked, or has ended its goroutine")

func (m *Merger) begin(total int64, cancel context.CancelFunc, byTick bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byTick = byTick
	if byTick && m.paused { // since Tick looked
		cancel()
	}
	m.status.Running, m.status.Read, m.status.ToRead = true, 0, total
	m.cancel = cancel
}

func (m *Merger) advance(n int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Read += n
	return m.status.Read
}

func (m *Merger) end(r Result, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Running, m.cancel = false, nil
	if err != nil {
		m.status.Failures++
		m.status.LastErr = err.Error()
		return
	}
	m.status.Merges++
	m.status.Last, m.status.LastAt, m.status.LastErr = r, time.Now(), ""
}

// Tick merges if the policy's trigger says so. The owner of a store calls it
// now and then, from one goroutine; it returns when the merge is done.
func (m *Merger) Tick(ctx context.Context) {
	m.mu.Lock()
	paused := m.paused
	m.mu.Unlock()
	if paused {
		return
	}
	ids := m.due()
	if len(ids) == 0 || !m.retry.Due() && slices.Equal(ids, m.tried) {
		return
	}
	r, err := m.run(ctx, RunOptions{}, true)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, bitcask.ErrClosed), errors.Is(err, bitcask.ErrMergeBusy):
	case err != nil:
		if m.failed(ids, err) {
			m.logger.Error("merge failed", "err", err)
		}
	default:
		m.retry.Worked()
		m.tried = nil
		m.logger.Info("merged", "segments", r.Segments, "written", r.Written, "reclaimed", r.Reclaimed(), "took", r.Took)
	}
}

// due returns what there is to merge, if anything; nothing if no trigger says so.
func (m *Merger) due() []uint32 {
	if m.store.Full() {
		segments := m.segments(true)
		plan := m.policy.frugal(segments, 0, false)
		if i := slices.IndexFunc(segments, m.wasted); len(plan.IDs()) == 0 && i >= 0 {
			return []uint32{segments[i].ID}
		}
		return plan.IDs()
	}
	plan := m.plan(false, true)
	if !plan.Triggered || plan.Reclaims <= 0 && len(plan.IDs()) < 2 {
		return nil
	}
	return plan.IDs()
}

// Stop cancels the running merge, if there is one.
func (m *Merger) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel != nil {
		m.cancel()
	}
}

// Pause ends a merge that Tick has started, which keeps what it has done, and
// keeps Tick from starting others until Resume.
func (m *Merger) Pause() { m.setPaused(true) }

// Resume ends Pause.
func (m *Merger) Resume() { m.setPaused(false) }

func (m *Merger) setPaused(p bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = p
	if p && m.byTick && m.cancel != nil {
		m.cancel()
	}
}

// Status is a look at the merge.
func (m *Merger) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.status
	st.Paused = m.paused
	return st
}
