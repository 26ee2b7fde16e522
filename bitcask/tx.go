package bitcask

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/chunked"
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/undo"
	"github.com/stavedb/stave/keydir"
)

// Tx is one atomic unit of reads and writes. It holds the stripe locks of its keys from Begin to End, but for moments
// in which it has claimed its keys (see Yield). Writes change the keydir at once, with locations that point into the
// transaction itself, so everything in it reads its own writes. Commit appends them to the log as one frame and
// replaces those locations by the real ones; End without Commit rolls them back. A call that fails has changed nothing.
//
// A Tx is for one goroutine. After its end every method fails with ErrTxDone, or does nothing if it
// returns no error. Its memory is reused only through Recycle.
type Tx struct {
	s     *Store
	open  bool // from Begin to End
	locks txLocks
	steps int    // that Yield has counted
	turns uint64 // commits and rollbacks: see Version

	buf       []byte // room for a frame header, then records
	recs      chunked.List[txRecord]
	spaces    []*namespace.Space // of recs
	values    [][]byte           // that are not in buf, of recs
	outOfLine int                // their bytes
	borrow    bool               // see Borrow
	system    bool               // it holds the lock for writers of system records
	floor     int64              // what it leaves of the reserve if it may draw on that although it adds something; else 0
	single    singlePut          // the one record, not yet in the keydir
	undo      chunked.List[undo.Op]
	made      madeCollection
	touched   []touchedCollection
	known     map[uint64]bool // hashes of the keys in touched, once they are many
	mostKnown int             // how many those have been

	// The string that find proved last: reading it costs no second checksum.
	provedLoc keydir.Loc
	provedKey string
	proved    []byte

	call   Savepoint // from before the call in progress: see refuse
	onDisk error     // see FailOnDisk

	effects    any             // see SetEffects
	frame      commitlog.Frame // scratch of encode
	frameStart int             // where the frame begins in buf
	order      []byte          // scratch of PutScored
}

// txRecord is a record waiting in buf, with what leads to its slot or element in the keydir without parsing. It has no
// pointers, so the garbage collector does not read millions of them.
type txRecord struct {
	h         uint64
	pos       uint32 // of its crc in buf
	outOfLine uint32 // bytes of the values before it that are not in buf
	size      uint32 // without the records that follow it
	name      uint32 // of its name in buf
	elemLen   uint32
	value     uint32 // which of the transaction's values it has, counted from 1; 0 if its value is in buf
	space     uint32 // which of the transaction's spaces it is in
	keyLen    uint16
	kind      Kind
	typ       keydir.Type
}

// record is the record as it would be parsed.
func (t *Tx) record(r *txRecord) format.Record {
	buf := t.buf
	rec := format.Record{Identity: Identity{Namespace: t.spaces[r.space].ID, Kind: r.kind, Type: r.typ, Key: r.key(buf)}, Size: int(r.size), Value: t.valueOf(r)}
	if r.kind.HasElement() {
		rec.Elem = r.elem(buf)
	}
	if end := r.pos + r.size; rec.Value == nil {
		rec.Value = buf[int(r.name)+format.NameLen(r.kind, r.typ, int(r.keyLen), int(r.elemLen)) : end : end]
	}
	return rec
}

// valueOf is the value of a record if that is out of line, else nil.
func (t *Tx) valueOf(r *txRecord) []byte {
	if r.value == 0 {
		return nil
	}
	return t.values[r.value-1]
}

// spaceIndex is where a space is in spaces.
func (t *Tx) spaceIndex(sp *namespace.Space) uint32 {
	for i := len(t.spaces) - 1; i >= max(0, len(t.spaces)-2); i-- {
		if t.spaces[i] == sp {
			return uint32(i)
		}
	}
	t.spaces = append(t.spaces, sp)
	return uint32(len(t.spaces) - 1)
}

func (r *txRecord) row() *format.Row { return format.RowOf(r.kind, r.typ) }

// offset is the record's position in a frame that begins at start in buf.
func (r *txRecord) offset(start int) int { return int(r.pos) - start + int(r.outOfLine) }

// key and elem are the parts of the record's name.
func (r *txRecord) key(buf []byte) []byte {
	return buf[int(r.name)+len(format.TypePrefix[r.typ]):][:r.keyLen]
}

func (r *txRecord) elem(buf []byte) []byte {
	return buf[int(r.name)+len(format.TypePrefix[r.typ])+int(r.keyLen)+1:][:r.elemLen]
}

// touchedCollection remembers a collection as it was before the transaction, to know
// at commit whether its meta records change.
type touchedCollection struct {
	sp         *namespace.Space
	h          uint64
	key        string
	typ        keydir.Type
	count      int
	head, tail int64
}

// is reports whether the collection is that of a key.
func (f *touchedCollection) is(sp *namespace.Space, h uint64, key string) bool {
	return f.h == h && f.sp == sp && f.key == key
}

var errReadTx = errors.New("bitcask: write in a read-only transaction")

// ErrNotLocked is returned for a key that a transaction has not locked, because Begin was given others, and for a call
// that needs all keys. The error says which.
var ErrNotLocked = errors.New("stave: not locked by the transaction")

// ErrTxDone is returned by methods of a transaction that has ended.
var ErrTxDone = errors.New("stave: transaction has ended")

// Begin starts a transaction on the given keys of any namespace.
func (s *Store) Begin(write bool, keys ...string) (*Tx, error) {
	t := s.newTx(write)
	t.locks.holdKeys(s.man.Seed, keys)
	return t, t.lock()
}

// BeginNow is Begin, for writing, that does not wait for room on a full disk: for what a reader writes, or what is written
// with locks held that readers take. Without keys it is BeginAll.
func (s *Store) BeginNow(keys ...string) (*Tx, error) {
	t := s.newTx(true)
	if len(keys) == 0 {
		t.locks.holdAll()
	}
	t.locks.holdKeys(s.man.Seed, keys)
	if err := s.writing.prepare(); err != nil {
		return t, err
	}
	return t, t.loadAndLock()
}

// TryBegin is Begin that does not wait, for other transactions or for what Open has left to be done: ok is false if one
// of them holds a lock that it needs, or if a stripe that it needs is not loaded yet, or the store not ready for
// writes, and nothing has begun then. Without keys it is BeginAll. ok is false as well if the commit of a writing
// transaction would probably have to wait for the disk, because the log cannot go on to its next segment yet. Only those
// of BeginInTurn are waited for.
func (s *Store) TryBegin(write bool, keys ...string) (t *Tx, ok bool, err error) {
	if t, ok, err = s.BeginInTurn(write, keys...); ok {
		t.locks.endTurn()
	}
	return t, ok, err
}

// BeginInTurn is TryBegin that has others of its kind wait until its end: they are those of event loops, each of which takes a
// fair part of all stripes for some microseconds, so that two of them would practically always be in each other's way. Readers
// go on together. A goroutine may have one of them at a time.
func (s *Store) BeginInTurn(write bool, keys ...string) (t *Tx, ok bool, err error) {
	t = s.newTx(write)
	t.locks.steady = true
	if len(keys) == 0 {
		t.locks.holdAll()
	}
	t.locks.holdKeys(s.man.Seed, keys)
	t.locks.takeTurn(&s.turns) // before the question for the disk, whose answer does not hold for long
	if write && (s.writing.due.Load() != nil || s.log.MayWait() || s.reserve.Waits()) || !t.locks.tryLock() {
		t.locks.endTurn()
		t.Recycle()
		return nil, false, nil
	}
	return t, true, t.begun()
}

// BeginUnlessLocked is Begin that does not wait for other transactions but those of BeginInTurn, only for the disk and for
// room on it: ok is false if one of them holds a lock that it needs, and nothing has begun then. Without keys it is BeginAll.
func (s *Store) BeginUnlessLocked(write bool, keys ...string) (t *Tx, ok bool, err error) {
	t = s.newTx(write)
	if len(keys) == 0 {
		t.locks.holdAll()
	}
	t.locks.holdKeys(s.man.Seed, keys)
	if err := t.prepare(); err != nil {
		return t, false, err
	}
	t.locks.takeTurn(&s.turns)
	ok = t.locks.tryLock()
	t.locks.endTurn()
	if !ok {
		t.Recycle()
		return nil, false, nil
	}
	return t, true, t.begun()
}

// BeginAll starts a transaction on every key: for writing it runs alone, for reading alongside other readers.
func (s *Store) BeginAll(write bool) (*Tx, error) {
	t := s.newTx(write)
	t.locks.holdAll()
	return t, t.lock()
}

// BeginHold starts a transaction on no key at all that waits for running writers and keeps others out until
// its end, so that the log does not grow meanwhile. It loads nothing of the INDEX.
func (s *Store) BeginHold() (*Tx, error) {
	t := s.newTx(false)
	t.locks.whole = true
	t.locks.stripes = append(t.locks.stripes, everyStripe[:]...) // not held: nothing may be looked up
	t.locks.acquire()
	return t, t.begun()
}

// BeginStripe starts a transaction on every key of one stripe (a 256th of all
// keys, by hash), for scans that lock little at a time.
func (s *Store) BeginStripe(write bool, stripe int) (*Tx, error) {
	t := s.newTx(write)
	t.locks.whole = true
	t.locks.hold(stripe)
	return t, t.lock()
}

func (s *Store) newTx(write bool) *Tx {
	t := s.txs.Get().(*Tx)
	t.s, t.locks.write = s, write
	if cap(t.buf) < format.FrameHeaderSize {
		t.buf = make([]byte, format.FrameHeaderSize, 512)
	}
	t.buf = t.buf[:format.FrameHeaderSize]
	t.recs.SetShift(s.opts.seam.ChunkShift)
	t.undo.SetShift(s.opts.seam.ChunkShift)
	return t
}

// lock takes the stripe locks in ascending order, which is why no two transactions can wait for each other.
func (t *Tx) lock() error {
	if err := t.prepare(); err != nil {
		return err
	}
	t.locks.acquire()
	return t.begun()
}

// prepare waits for what the transaction needs besides its locks.
func (t *Tx) prepare() error {
	if t.locks.write {
		if err := t.s.writing.prepare(); err != nil {
			return err
		}
		t.s.reserve.AwaitRoom(t.s.work.stop)
	}
	return t.load()
}

func (t *Tx) loadAndLock() error {
	if err := t.load(); err != nil {
		return err
	}
	t.locks.acquire()
	return t.begun()
}

// begun opens a transaction that has its locks, unless the store refuses it.
func (t *Tx) begun() error {
	t.open = true
	if t.s.closed.Load() {
		t.End()
		return ErrClosed
	}
	if t.locks.write && t.s.opts.ReadOnly {
		t.End()
		return ErrReadOnly
	}
	return nil
}

// Bounds of what a finished Tx keeps for the next one.
const (
	keepBuffer = 256 << 10 // bytes of records: those of 64 KiB of names and values, which a server batches, take up to 100 KiB
	keepHashes = 8 << 10
	keepOthers = 1 << 10 // elements of any other list
)

// End rolls back what was not committed and releases the locks. A second End does nothing.
func (t *Tx) End() {
	if !t.open {
		return
	}
	defer t.unlock()
	t.rollbackTo(Savepoint{buf: format.FrameHeaderSize})
}

func (t *Tx) unlock() {
	t.open = false
	t.locks.releaseClaim()
	t.locks.unlockStripes(t.locks.stripes)
	t.locks.endTurn()
	if t.system {
		t.s.system.Writing.Unlock()
	}
}

// Recycle is End for an owner that has not shared the transaction: another transaction reuses its memory.
func (t *Tx) Recycle() {
	t.End()
	s := t.s
	if s == nil {
		return // a second time
	}
	if cap(t.buf) > keepBuffer {
		t.buf = nil
	}
	if cap(t.locks.hashes) > keepHashes {
		t.locks.hashes, t.locks.sorted = nil, nil
	}
	t.recs.Recycle(keepOthers)
	t.undo.Recycle(keepOthers)
	if t.mostKnown > keepOthers {
		t.known = nil // a map does not shrink
	}
	frame := commitlog.Frame{Records: reusable(t.frame.Records, keepOthers), Values: reusable(t.frame.Values, keepOthers)}
	*t = Tx{
		known: t.known, buf: t.buf, recs: t.recs, undo: t.undo, spaces: reusable(t.spaces, keepOthers), values: reusable(t.values, keepOthers),
		touched: reusable(t.touched, keepOthers), frame: frame, order: reusable(t.order, keepBuffer),
		locks: txLocks{of: t.locks.of, waiters: t.locks.waiters, stripes: t.locks.stripes[:0], hashes: t.locks.hashes[:0], sorted: t.locks.sorted[:0]},
	}
	s.txs.Put(t)
}

// reusable is an empty slice with the memory of another, or without it if that is long. What is beyond its end is zero already:
// whatever shortens such a slice clears the rest.
func reusable[T any](s []T, keep int) []T {
	if cap(s) > keep {
		return nil
	}
	clear(s)
	return s[:0]
}

// hash returns the hash of a key, which must be one the Tx has locked. Whatever
// asks for it is about to look into the keydir, or to change it.
func (t *Tx) hash(key string) (uint64, error) {
	if !t.open {
		return 0, ErrTxDone
	}
	t.materialize()
	if len(key) > MaxKey {
		return 0, fmt.Errorf("bitcask: key of %d bytes: %w", len(key), ErrTooLarge)
	}
	if n := len(t.touched); n > 0 && t.touched[n-1].key == key { // mostly a collection's elements are written one after the other
		return t.touched[n-1].h, nil
	}
	h := t.locks.firstHash
	if !t.locks.hashed || key != t.locks.firstKey {
		h = t.s.man.Seed.Hash(key)
	}
	if !t.locks.declared(h) {
		return 0, fmt.Errorf("%w: key %q", ErrNotLocked, key)
	}
	return h, nil
}

// spaceFor returns the space of ns for writing key. A call that writes begins with it, so it notes where refuse goes back to.
func (t *Tx) spaceFor(ns int, key string) (*namespace.Space, uint64, error) {
	h, err := t.hash(key)
	if err != nil {
		return nil, 0, err
	}
	if !t.locks.write {
		return nil, 0, errReadTx
	}
	t.call = t.here() // hash has materialized a single put
	sp, err := t.s.spaces.MakeSpace(ns)
	return sp, h, err
}
