package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/internal/safelog"
)

// Options of an Archiver. To is required.
type Options struct {
	// To is where the objects go.
	To Store
	// Keep is for how long moments stay restorable. Older ones go when a base is old enough to replace them, which is
	// made twice in this time. Default: for ever.
	Keep time.Duration
	// KeepBytes is how large the archive of this store may become before its oldest moments go, whatever Keep says. The
	// newest base and what follows it stay, so it may be more. Default: no limit.
	KeepBytes int64
	// Every is how often commits are archived, and the log is marked with the time. Default: 1 s.
	Every time.Duration
	// Backlog is how many bytes of segments are kept that merges would remove, while the archive cannot be written to.
	// Default: 1 GiB.
	Backlog int64
	// Logger receives failures, and that they have passed. Default: silent.
	Logger *slog.Logger

	// Of tests.
	now      func() int64              // Unix ms
	waits    func(n int) time.Duration // before try n of what has failed
	leastLog int64                     // how many bytes of log a base is followed by, at least, before their length is a reason for the next one

	compactFrom int // how many log objects become one; 0: compactFrom
}

const (
	// objectBytes is from how many bytes on a log object is put without waiting for the next mark.
	objectBytes = 8 << 20
	// maxMarks is how many marks wait for their commits. Of more, every second one goes.
	maxMarks = 1 << 16
	// endWithin is how long Close tries to archive the rest.
	endWithin = 10 * time.Second
)

// Status is how an archiver is doing.
type Status struct {
	Generation string    `json:"generation"`
	Sequence   uint64    `json:"sequence"` // everything up to it is in the archive
	Time       time.Time `json:"time"`     // when the store was there
	Behind     uint64    `json:"behind"`   // how many records of the store are not in the archive yet
	Bases      int       `json:"bases"`    // of this generation: with none, nothing of it can be restored yet
	Objects    int       `json:"objects"`
	Bytes      int64     `json:"bytes"` // of this store's objects
	Gaps       uint64    `json:"gaps"`  // how often commits were lost to the archive, since the archiver began
	Err        string    `json:"error"` // why the log, or else a base, cannot be archived at present; "": they can
}

// An Archiver archives one store until Close. It is made by Start. Its methods may be called by any goroutine.
type Archiver struct {
	s    *bitcask.Store
	o    Options
	to   string        // of o.To, for the logger
	end  chan struct{} // closed by Close
	once sync.Once
	done chan struct{} // closed when run has ended

	mu     sync.Mutex // guards all below
	status Status
	errs   map[string]string // of failed, by what
	broken bool              // the next session begins a new generation
	fail   error             // of Close
}

// Start begins to archive a store that is open for writing. It does not wait for the archive: Status says what fails.
func Start(s *bitcask.Store, o Options) *Archiver {
	o.Logger = safelog.New(o.Logger)
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Backlog <= 0 {
		o.Backlog = 1 << 30
	}
	if o.now == nil {
		o.now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.waits == nil {
		o.waits = func(n int) time.Duration { return min(time.Second<<min(n, 5), 30*time.Second) }
	}
	if o.leastLog == 0 {
		o.leastLog = 64 << 20
	}
	a := &Archiver{s: s, o: o, end: make(chan struct{}), done: make(chan struct{}), errs: map[string]string{}, to: fmt.Sprintf("%T", o.To)}
	if named, ok := o.To.(fmt.Stringer); ok {
		a.to = named.String()
	}
	a.o.To = guarded{o.To}
	go a.run()
	return a
}

// Status says how it is doing.
func (a *Archiver) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	st := a.status
	if now := a.s.Sequence(); now > st.Sequence {
		st.Behind = now - st.Sequence
	}
	return st
}

// Close archives what the store has left and ends. The store is closed before, so that all its commits are on the disk.
// It tries for some seconds; the next Archiver of the store goes on where it has ended. The error is why the rest is not
// in the archive.
func (a *Archiver) Close() error {
	a.once.Do(func() { close(a.end) })
	select {
	case <-a.done:
	case <-time.After(2 * endWithin):
		return errors.New("the archive does not answer")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fail
}

// run archives in sessions: each ends with an error, or the archiver.
func (a *Archiver) run() {
	defer close(a.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // what waits is given up some time after Close
		select {
		case <-ctx.Done():
			return
		case <-a.end:
		}
		select {
		case <-ctx.Done():
		case <-time.After(endWithin):
			cancel()
		}
	}()
	for try := 0; ; try++ {
		begun := time.Now()
		err := a.session(ctx)
		if err == nil || ctx.Err() != nil {
			a.mu.Lock()
			a.fail = err
			a.mu.Unlock()
			return
		}
		if time.Since(begun) > time.Minute {
			try = 0
		}
		if a.gap(err) && try == 0 {
			continue
		}
		a.failed("log", err)
		if !a.sleep(ctx, a.o.waits(try)) {
			a.mu.Lock()
			a.fail = err
			a.mu.Unlock()
			return
		}
	}
}

// gap notes that commits are missing, if err says so: the next session begins a new generation.
func (a *Archiver) gap(err error) bool {
	missing, future := (*feed.MissingCommitsError)(nil), (*feed.FutureError)(nil)
	if !errors.As(err, &missing) && !errors.As(err, &future) && !errors.Is(err, bitcask.ErrReplaced) && !errors.Is(err, errOther) {
		return false
	}
	a.mu.Lock()
	a.status.Gaps++
	a.broken = true
	after := a.status.Sequence
	a.mu.Unlock()
	a.o.Logger.Warn("the archive has a gap: it begins again with a base", "to", a.to, "after", after, "cause", err)
	return true
}

// failed notes an error of the log or of a base, and logs it if it is another one than before; nil says that it has passed.
func (a *Archiver) failed(what string, err error) {
	text := ""
	if err != nil {
		text = what + ": " + err.Error()
	}
	a.mu.Lock()
	was := a.errs[what]
	a.errs[what] = text
	a.status.Err = cmp.Or(a.errs["log"], a.errs["base"])
	a.mu.Unlock()
	switch {
	case text == was:
	case what == "compaction" && err != nil:
		if was == "" { // each object that it tries has another error
			a.o.Logger.Error("log objects of the archive do not become fewer", "to", a.to, "cause", err)
		}
	case err == nil:
		a.o.Logger.Info("archiving goes on", "to", a.to, "what", what)
	default:
		a.o.Logger.Error("nothing can be archived", "to", a.to, "what", what, "cause", err)
	}
}

// sleep waits, and reports false if what waits is given up. When Close is called it returns at once, and from then on
// waits for no more than a second, so that there is another try.
func (a *Archiver) sleep(ctx context.Context, d time.Duration) bool {
	end := a.end
	if a.ending() {
		end, d = nil, min(d, time.Second)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-end:
	case <-t.C:
	}
	return true
}

func (a *Archiver) ending() bool {
	select {
	case <-a.end:
		return true
	default:
		return false
	}
}

// put puts an object, and says how many tries that took; the error is the context's.
func (a *Archiver) put(ctx context.Context, o id, size int64, put func() error) (tries int, err error) {
	for tries = 1; ; tries++ {
		err := put()
		if err == nil {
			a.counted(o, size)
			a.failed("log", nil)
			return tries, nil
		}
		if ctx.Err() != nil {
			return tries, errors.Join(ctx.Err(), err)
		}
		a.failed("log", err)
		if !a.sleep(ctx, a.o.waits(tries-1)) {
			return tries, errors.Join(ctx.Err(), err)
		}
	}
}

// counted counts an object that was put.
func (a *Archiver) counted(o id, size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Objects++
	a.status.Bytes += size
	switch o.kind {
	case kindBase:
		a.status.Bases++
		if a.status.Sequence == 0 { // the log has nothing of this generation yet
			a.status.Sequence, a.status.Time = o.last, time.UnixMilli(o.from)
		}
	case kindLog:
		a.status.Sequence = o.last
		if o.to != 0 {
			a.status.Time = time.UnixMilli(o.to)
		}
	}
}

// count counts the objects of the store anew.
func (a *Archiver) count(own []*inventory) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Objects, a.status.Bytes, a.status.Bases = 0, 0, 0
	for _, inv := range own {
		a.status.Objects += len(inv.sizes)
		a.status.Bytes += inv.bytes
		if inv.name() == a.status.Generation {
			a.status.Bases = len(inv.bases)
		}
	}
}
