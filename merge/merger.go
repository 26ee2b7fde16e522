package merge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stavedb/stave/bitcask"
)

// Merger merges one store, when its policy says so or when told to. Its
// methods may be called from any goroutine.
type Merger struct {
	store  *bitcask.Store
	policy Policy
	logger *slog.Logger

	running sync.Mutex // held by the one merge that runs
	mu      sync.Mutex // guards status and last
	status  Status
	cancel  context.CancelFunc
	paused  bool
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
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Merger{store: store, policy: p, logger: logger}
}

// RunOptions steer one merge.
type RunOptions struct {
	// All takes every segment, the active one included (it is sealed first),
	// whatever the policy says. Default: false.
	All bool
	// Progress is called now and then with bytes read and to read. Default: nobody.
	Progress func(read, total int64)
	// Unlimited ignores Policy.BytesPerSecond. Default: false.
	Unlimited bool
}

// Plan says what a merge would do now. It changes nothing.
func (m *Merger) Plan(all bool) Plan {
	return m.policy.Pick(m.store.Segments(), m.store.SegmentSize(), all)
}

// Run merges once. It does nothing if the plan takes no segment. It fails with
// bitcask.ErrMergeBusy while another merge runs, and with the context's error
// when cancelled; the store is then as it was.
func (m *Merger) Run(ctx context.Context, o RunOptions) (Result, error) {
	if !m.running.TryLock() {
		return Result{}, bitcask.ErrMergeBusy
	}
	defer m.running.Unlock()
	if o.All {
		if err := m.store.Rotate(); err != nil {
			return Result{}, err
		}
	}
	plan := m.Plan(o.All)
	ids := plan.IDs()
	if len(ids) == 0 {
		return Result{SegmentsNow: len(plan.Choices)}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.begin(plan.Reads, cancel)
	start := time.Now()
	limit := newBucket(m.policy.BytesPerSecond)
	r, err := m.store.Rewrite(ctx, ids, bitcask.RewriteOptions{
		Throttle: func(n int) error {
			if o.Unlimited {
				return nil
			}
			return limit.take(ctx, n)
		},
		Progress: func(n int64) {
			read := m.advance(n)
			if o.Progress != nil {
				o.Progress(read, plan.Reads)
			}
		},
	})
	res := Result{
		Segments: len(r.In), Written: len(r.Out), BytesRead: r.BytesIn, BytesOut: r.BytesOut, Copied: r.Copied,
		Dropped: r.Dropped, SegmentsNow: len(m.store.Segments()), Took: time.Since(start),
	}
	m.end(res, err)
	return res, err
}

func (m *Merger) begin(total int64, cancel context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
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
	plan := m.Plan(false)
	if !plan.Triggered || len(plan.IDs()) == 0 || plan.Reclaims <= 0 && len(plan.IDs()) < 2 {
		return
	}
	r, err := m.Run(ctx, RunOptions{})
	switch {
	case err == nil:
		m.logger.Info("merged", "segments", r.Segments, "written", r.Written, "reclaimed", r.Reclaimed(), "took", r.Took)
	case errors.Is(err, context.Canceled), errors.Is(err, bitcask.ErrClosed), errors.Is(err, bitcask.ErrMergeBusy):
	default:
		m.logger.Error("merge failed", "err", err)
	}
}

// Stop cancels the running merge, if there is one.
func (m *Merger) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel != nil {
		m.cancel()
	}
}

// Pause keeps Tick from starting merges until Resume.
func (m *Merger) Pause() { m.setPaused(true) }

// Resume ends Pause.
func (m *Merger) Resume() { m.setPaused(false) }

func (m *Merger) setPaused(p bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = p
}

// Status is a look at the merge.
func (m *Merger) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.status
	st.Paused = m.paused
	return st
}
