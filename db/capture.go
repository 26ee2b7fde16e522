package db

import (
	"cmp"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask"
	commands "github.com/stavedb/stave/internal/effects"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/internal/serverside/calls"
	"github.com/stavedb/stave/keydir"
)

// What commits amount to, for replicas: each write as a command that has the same outcome on an equal state. It is
// captured where every write passes (txn.go), below what watches and listeners are told of; what it takes many writes
// to say, or what they cannot say, a call describes in its own words (describe). It is handed to the log with the
// commit, and the log passes it on in its order.
//
// Nothing in it depends on a clock. What has expired is deleted by DEL and HDEL where a writer finds it, or the cycle
// does; whoever applies the commands must not expire anything itself, and must keep a deadline that has passed.

// mostReserved bounds what a transaction reserves for its commands, in bytes.
const mostReserved = 32 << 10

// capture is what is done with that, while it is wanted.
type capture struct {
	calls.Capture
	size atomic.Int64 // of the newest commit, in bytes: the next one is about as large
}

var errCapturing = errors.New("db: commits are captured already")

// startCapture lets transactions capture what they write, and then, when all others have ended, has the log pass it on.
func (s *Store) startCapture(c calls.Capture) (stop func(), err error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	if s.opts.ReadOnly {
		return nil, ErrReadOnly
	}
	own := &capture{Capture: c}
	if !s.capture.CompareAndSwap(nil, own) {
		return nil, errCapturing
	}
	if err := s.base.AwaitWriters(); err != nil {
		s.capture.Store(nil)
		return nil, err
	}
	s.base.OnWritten(own.wrote)
	return sync.OnceFunc(func() {
		s.base.OnWritten(nil)
		s.capture.Store(nil)
	}), nil
}

// wrote is called with the log locked.
func (c *capture) wrote(effects any, next uint64) {
	commit, _ := effects.(*calls.Commit) // nil: MissingEffects
	switch commit {
	case unsaid:
		return
	case nil:
		commit = &calls.Commit{Whole: true}
	}
	c.size.Store(int64(len(commit.RESP)))
	commit.Next = next
	c.Written(*commit)
}

// unsaid is a commit that changes nothing of which replicas are told.
var unsaid = new(calls.Commit)

func (s *Store) nextSequence() uint64 { return s.base.NextSequence() }

func (s *Store) isOnDisk(next uint64) bool { return s.base.IsOnDisk(next) }

// captured is what a transaction has captured so far.
type captured struct {
	commands.Effects
	fieldDeadlines bool
	unsaid         bool // something was written that replicas are not told of

	made     *nsKey // a stream that has been made, with nothing in it yet
	deleting deletedEntries
	again    deadlineAgain
}

// deadlineAgain is the command that gives a field its deadline again, which HSET before it has taken away.
type deadlineAgain struct {
	nsKey
	field         string
	before, after commands.Mark
}

// capturing is called by a transaction that has locked its keys: startCapture waits for those that had before. It uses
// spare, unless that is nil.
func (s *Store) capturing(write bool, spare *captured) *captured {
	c := s.capture.Load()
	if c == nil || !write {
		return nil
	}
	if spare == nil {
		spare = new(captured)
	}
	*spare = captured{fieldDeadlines: c.FieldDeadlines}
	spare.SlotOf = c.SlotOf
	spare.Reserve(int(min(c.size.Load(), mostReserved)))
	return spare
}

// describing begins a call that is to be described by a command: it returns the moment of that, unless nothing is
// captured. What has expired of the keys that the command names is deleted before: the command would find it alive.
func (t *Tx) describing(keys ...nsKey) (m commands.Mark, err error) {
	if t.captured == nil {
		return m, nil
	}
	for _, p := range keys {
		if _, _, err := (*txn)(&Tx{txState: t.txState, ns: p.ns}).Find(p.key); err != nil {
			return m, err
		}
	}
	return t.captured.Mark(), nil
}

// described is a call on a key that is described by a command, in place of what it writes, if it writes anything.
func (t *Tx) described(key string, call func() error, command func() []string) error {
	m, err := t.describing(nsKey{t.ns, key})
	if err == nil {
		err = call()
	}
	if err == nil && t.captured != nil && t.captured.Since(m) {
		t.captured.Describe(m, t.ns, command()...)
	}
	return err
}

// dropExpired deletes what has expired in a namespace, for a command that moves all keys of it.
func (t *txn) dropExpired() error {
	var gone []string
	for stripe := range keydir.Stripes {
		var failed error
		err := t.base.EachKey(t.ns, stripe, 0, func(_ uint64, key []byte, typ keydir.Type) bool {
			hidden := false
			if hidden, failed = (*Tx)(t).hides(t.ns, t.space(), key, typ); hidden {
				gone = append(gone, string(key))
			}
			return failed == nil
		})
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
	}
	for _, key := range gone {
		if _, err := t.hideExpired(key); err != nil {
			return err
		}
	}
	return nil
}

// captureWhole describes a commit that changes the map of namespaces.
func (s *Store) captureWhole(t *bitcask.Tx, args ...string) {
	if c := s.capturing(true, nil); c != nil {
		c.Add(s.ns, args...)
		t.SetEffects(c.take())
	}
}

func (c *captured) mark() commands.Mark {
	if c == nil {
		return commands.Mark{}
	}
	return c.Mark()
}

func (c *captured) rollbackTo(m commands.Mark) {
	if c != nil {
		c.RollbackTo(m)
		c.made, c.deleting, c.again = nil, deletedEntries{}, deadlineAgain{}
	}
}

// Describe is that of the commands.
func (c *captured) Describe(m commands.Mark, database int, args ...string) {
	c.again = deadlineAgain{}
	c.Effects.Describe(m, database, args...)
}

// take returns what the log is given with the commit: nil if nothing was captured, which the log refuses if there are
// records of keys.
func (c *captured) take() any {
	slots, whole := c.Slots()
	resp, first, last := c.Take()
	switch {
	case resp != nil:
		return &calls.Commit{RESP: resp, First: first, Last: last, Slots: slots, Whole: whole}
	case c.unsaid:
		return unsaid
	}
	return nil
}

// text is b as an argument, which is copied at once.
func text(b []byte) string { return commands.Text(b) }

func (t *txn) captureElem(key string, f keydir.Collection, elem string, value []byte) error {
	if f.Type() == keydir.Set {
		t.captured.Join(t.ns, 2, 0, "SADD", key, elem)
		return nil
	}
	t.captured.Join(t.ns, 2, 0, "HSET", key, elem, text(value))
	if _, timed := t.store.fields.Get(t.space(), key); !timed {
		return nil
	}
	deadlines, err := t.base.FieldDeadlines(t.ns, key)
	if err != nil || !deadlines.Valid() {
		return err
	}
	if score, _, timed := deadlines.Score(elem); timed && t.captured.fieldDeadlines { // HSET takes it away, and PutElem does not
		before := t.captured.Mark()
		t.captureFieldDeadline(key, elem, ordered.ToInt(score))
		t.captured.again = deadlineAgain{nsKey{t.ns, key}, elem, before, t.captured.Mark()}
	}
	return nil
}

// captureIndex is called with the bounds that the list had before. What is put between them is described by its call,
// unless it is the only element.
func (t *txn) captureIndex(key string, f keydir.Collection, head, tail, index int64, value []byte) {
	if f.Type() == keydir.Chunks {
		// A chunk never gets shorter, so what it leaves out at its end is zeros, or the end of the string.
		size, number, _ := keydir.ChunkAt(index)
		t.captured.Add(t.ns, "SETRANGE", key, strconv.Itoa(size*number), text(value))
		return
	}
	switch {
	case head > tail || index > tail:
		t.captured.Join(t.ns, 2, 0, "RPUSH", key, text(value))
	case index < head:
		t.captured.Join(t.ns, 2, 0, "LPUSH", key, text(value))
	default:
		t.captured.Add(t.ns, "LSET", key, strconv.FormatInt(index-head, 10), text(value))
	}
}

// captureRange is called with the number of elements that were deleted at an end of a list. What is deleted in the middle
// is described by its call.
func (t *txn) captureRange(key string, front bool, n int) {
	verb := "RPOP"
	if front {
		verb = "LPOP"
	}
	t.captured.Add(t.ns, verb, key, strconv.Itoa(n))
}

func (t *txn) captureDeleted(key string, typ keydir.Type, elem string) {
	verb := "HDEL"
	switch typ {
	case keydir.Set:
		verb = "SREM"
	case keydir.ZSet:
		verb = "ZREM"
	}
	t.captured.Join(t.ns, 2, 0, verb, key, elem)
}

func (t *txn) captureScored(key, elem string, score uint64) {
	var b [32]byte
	t.captured.Join(t.ns, 2, 0, "ZADD", key, text(strconv.AppendFloat(b[:0], ordered.ToFloat(score), 'g', -1, 64)), elem)
}

func (t *txn) captureDeadline(key string, ms int64) {
	t.captured.Add(t.ns, "PEXPIREAT", key, strconv.FormatInt(ms, 10))
}

// captureFieldDeadline tells of the deadline of a field.
func (t *txn) captureFieldDeadline(key, field string, ms int64) {
	if !t.captured.fieldDeadlines {
		t.captured.unsaid = true
		return
	}
	t.captured.Add(t.ns, "HPEXPIREAT", key, strconv.FormatInt(ms, 10), "FIELDS", "1", field)
}

// captureNoFieldDeadline tells that a field has lost its deadline. HPERSIST would not do: where that has passed by the clock of
// a Redis replica, it leaves it as it is. HSET takes it away at any time.
func (t *txn) captureNoFieldDeadline(key, field string) error {
	c := t.captured
	if !c.fieldDeadlines {
		c.unsaid = true
		return nil
	}
	if a := &c.again; a.nsKey == (nsKey{t.ns, key}) && a.field == field && a.after == c.Mark() {
		c.RollbackTo(a.before)
		return nil
	}
	_, fields, err := t.base.Find(t.ns, key)
	if err != nil || !fields.Valid() {
		return err
	}
	loc, ok := fields.Get(field)
	if !ok {
		return nil
	}
	value, err := t.base.Value(nil, t.ns, key, field, keydir.Hash, loc)
	if err == nil {
		c.Join(t.ns, 2, 0, "HSET", key, field, text(value))
	}
	return err
}
