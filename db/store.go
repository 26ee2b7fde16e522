package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
	"github.com/stavedb/stave/structures"
	"github.com/stavedb/stave/ttl"
)

// Errors of the package. Errors of the log (bitcask.ErrLocked,
// *bitcask.CorruptError and so on) come through as they are.
var (
	ErrNotFound  = bitcask.ErrNotFound
	ErrWrongType = structures.ErrWrongType // the key holds another type
	ErrClosed    = bitcask.ErrClosed
	ErrReadOnly  = bitcask.ErrReadOnly
	ErrNoSpace   = bitcask.ErrNoSpace  // the disk is full: deletes still work, the rest when there is space
	ErrFailed    = bitcask.ErrFailed   // a write or sync has failed: reopen the store
	ErrTooLarge  = bitcask.ErrTooLarge // a key, an element, a value or a commit is over its limit
)

// NoRoomError comes with ErrNoSpace where a delete or a merge found no space either, and says how much is missing.
type NoRoomError = bitcask.NoRoomError

// Store is an open store, seen through one of its namespaces. Its methods may
// be called from any goroutine.
type Store struct {
	*core
	ns int
}

// core is what the views of one store on its namespaces share.
type core struct {
	opts      Options   // FS is held
	held      *vfs.Held // the directory: TTL file and log are always of one
	base      *bitcask.Store
	deadlines *ttl.Deadlines // of keys
	fields    *ttl.Deadlines // of hashes that have fields with deadlines: none of these is earlier (hash_deadlines.go)
	clock     clock
	guard     guard
	handler   slog.Handler // of opts.Logger, but for safelog; nil: none
	names     methodNames  // for Options.Observe
	counters  counters
	watchers  watchers
	capture   atomic.Pointer[capture] // nil: nobody wants to know what commits amount to
	listeners listeners
	ordered   *orderedKeys   // nil without Options.OrderedKeys
	reloaded  *ttl.Deadlines // of a store that follows, while it is read again

	archiver   *archive.Archiver // nil: none
	merger     *merge.Merger
	mergeSoon  chan struct{} // has a value when MergeSoon has asked; see there
	noExpiry   atomic.Bool   // setExpiryCycle has stopped it
	expiryFrom atomic.Int64  // Unix nanoseconds before which nothing expires by itself: see holdExpiry
	idle       nap.Nap       // of the expiry cycle
	evictor    evictor
	disk       diskBound
	replica    replica // of a master: see origin.go

	stop context.CancelFunc
	work sync.WaitGroup
	once sync.Once
	fail error // of the first Close
}

type counters struct {
	expired       atomic.Uint64
	expiredFields atomic.Uint64
	evicted       atomic.Uint64
}

// Open opens the store in dir, making both if need be. nil options are the
// defaults. It fails with bitcask.ErrLocked if another process has the store,
// and with an error that names file and offset if something in it is damaged.
func Open(dir string, o *Options) (*Store, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("db: open %s: %w", dir, err)
	}
	c := &core{opts: options, mergeSoon: make(chan struct{}, 1)}
	c.disk.soon = make(chan struct{}, 1)
	c.guard.init()
	c.clock.wall = c.opts.seam.Clock
	if l := c.opts.Logger; l != nil {
		c.logTo(l.Handler())
	} else {
		c.logTo(nil)
	}
	if err := c.hold(dir); err != nil {
		if bitcask.NoSpace(err) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return nil, fmt.Errorf("db: %w", err) // which names the directory
	}
	base, err := c.openBase(dir)
	if err != nil {
		return nil, errors.Join(err, c.held.Close())
	}
	c.base = base
	c.fields = ttl.NewDeadlines()
	if err := base.EachFieldDeadline(c.fields.Set); err != nil {
		return nil, errors.Join(err, base.Close(), c.held.Close())
	}
	if c.opts.OrderedKeys {
		if c.ordered, err = newOrderedKeys(context.Background(), base); err != nil {
			return nil, errors.Join(err, base.Close(), c.held.Close())
		}
		c.watchers.active.Add(1) // every write is noted
	}
	if c.merger, err = merge.New(base, c.opts.Merge, c.opts.Logger); err != nil {
		return nil, errors.Join(err, base.Close(), c.held.Close())
	}
	s := &Store{core: c}
	s.clock.loadShown(base)
	if err := s.loadReplica(); err != nil {
		return nil, errors.Join(err, base.Close(), c.held.Close())
	}
	s.settle(writing)
	if err := s.SetEvict(c.opts.Evict); err != nil {
		panic("BUG: db: options that were not checked")
	}
	s.holdExpiry()
	c.startArchive()
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	if !c.opts.ReadOnly {
		c.work.Go(func() { s.expireLoop(ctx) })
		c.work.Go(func() { s.boundLoop(ctx) })
		if !c.opts.NoMerge {
			s.base.Attend()
			c.work.Go(func() {
				defer s.base.Leave()
				s.mergeLoop(ctx)
			})
		}
	}
	if c.opts.Follow {
		if err := s.follow(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// hold takes a handle of the directory: all files are reached from there, wherever its path leads later
// (I9).
func (c *core) hold(dir string) (err error) {
	if c.opts.ReadOnly || c.opts.ReadDamaged {
		c.held, err = vfs.Hold(c.opts.seam.FS, dir)
	} else {
		c.held, err = vfs.HoldNew(c.opts.seam.FS, dir)
	}
	if err == nil {
		c.opts.seam.FS = c.held
	}
	return err
}

// openBase opens the log with the deadlines: the TTL file if it fits, and what
// the log says since. Without a good TTL file the log says it all.
func (c *core) openBase(dir string) (*bitcask.Store, error) {
	o := c.opts.ofBase()
	var cp checkpoint
	o.Loading = func(store [16]byte, after uint64) (func(bitcask.DeadlineEvent), bool) {
		if c.base != nil {
			return c.loadingAgain()
		}
		c.deadlines = ttl.NewDeadlines() // the log may begin again: see bitcask.Options.Loading
		cp = c.readCheckpoint(dir, store, after)
		return func(ev bitcask.DeadlineEvent) { c.replayed(cp, ev) }, cp.fits
	}
	base, err := bitcask.Open(dir, o)
	if err != nil {
		return nil, err
	}
	agrees := c.agrees(base, cp)
	if (cp.stale || !agrees) && !c.opts.ReadOnly { // before the first write: it may fit a log that has grown
		if err := ttl.Remove(c.opts.seam.FS, dir); err != nil {
			return nil, errors.Join(err, base.Close())
		}
	}
	if agrees {
		return base, nil
	}
	c.opts.Logger.Warn("TTL file does not fit the log; rebuilding the deadlines", "dir", dir)
	if err := base.Close(); err != nil {
		return nil, err
	}
	o.Loading = func([16]byte, uint64) (func(bitcask.DeadlineEvent), bool) {
		if c.base != nil {
			return c.loadingAgain()
		}
		c.deadlines = ttl.NewDeadlines()
		return func(ev bitcask.DeadlineEvent) { c.replayed(checkpoint{}, ev) }, false
	}
	return bitcask.Open(dir, o)
}

// Close ends background work, writes the TTL checkpoint, makes everything
// durable and releases the directory. It waits for running transactions, and
// fails with ErrNested within one of the caller's own. A second call returns
// what the first did.
func (s *Store) Close() error {
	if err := s.guard.check(); err != nil {
		return err
	}
	s.once.Do(func() {
		defer s.close() // also if a wake of Enqueue panics
		s.stop()
		s.watchers.shut()
	})
	return s.fail
}

// close is the part of Close that calls no user code.
func (s *Store) close() {
	s.work.Wait()
	var err error
	if !s.opts.ReadOnly && s.base.Err() == nil {
		err = s.closeCheckpoint()
	}
	err = errors.Join(err, s.base.Close())
	s.endArchive()
	s.fail = errors.Join(err, s.held.Close())
	for _, l := range s.listeners.all() {
		l.shut()
	}
}

// Use returns the store seen through another namespace.
func (s *Store) Use(namespace int) (*Store, error) {
	if namespace < 0 || namespace >= s.opts.Namespaces {
		return nil, ErrNamespace
	}
	return &Store{core: s.core, ns: namespace}, nil
}

// Namespace is the number of the namespace of this view.
func (s *Store) Namespace() int { return s.ns }

// Namespaces is how many namespaces there are.
func (s *Store) Namespaces() int { return s.opts.Namespaces }

// View runs fn in a transaction that reads everything at one moment. It runs
// alongside other readers; writers wait for it. A read error met by an iterator
// is returned.
//
// A use of the store within fn fails with ErrNested if it would wait for fn. That is noticed by the stack of the
// goroutine: so fn must not wait for another goroutine that uses the store, nor be suspended, as within the function of
// an iter.Pull, while the caller uses it. Both wait for ever.
func (s *Store) View(fn func(*Tx) error) error { return s.run(false, nil, fn) }

// Update runs fn in a transaction that runs alone, over whatever keys it turns
// out to touch, and commits it as one: after an error or a panic, nothing has
// happened. What View says of ErrNested holds here as well.
func (s *Store) Update(fn func(*Tx) error) error { return s.run(true, nil, fn) }

// ViewKeys is View for a closure that touches no keys but these; others are
// not locked.
func (s *Store) ViewKeys(keys []string, fn func(*Tx) error) error { return s.run(false, keys, fn) }

// UpdateKeys is Update for a closure that touches no keys but these (of any namespace):
// transactions on other keys run alongside it.
func (s *Store) UpdateKeys(keys []string, fn func(*Tx) error) error { return s.run(true, keys, fn) }

// run is View and Update. Without keys everything is locked.
func (s *Store) run(write bool, keys []string, fn func(*Tx) error) (err error) {
	if err := s.guard.check(); err != nil {
		return err
	}
	observation := s.observation()
	s.settle(access(write))
	var base *bitcask.Tx
	if keys != nil {
		base, err = s.base.Begin(write, keys...)
	} else {
		base, err = s.base.BeginAll(write)
	}
	if err != nil {
		return err
	}
	t := s.newTx(base, write)
	t.observation = observation
	defer s.observed(observation)
	defer t.abandon() // after a panic of fn
	return t.end(s.guard.call(fn, t))
}

// Flush empties the namespace, whatever its size, in one small commit. The memory of its content is
// released in the background.
func (s *Store) Flush() error { return s.flush(func() []int { return []int{s.ns} }, "FLUSHDB") }

// FlushAll empties every namespace in one small commit.
func (s *Store) FlushAll() error { return s.flush(s.base.Namespaces, "FLUSHALL") }

// flush drops the namespaces that list returns, with everything locked. The command does the same in that of s.
func (s *Store) flush(list func() []int, command string) error {
	return s.withAll(func(t *bitcask.Tx, noticed *[]nsKey) (uint64, error) {
		namespaces := list()
		if err := s.refusesWrites(); err != nil {
			return 0, err
		}
		s.captureWhole(t, command)
		dropped, ticket, err := t.Flush(namespaces...)
		return s.flushed(dropped, ticket, err, noticed, namespaces)
	})
}

// flushed is what follows the commit of a flush.
func (s *Store) flushed(dropped []uint32, ticket uint64, err error, noticed *[]nsKey, namespaces []int) (uint64, error) {
	if err == nil {
		*noticed = s.watchers.missedIn(namespaces)
	}
	s.forgetSpaces(dropped)
	s.notifyNamespaces(structures.EventFlushed, ticket, err, namespaces...)
	return ticket, err
}

// Swap exchanges the contents of two namespaces in one small commit.
func (s *Store) Swap(a, b int) error {
	if max(a, b) >= s.opts.Namespaces || min(a, b) < 0 {
		return ErrNamespace
	}
	return s.withAll(func(t *bitcask.Tx, noticed *[]nsKey) (uint64, error) {
		if a == b {
			return 0, nil // as in Redis: nothing changes, also for watches of a key
		}
		if err := s.refusesWrites(); err != nil {
			return 0, err
		}
		keys := s.notifySwapped(t, a, b)
		s.captureWhole(t, "SWAPDB", strconv.Itoa(a), strconv.Itoa(b))
		ticket, err := t.Swap(a, b)
		if err == nil {
			*noticed = keys
		}
		s.notifyNamespaces(structures.EventSwapped, ticket, err, a, b)
		return ticket, err
	})
}

// withAll runs fn with every key locked, and waits until its commit is durable. Waiters for what fn has noticed are
// served then.
func (s *Store) withAll(fn func(t *bitcask.Tx, noticed *[]nsKey) (uint64, error)) (err error) {
	var noticed []nsKey
	defer func() { // also if a listener has panicked: the commit stands
		if failed := s.serveAll(noticed); err == nil {
			err = failed
		}
	}()
	if err := s.guard.check(); err != nil {
		return err
	}
	observation := s.observation()
	defer s.observed(observation) // also if a listener has panicked: the commit stands
	ticket, err := s.lockedAll(func(t *bitcask.Tx) (uint64, error) { return fn(t, &noticed) })
	if err == nil {
		err = s.base.WaitDurable(ticket)
	}
	if observation != nil {
		observation.op.Err = err
	}
	return err
}

func (s *Store) lockedAll(fn func(*bitcask.Tx) (uint64, error)) (uint64, error) {
	t, err := s.base.BeginAll(true)
	defer t.Recycle()
	if err != nil {
		return 0, err
	}
	return fn(t)
}

// Sync makes every write so far durable.
func (s *Store) Sync() error { return s.base.Sync() }

// SyncMode is when acknowledged writes are on disk at present: Options.Sync, or what SetSync has said since.
func (s *Store) SyncMode() SyncMode { return s.base.SyncMode() }

// SetSync changes when acknowledged writes are on disk, while the store is used. Once it has returned nil for
// SyncAlways, every write that is or will be acknowledged is on disk. After an error the mode is what it was. See
// bitcask.Store.SetSync.
func (s *Store) SetSync(mode SyncMode) error { return s.base.SetSync(mode) }

// Finding is what Store.Check reports: see [bitcask.Finding].
type Finding = bitcask.Finding

// CheckResult counts what Store.Check has read: see [bitcask.CheckResult].
type CheckResult = bitcask.CheckResult

// Check verifies everything the format promises. See bitcask.Store.Check.
// report runs with keys locked: it cannot use the store.
func (s *Store) Check(ctx context.Context, report func(bitcask.Finding)) (bitcask.CheckResult, error) {
	if err := s.guard.check(); err != nil {
		return bitcask.CheckResult{}, err
	}
	return s.base.Check(ctx, func(f bitcask.Finding) { s.guard.run(func() { report(f) }) })
}

// CheckReplay is Check, and compares what the store holds with what a replay of all of its log makes, while writes wait.
// See bitcask.Store.CheckReplay. report runs with keys locked: it cannot use the store.
func (s *Store) CheckReplay(ctx context.Context, report func(bitcask.Finding)) (bitcask.CheckResult, error) {
	if err := s.guard.check(); err != nil {
		return bitcask.CheckResult{}, err
	}
	return s.base.CheckReplay(ctx, func(f bitcask.Finding) { s.guard.run(func() { report(f) }) })
}

// Merge runs one merge to its end, picking segments as Options.Merge says, or
// all of them with o.All. It fails with bitcask.ErrMergeBusy while another
// runs. o.Progress cannot use the store.
func (s *Store) Merge(ctx context.Context, o merge.RunOptions) (merge.Result, error) {
	if err := s.guard.check(); err != nil {
		return merge.Result{}, err
	}
	if progress := o.Progress; progress != nil {
		o.Progress = func(read, total int64) { s.guard.run(func() { progress(read, total) }) }
	}
	return s.merger.Run(ctx, o)
}

// Backup makes a copy of the store in dir, which must not exist or be empty: the store at one moment between two
// commits, while reads and writes continue. See bitcask.Store.Backup.
func (s *Store) Backup(ctx context.Context, dir string) (bitcask.BackupResult, error) {
	return s.base.Backup(ctx, dir)
}

// BackupSince is Backup with the help of an earlier backup: what that has is verified and shared with it, and only the
// rest copied. See bitcask.Store.BackupSince.
func (s *Store) BackupSince(ctx context.Context, dir, earlier string) (bitcask.BackupResult, error) {
	return s.base.BackupSince(ctx, dir, earlier)
}

// BackupTo writes a copy of the store to w as a tar archive: the store at one moment between two commits, while reads
// and writes continue. Extracted into an empty directory it is a store of its own. w may use the store. See
// bitcask.Store.BackupTo.
func (s *Store) BackupTo(ctx context.Context, w io.Writer) (bitcask.BackupResult, error) {
	return s.base.BackupTo(ctx, w)
}

// Merger is the background merge, to watch and to steer. Its Run, other than
// Store.Merge, does not notice that it is called within a transaction.
func (s *Store) Merger() *merge.Merger { return s.merger }

// Log is the log under the store, for tools that read segments. It does not
// notice that it is used within a transaction of the store.
func (s *Store) Log() *bitcask.Store { return s.base }
