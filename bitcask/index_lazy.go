package bitcask

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/keydir"
)

// Loading the INDEX after Open. A store whose INDEX has lazyFrom bytes or more serves before it has loaded any of it.
// Whoever locks a stripe first loads it; a goroutine in the background loads all the others. A lock-free get does not load
// a stripe, nor wait for one: it searches the section in the file, which is a fifth of the work of loading it, and asks
// the background to load that stripe next. If the section is long, or not in memory, it takes the lock as other readers do.
//
// Whoever holds a stripe's lock, however it got it, may rely on two sentences:
//
//   - The stripe is loaded, unless the lock was taken by Lock or RLock itself. Those who do that have called
//     loadStripe before, with nothing locked, or do not touch the keydir: lockWhole, lockKey and Tx.lock are for
//     all others. A lock-free reader of a stripe that is not loaded is turned away (keydir.Directory.Promise).
//   - A stripe that is not loaded is what the INDEX says, and what the log said when it was opened:
//     only holders of its lock change it, and merges begin when all stripes are loaded. So no
//     record of it was written, moved or removed since, and no file that holds one.
//
// The second is why damage that is found late is harmless: the log as it was at Open, replayed for
// the damaged stripes alone, gives what their sections would have given (index_rebuild.go). Counts
// and live bytes are those that the INDEX promises until all is loaded; then what was loaded counts.
//
// The log's records after the INDEX are replayed at Open, as ever: the stripes that they concern
// are loaded there. So Close writes an INDEX if those would be many (closeIndex).

const (
	// lazyFrom is the length from which an INDEX is not loaded at Open: that takes a millisecond.
	lazyFrom = 256 << 10
	// lazyTail is how many bytes of sections Open may have to load for what the log has after the INDEX.
	lazyTail = 4 << 20
	// findMost is up to which length of a section a get searches it, which takes up to a millisecond. Many gets of a stripe
	// that has a huge collection would keep the background from loading it.
	findMost = 1 << 20
	// lazyRetry is how long a failed rebuild stands for the next ones: it has read all of the log.
	lazyRetry = time.Second
)

// holdsIndex says that the INDEX can be replaced and removed while it is open. Windows refuses that:
// there everything is loaded at Open.
const holdsIndex = runtime.GOOS != "windows"

// lazyIndex is an INDEX of which stripes are still to be loaded.
type lazyIndex struct {
	s        *Store
	loader   *indexfile.Reader
	sections [keydir.Stripes][]indexfile.Section // does not change
	timed    [keydir.Stripes]bool                // stripes that have deadlines of fields; does not change
	steadily bool                                // the background loads what was asked for; does not change once the store is open
	live     map[uint32]int64                    // bytes that the INDEX promises, by segment; does not change
	opened   bool                                // log is known; does not change once the store is open
	log      []lazySegment                       // as it was at Open; nor does this
	left     atomic.Int32                        // stripes to be loaded
	has      [keydir.Stripes]atomic.Bool         // those that are: nobody has to lock a stripe to load it who finds it here
	loaded   chan struct{}                       // closed when there are none
	works    sync.Pool                           // of *indexfile.Work
	asked    [keydir.Stripes]atomic.Bool         // stripes that have been searched for in the file
	waiting  atomic.Int32                        // goroutines that lock stripes to load them
	doubted  atomic.Bool                         // damage was found: nothing is searched for

	released bool // by whoever loads the last stripe, closes the store, or loads all at once (unload)
	replaced bool // the INDEX is not the one on disk any more; maintenanceMu guards it

	mu       sync.Mutex // guards all below; taken within the lock of a stripe
	counted  indexfile.Locations
	damaged  bool
	rebuilt  [keydir.Stripes]map[uint32][]byte // dumps of damaged stripes, by space
	failed   error                             // of the last rebuild
	failedAt time.Time
	messages []func() // for the log: its handler is another's code, and a stripe is locked when they come up
}

// say leaves a message to logMessages.
func (z *lazyIndex) say(message func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.messages = append(z.messages, message)
}

// logMessages logs what has come up, with nothing locked.
func (z *lazyIndex) logMessages() {
	z.mu.Lock()
	messages := z.messages
	z.messages = nil
	z.mu.Unlock()
	for _, message := range messages {
		message()
	}
}

// loadsLater reports whether the sections of an INDEX are not to be loaded at Open. A snapshot
// reads the INDEX of a store that goes on, and damage that is tolerated is to be known at Open.
func (s *opener) loadsLater(c *indexfile.Contents) bool {
	if !holdsIndex || !c.Promises || len(c.Sections) == 0 || s.opts.ReadDamaged || s.opts.Follow || s.cutAt > 0 {
		return false
	}
	switch s.opts.seam.Load {
	case seam.LoadAtOpen:
		return false
	case seam.LoadLate, seam.LoadOnDemand:
		return true
	}
	return c.DataBytes >= lazyFrom
}

// promise gives the keydir and the segments the counts of an INDEX instead of its sections.
func (s *opener) promise(l *indexfile.Reader, c *indexfile.Contents) error {
	z := &lazyIndex{s: s.Store, loader: l, live: c.Live, loaded: make(chan struct{}), counted: l.Locations}
	z.works.New = func() any { return l.NewWork(&s.spaces) }
	if !indexfile.Promise(c.Live, s.segments.Load()) {
		return indexfile.ErrUnfit
	}
	for _, is := range c.Sections {
		s.spaces.ByRecord(is.Space).Dir.Promise(int(is.Stripe), is.Counts)
		z.timed[is.Stripe] = z.timed[is.Stripe] || is.Counts.FieldDeadlines > 0
		z.sections[is.Stripe] = append(z.sections[is.Stripe], is)
		if stripe := &s.stripes[is.Stripe]; !stripe.unloaded {
			stripe.unloaded = true
			z.left.Add(1)
		}
	}
	for i := range z.sections {
		z.has[i].Store(len(z.sections[i]) == 0)
	}
	s.lazy = z
	return nil
}

// noteLog notes what a late replay will read: the log as this opening has found it, before anything is appended.
func (s *opener) noteLog() {
	if s.lazy == nil {
		return
	}
	s.lazy.opened = true
	for _, sg := range s.segments.Load().All() {
		end := sg.FramesEnd
		if sg.Sealed() {
			end = sg.Size.Load()
		}
		s.lazy.log = append(s.lazy.log, lazySegment{id: sg.ID, end: end, sealed: sg.Sealed(), foot: sg.Footer})
	}
}

// loadAll returns when every stripe is loaded and counted. The caller holds no stripe. z may be nil.
func (z *lazyIndex) loadAll() error {
	if z == nil {
		return nil
	}
	select {
	case <-z.loaded:
		return nil
	default:
	}
	err := eachStripe(z.loadStripe)
	if err == nil {
		<-z.loaded // whoever loads the last one may still be counting
	}
	return err
}

// loadStripe loads a stripe unless it is loaded. It does not lock one that is: a reader may hold it, and take it once
// more. The caller holds no stripe that is not. z may be nil.
func (z *lazyIndex) loadStripe(i int) error {
	if z == nil || z.has[i].Load() {
		return nil
	}
	st := &z.s.stripes[i]
	z.waiting.Add(1)
	st.Lock()
	z.waiting.Add(-1)
	defer st.Unlock()
	if z.s.closed.Load() {
		return ErrClosed // whoever closes the store loads what that needs
	}
	return z.load(i)
}

// load loads the stripes of a transaction. None is locked meanwhile but the one that is loaded, and none of them is
// unloaded again.
func (t *Tx) load() error {
	if t.s.lazy == nil {
		return nil
	}
	if t.locks.all {
		return t.s.lazy.loadAll()
	}
	for _, i := range t.locks.stripes {
		if err := t.s.lazy.loadStripe(int(i)); err != nil {
			return err
		}
	}
	return nil
}

// loadRest is loadAll for Open and Close, when nobody else uses the keydir. z may be nil.
func (z *lazyIndex) loadRest() error {
	if z == nil || z.left.Load() == 0 {
		return nil
	}
	return eachStripe(func(i int) error {
		z.s.stripes[i].Lock()
		defer z.s.stripes[i].Unlock()
		return z.load(i)
	})
}

// eachStripe calls fn for every stripe, on all processors.
func eachStripe(fn func(i int) error) error {
	var next atomic.Int32
	var wg sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for w := range errs {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= keydir.Stripes {
					return
				}
				errs[w] = fn(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// loadTimed loads the stripes that have deadlines of fields: Open's caller wants to know these
// (EachFieldDeadline), and damage that refuses the store must do so before anything is changed.
func (s *opener) loadTimed() error {
	if s.lazy == nil {
		return nil
	}
	return eachStripe(func(i int) error {
		if !s.lazy.timed[i] {
			return nil
		}
		return s.lazy.load(i)
	})
}

// loadInBackground loads every stripe, one at a time. What fails is tried again by whoever needs it.
func (s *opener) loadInBackground() {
	var tried [keydir.Stripes]bool
	for {
		i := s.lazy.next(&tried)
		if i < 0 {
			break
		}
		if s.work.stopping() {
			return
		}
		tried[i] = true
		err := s.lazy.loadStripe(i)
		s.lazy.logMessages()
		if err != nil && !errors.Is(err, ErrClosed) {
			s.opts.Logger.Warn("stripe not loaded", "file", IndexFile, "stripe", i, "err", err)
		}
		if s.lazy.waiting.Load() > 0 {
			runtime.Gosched() // who waited for this stripe runs now, and not when the scheduler's time is up
		}
	}
	if s.lazy.wasDamaged() && !s.opts.ReadOnly && s.writing.prepare() == nil {
		s.maintenanceMu.Lock()
		defer s.maintenanceMu.Unlock()
		s.removeDamagedIndex()
	}
}

// next returns the stripe that the background is to load, -1 if it has tried all: first those that gets have asked for.
func (z *lazyIndex) next(tried *[keydir.Stripes]bool) int {
	first := -1
	for i := range tried {
		if tried[i] || z.has[i].Load() {
			continue
		}
		if z.asked[i].Load() {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// find is keydir.Directory.TryGet for a stripe that is not loaded: it searches the INDEX. What that says was so when the
// search began, for whoever changes a stripe has loaded it before. Without a background only the first search is
// answered; whoever comes next is to load the stripe.
func (z *lazyIndex) find(space uint32, h uint64) (keydir.Loc, keydir.Lookup) {
	i := keydir.StripeOf(h)
	if z.has[i].Load() || z.doubted.Load() || z.asked[i].Swap(true) && !z.steadily {
		return 0, keydir.LookupRetry
	}
	k, ok := slices.BinarySearchFunc(z.sections[i], space, func(is indexfile.Section, space uint32) int { return cmp.Compare(is.Space, space) })
	if !ok || z.sections[i][k].Length > findMost {
		return 0, keydir.LookupRetry
	}
	return z.loader.Find(&z.sections[i][k], h)
}

// load loads a stripe. The caller holds its lock, exclusively.
func (z *lazyIndex) load(i int) error {
	if !z.s.stripes[i].unloaded {
		return nil
	}
	w := z.works.Get().(*indexfile.Work)
	defer z.works.Put(w)
	w.Seen.Reset()
	if damage := z.fill(w, i); damage != nil {
		w.Seen.Reset()
		if err := z.fillRebuilt(w, i, damage); err != nil {
			return err
		}
	}
	z.done(w, i)
	return nil
}

// done notes that a stripe is loaded.
func (z *lazyIndex) done(w *indexfile.Work, i int) {
	z.s.stripes[i].unloaded = false
	z.has[i].Store(true)
	z.mu.Lock()
	z.counted.Add(&w.Seen)
	z.rebuilt[i] = nil
	z.mu.Unlock()
	if z.left.Add(-1) == 0 {
		z.finish()
	}
}

// fill loads the sections of a stripe. None is loaded before all of them verify.
func (z *lazyIndex) fill(w *indexfile.Work, i int) error {
	for k := range z.sections[i] {
		if err := w.Verify(&z.sections[i][k]); err != nil {
			return z.damage(&z.sections[i][k], err)
		}
	}
	for k := range z.sections[i] {
		is := &z.sections[i][k]
		if err := w.LoadInto(z.into(z.s.spaces.ByRecord(is.Space).Dir, i), is); err != nil {
			return z.damage(is, err)
		}
	}
	return nil
}

// into is the directory that a section of a stripe is loaded into. One that an attempt before has loaded, which failed
// at a later section, is only counted again.
func (z *lazyIndex) into(dir *keydir.Directory, i int) *keydir.Directory {
	if _, missing := dir.Promised(i); missing {
		return dir
	}
	return keydir.NewDirectory(z.s.man.Seed)
}

func (z *lazyIndex) damage(is *indexfile.Section, err error) error {
	z.doubted.Store(true)
	return fmt.Errorf("%s: stripe %d of space %d, at %d: %w", IndexFile, is.Stripe, is.Space, is.Offset, err)
}

// fillRebuilt loads a stripe from the log.
func (z *lazyIndex) fillRebuilt(w *indexfile.Work, i int, damage error) error {
	dumps, err := z.rebuild(w, i, damage)
	if err != nil {
		return err
	}
	w.Loader.Rebuilt = true
	defer func() { w.Loader.Rebuilt = false }()
	spaces := z.s.spaces.Now.Load().ByID
	for id := range dumps {
		if spaces[id] == nil {
			return &CorruptError{File: IndexFile, Offset: 0, Reason: fmt.Sprintf("the log has a space %d, which it lacks", id)}
		}
	}
	for id, sp := range spaces {
		if _, missing := sp.Dir.Promised(i); !missing && len(dumps[id]) > 0 && sp.Dir.StripeLen(i) == 0 {
			return &CorruptError{File: IndexFile, Offset: 0, Reason: fmt.Sprintf("the log has keys of stripe %d of space %d, which it lacks", i, id)}
		}
		if err := w.Loader.Load(z.into(sp.Dir, i), i, dumps[id]); err != nil {
			return fmt.Errorf("rebuilding stripe %d: %w", i, err)
		}
	}
	return nil
}

// finish is called once, when all stripes are loaded.
func (z *lazyIndex) finish() {
	if !z.counted.Correct(z.live, z.s.segments.Load()) {
		z.say(func() { z.s.opts.Logger.Info("live bytes corrected", "file", IndexFile) })
	}
	z.release()
	close(z.loaded)
}

// release closes the file.
func (z *lazyIndex) release() {
	if z.released {
		return
	}
	z.released = true
	if err := z.loader.Close(); err != nil {
		z.say(func() { z.s.opts.Logger.Warn("closing", "file", IndexFile, "err", err) })
	}
}

func (z *lazyIndex) wasDamaged() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.damaged
}

// removeDamagedIndex removes the INDEX if that is still the one in which damage was found, so that
// no later Open meets it. maintenanceMu is held.
func (s *Store) removeDamagedIndex() {
	z := s.lazy
	if z == nil || z.replaced || !z.wasDamaged() {
		return
	}
	z.replaced, s.index = true, indexState{}
	err := s.opts.seam.FS.Remove(filepath.Join(s.dir, IndexFile))
	if err == nil || failure.IsNotExist(err) {
		err = s.opts.seam.FS.SyncDir(s.dir)
	}
	if err != nil {
		s.opts.Logger.Warn("damaged index not removed", "file", IndexFile, "err", err)
		return
	}
	s.recoveryMu.Lock()
	defer s.recoveryMu.Unlock()
	s.recovery.Stale = append(s.recovery.Stale, IndexFile)
}

// lazySegment is a segment as it was at Open.
type lazySegment struct {
	id     uint32
	end    int64 // of its frames; of the file, if it is sealed
	sealed bool
	foot   format.Footer
}
