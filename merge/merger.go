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
	"github.com/stavedb/stave/internal/safelog"
)

// Merger merges one store, when its policy says so or on request. Its
// methods may be called from any goroutine, Tick from one.
type Merger struct {
	store  *bitcask.Store
	policy Policy
	logger *slog.Logger

	running    sync.Mutex // held by the one merge that runs
	mu         sync.Mutex // guards the fields up to skipped
	status     Status
	cancel     context.CancelFunc
	background bool // Tick started the running merge
	paused     bool
	skipped    map[string]*backoff.Backoff // by file: segments that Tick leaves out

	compact map[uint32]int64 // live bytes of segments when a merge on a full disk had written them; whoever holds running

	// For Tick, which one goroutine calls:
	retry     backoff.Backoff // after failures not caused by one file
	failedDue dueMerge        // what the last of these failures was of
	refresh   bool            // it is the turn of segments that hold tombstones back: see pickBounded
}

// Status is the state of a Merger and the result of its last merge.
type Status struct {
	Running  bool      `json:"running"`
	Paused   bool      `json:"paused"`
	Read     int64     `json:"read"`     // bytes, of the running merge
	ToRead   int64     `json:"to_read"`  // bytes, of the running merge
	Merges   uint64    `json:"merges"`   // done since Open
	Failures uint64    `json:"failures"` // since Open
	LastErr  string    `json:"last_error,omitempty"`
	Last     Result    `json:"last"`
	LastAt   time.Time `json:"last_at,omitzero"`
}

// Result reports what a merge did.
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

// Reclaimed is how many bytes shorter the merge made the store.
func (r Result) Reclaimed() int64 { return r.BytesRead - r.BytesOut }

// New returns the merger of a store. It starts no goroutine. It fails as Policy.Check does.
func New(store *bitcask.Store, p Policy, logger *slog.Logger) (*Merger, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &Merger{store: store, policy: p, logger: safelog.New(logger)}, nil
}

// RunOptions are the options of one merge.
type RunOptions struct {
	// All takes every segment, the active one included (it is sealed first),
	// whatever the policy says. Default: false.
	All bool
	// Progress is called repeatedly with the bytes read and to read, never twice at a
	// time, on any goroutine. If it panics or ends its goroutine, the merge is
	// cancelled, and then Run panics or ends likewise. Default: none.
	Progress func(read, total int64)
	// Unlimited ignores Policy.BytesPerSecond. Default: false.
	Unlimited bool
}

// Plan returns what a merge would do now. It changes nothing.
func (m *Merger) Plan(all bool) Plan { return m.plan(all, false) }

func (m *Merger) plan(all, background bool) Plan {
	if background && m.store.NearBound() {
		_, _, bound := m.store.DirectoryBytes()
		return m.policy.pickBounded(m.segments(background), m.store.SegmentSize(), bound, m.refresh)
	}
	return m.policy.Pick(m.segments(background), m.store.SegmentSize(), all)
}

// Run merges once. It does nothing if the plan takes no segment. It fails with
// bitcask.ErrMergeBusy while another merge runs, and with the context's error when
// cancelled. What has been merged by then stays merged.
//
// I7: if a live record does not verify, Run fails with a *bitcask.CorruptError that
// names file and offset, and the segment stays.
func (m *Merger) Run(ctx context.Context, o RunOptions) (Result, error) { return m.run(ctx, o, false) }

// run is Run, started by hand or by Tick in the background.
func (m *Merger) run(ctx context.Context, o RunOptions, background bool) (Result, error) {
	if !m.running.TryLock() {
		return Result{}, bitcask.ErrMergeBusy
	}
	defer m.store.Tried()
	defer m.running.Unlock()
	if o.All {
		// On a full disk the merge proceeds without the active segment.
		if err := m.store.Rotate(); err != nil && !bitcask.NoSpace(err) {
			return Result{}, err
		}
	}
	plan := m.plan(o.All, background)
	full := m.store.Full()
	if len(plan.IDs()) == 0 && !full {
		return Result{SegmentsNow: len(plan.Choices)}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.begin(plan.Reads, cancel, background)
	r := activeMerge{
		Merger: m, ctx: ctx, o: o, background: background, reads: plan.Reads,
		throttle: newThrottle(m.policy.withDefaults(m.store.SegmentSize()).BytesPerSecond, m.store.Appended),
	}
	start := time.Now()
	outcome := errProgress
	defer func() { m.end(r.res, outcome) }()
	var err error
	if !full {
		err = r.rewrite(plan.IDs(), false)
	}
	if full || bitcask.NoSpace(err) {
		err = r.mergeFullDisk(err)
	}
	r.res.SegmentsNow, r.res.Took = len(m.store.Segments()), time.Since(start)
	outcome = err
	return r.res, err
}

// activeMerge is a running merge.
type activeMerge struct {
	*Merger
	ctx        context.Context
	o          RunOptions
	background bool
	outs       []uint32 // what the last rewrite has written
	reads      int64
	throttle   *throttle
	res        Result
}

// rewrite merges some segments.
func (r *activeMerge) rewrite(ids []uint32, oneOutput bool) error {
	done, err := r.store.Rewrite(r.ctx, ids, bitcask.RewriteOptions{
		OneOutput: oneOutput,
		Throttle: func(n int) error {
			if r.o.Unlimited || r.store.DeletesLackRoom() || r.store.NearBound() { // deletes wait for it, or writers will
				return nil
			}
			return r.throttle.take(r.ctx, n)
		},
		Progress: func(n int64) {
			read := r.advance(n)
			if r.o.Progress != nil {
				r.o.Progress(read, max(r.reads, read))
			}
		},
	})
	r.outs = done.Out
	r.res.Segments += len(done.In)
	r.res.Written += len(done.Out)
	r.res.BytesRead += done.BytesIn
	r.res.BytesOut += done.BytesOut
	r.res.Copied += done.Copied
	r.res.Dropped += done.Dropped
	return err
}

// errProgress is the outcome of a merge whose Progress panicked.
var errProgress = errors.New("merge: Progress has panicked, or has ended its goroutine")

// begin records the start of a merge. A Pause since Tick checked cancels it at once.
func (m *Merger) begin(total int64, cancel context.CancelFunc, background bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.background = background
	if background && m.paused { // since Tick checked
		cancel()
	}
	m.status.Running, m.status.Read, m.status.ToRead = true, 0, total
	m.cancel = cancel
}

// advance adds to the bytes read and returns their sum.
func (m *Merger) advance(n int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Read += n
	return m.status.Read
}

// end records the outcome of a merge.
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
// periodically, from one goroutine; it returns when the merge is done.
func (m *Merger) Tick(ctx context.Context) {
	m.mu.Lock()
	paused := m.paused
	m.mu.Unlock()
	if paused {
		m.store.Tried()
		return
	}
	m.refresh = !m.refresh
	due := m.due()
	if len(due.ids) == 0 || !m.retry.Due() && due.noBetterThan(&m.failedDue) {
		m.store.Tried()
		return
	}
	r, err := m.run(ctx, RunOptions{}, true)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, bitcask.ErrClosed), errors.Is(err, bitcask.ErrMergeBusy):
	case err != nil:
		if m.failed(due, err) {
			m.logger.Error("merge failed", "err", err)
		}
	default:
		m.retry.Worked()
		m.failedDue = dueMerge{}
		m.logger.Info("merged", "segments", r.Segments, "written", r.Written, "reclaimed", r.Reclaimed(), "took", r.Took)
	}
}

// dueMerge is what a merge by Tick begins with.
type dueMerge struct {
	ids    []uint32
	writes int64 // bytes
	take   thoroughness
}

// noBetterThan reports whether a merge would begin as another one, with as much to write.
func (d *dueMerge) noBetterThan(other *dueMerge) bool {
	return slices.Equal(d.ids, other.ids) && d.writes >= other.writes && d.take <= other.take
}

// due returns the segments that a trigger says to merge now, if any.
func (m *Merger) due() dueMerge {
	if m.store.Full() {
		segments, take := m.segments(true), worthwhile
		if m.store.DeletesLackRoom() {
			take = anySealed
		}
		plan := m.policy.pickFullDisk(segments, 0, firstLive(m.store.Segments()), take)
		if i := slices.IndexFunc(segments, m.isDeadActive); len(plan.IDs()) == 0 && i >= 0 {
			return dueMerge{ids: []uint32{segments[i].ID}}
		}
		return dueMerge{plan.IDs(), plan.Writes, take}
	}
	plan := m.plan(false, true)
	if !plan.Triggered || plan.Reclaims <= 0 && len(plan.IDs()) < 2 && !(m.refresh && m.store.NearBound()) {
		return dueMerge{}
	}
	return dueMerge{ids: plan.IDs(), writes: plan.Writes}
}

// Stop cancels the running merge, if there is one.
func (m *Merger) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel != nil {
		m.cancel()
	}
}

// Pause cancels a merge that Tick has started, which keeps what it has merged, and
// keeps Tick from starting others until Resume.
func (m *Merger) Pause() { m.setPaused(true) }

// Resume ends Pause.
func (m *Merger) Resume() { m.setPaused(false) }

// setPaused sets paused and cancels a running merge of Tick.
func (m *Merger) setPaused(p bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = p
	if p && m.background && m.cancel != nil {
		m.cancel()
	}
}

// Status returns the state of the merger.
func (m *Merger) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.status
	st.Paused = m.paused
	return st
}
