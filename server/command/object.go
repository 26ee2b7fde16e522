package command

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/serverside"
)

// objectCommands answer what tools ask about Redis's objects, which do not exist here.
var objectCommands = []*Command{{
	Name: "object", Arity: -2, Group: GroupGeneric, Run: func(c *Call) error { return ArityError("object") },
	Subcommands: []*Command{
		{Name: "object|encoding", Arity: 3, Flags: ReadOnly | WholeKeyspace, Keys: objectKey, Run: objectEncoding},
		{Name: "object|freq", Arity: 3, Flags: ReadOnly | WholeKeyspace, Keys: objectKey, Run: objectFreq},
		{Name: "object|help", Arity: 2, Flags: Loading | Stale | WholeKeyspace, Run: Help},
		{Name: "object|idletime", Arity: 3, Flags: ReadOnly | WholeKeyspace, Keys: objectKey,
			Run: objectIdleTime},
		{Name: "object|refcount", Arity: 3, Flags: ReadOnly | WholeKeyspace, Keys: objectKey,
			Run: func(c *Call) error { return c.ofKey(func() error { return c.Reply(1) }) }},
	},
}}

var objectKey = []Keys{{Use: "RO", First: 2, Step: 1}}

// ofKey replies a null if the key does not exist, and otherwise what reply does.
func (c *Call) ofKey(reply func() error) error {
	exists, err := c.Tx.Key(c.Key(2)).Exists()
	switch {
	case err != nil:
		return err
	case !exists:
		return c.Reply(nil)
	}
	return reply()
}

// evictsByFrequency reports whether the policy has an LFU in its name.
func (c *Call) evictsByFrequency() bool {
	policy := c.Host.Store.Evict().Policy
	return policy == db.EvictAllKeysLFU || policy == db.EvictVolatileLFU
}

// objectIdleTime is OBJECT IDLETIME. When a key was used is not known, so it may have been just now.
func objectIdleTime(c *Call) error {
	return c.ofKey(func() error {
		if c.evictsByFrequency() {
			return Error("ERR An LFU maxmemory policy is selected, idle time not tracked. " +
				"Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
		}
		return c.Reply(0)
	})
}

// objectFreq is OBJECT FREQ: 1 for a key that has been used since it could have been evicted, else 0. Redis refuses it too,
// unless it evicts by frequency.
func objectFreq(c *Call) error {
	used := 0
	if serverside.DB.Visited(c.Tx, c.Key(2)) {
		used = 1
	}
	return c.ofKey(func() error {
		if c.evictsByFrequency() {
			return c.Reply(used)
		}
		return Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. " +
			"Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	})
}

// Redis chooses an encoding when a value is made and keeps it while the value shrinks. Here the
// name is computed from the present value, so it can only say what Redis would choose for it today.

// Limits of the encodings of strings, which no setting changes.
const (
	longestInt      = 20 // bytes of a string that is an integer
	longestEmbedded = 44 // bytes of a string within its object
)

// Encodings are the limits of the compact encodings of collections: elements, and bytes of one. Settings
// change them while commands run.
type Encodings struct {
	HashEntries, HashValue           atomic.Int64
	ListSize                         atomic.Int64 // elements; -1 to -5: 4 KiB and twice as much each
	SetIntegers, SetEntries          atomic.Int64
	SetValue                         atomic.Int64
	SortedSetEntries, SortedSetValue atomic.Int64
}

// Init sets the limits of Redis 7.4, as it is configured by default.
func (e *Encodings) Init() {
	e.HashEntries.Store(512)
	e.HashValue.Store(64)
	e.ListSize.Store(-2)
	e.SetIntegers.Store(512)
	e.SetEntries.Store(128)
	e.SetValue.Store(64)
	e.SortedSetEntries.Store(128)
	e.SortedSetValue.Store(64)
}

// encodings are the limits that hold for a call.
func (c *Call) encodings() *Encodings {
	if c.Host.Encodings != nil {
		return c.Host.Encodings
	}
	e := new(Encodings)
	e.Init()
	return e
}

// objectEncoding is OBJECT ENCODING. The store has one encoding a type; clients and tests want to
// see one of Redis's names, so it says what a value of this size would have there if it was just
// made.
func objectEncoding(c *Call) error {
	encoding, err := c.EncodingOf(c.Tx, c.Key(2))
	if encoding == "" && err == nil {
		return c.Reply(nil)
	}
	return c.text(encoding, err)
}

// EncodingOf is the encoding of the value at a key, empty if there is none.
func (c *Call) EncodingOf(tx *db.Tx, key string) (encoding string, err error) {
	typ, err := tx.Key(key).Type()
	if err != nil {
		return "", err
	}
	e := c.encodings()
	switch typ {
	case db.TypeString:
		return stringEncoding(tx.String(key))
	case db.TypeList:
		return listEncoding(e, tx.List(key))
	case db.TypeSet:
		return setEncoding(e, tx.Set(key))
	case db.TypeHash:
		return hashEncoding(e, tx.Hash(key))
	case db.TypeStream:
		return "stream", nil
	case db.TypeSortedSet:
		return sortedSetEncoding(e, tx.SortedSet(key))
	}
	return "", nil
}

// hashEncoding is listpackex if a field has a deadline, which Redis keeps alongside the fields.
// Only a hash that fits into a listpack is searched for deadlines; in a large one they do not
// change the name.
func hashEncoding(e *Encodings, h db.Hash) (string, error) {
	encoding, err := packedEncoding(e.HashEntries.Load(), e.HashValue.Load(), "hashtable", h.Visit)
	if err != nil || encoding != "listpack" {
		return encoding, err
	}
	names, err := h.Fields()
	if err != nil {
		return "", err
	}
	deadlines, err := h.FieldDeadlines(names...)
	for _, d := range deadlines {
		if !d.At.IsZero() {
			encoding = "listpackex"
		}
	}
	return encoding, err
}

// stringEncoding is int for an integer, embstr for a short string, otherwise raw.
func stringEncoding(s db.String) (string, error) {
	n, err := s.Len()
	switch {
	case err != nil:
		return "", err
	case n > longestEmbedded:
		return "raw", nil
	case n <= longestInt:
		value, err := s.Get()
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return "", err
		}
		if _, ok := number.ParseInt(value); ok {
			return "int", nil
		}
	}
	return "embstr", nil
}

// packedEncoding is listpack for a collection with few small elements, otherwise large. It stops at
// the first element that is too long, so a large collection costs little.
func packedEncoding(most, longest int64, large string, visit func(start func(int), visit func(name, value []byte) bool) error) (string, error) {
	n, encoding := 0, "listpack"
	err := visit(func(size int) { n = size }, func(name, value []byte) bool {
		if int64(n) > most || int64(len(name)) > longest || int64(len(value)) > longest {
			encoding = large
		}
		return encoding != large
	})
	return encoding, err
}

// orderedSet is the number of members up to which a set has them in an order.
const orderedSet = 512

// setEncoding is intset for few integers, which ascend where a set has an order, listpack for few short members,
// otherwise hashtable. It reads no more members than it needs: a set beyond both limits ends at its first member.
func setEncoding(e *Encodings, s db.Set) (string, error) {
	n, integers, packed, last := 0, true, true, int64(math.MinInt64)
	err := s.Visit(func(size int) { n = size }, func(member []byte) bool {
		value, isInt := number.ParseInt(member)
		integers = integers && isInt && int64(n) <= e.SetIntegers.Load() && (value >= last || n > orderedSet)
		last = value
		packed = packed && int64(len(member)) <= e.SetValue.Load() && int64(n) <= e.SetEntries.Load()
		return integers || packed
	})
	switch {
	case integers:
		return "intset", err
	case packed:
		return "listpack", err
	}
	return "hashtable", err
}

// sortedSetEncoding is listpack for few short members, otherwise skiplist.
func sortedSetEncoding(e *Encodings, z db.SortedSet) (string, error) {
	return packedEncoding(e.SortedSetEntries.Load(), e.SortedSetValue.Load(), "skiplist", func(start func(int), visit func(name, value []byte) bool) error {
		return z.Visit(db.RankRange{Stop: -1}, start, func(member []byte, _ float64) bool { return visit(member, nil) })
	})
}

// listEncoding is listpack for a list that fits into one node, otherwise quicklist. Where the limit is one of
// bytes, each element counts its own and two more, which is right for short ones; where it is one of elements,
// 8 KiB are a limit as well.
func listEncoding(e *Encodings, l db.List) (string, error) {
	const safe = 8 << 10 // bytes of a node whose limit is one of elements
	limit := e.ListSize.Load()
	size, elements, bytes, encoding := 6+1, int64(0), 4<<10, "listpack" // the size begins with the header and the end
	if limit < 0 {
		bytes <<= min(-limit, 5) - 1
		limit = math.MaxInt64
	} else {
		bytes, limit = safe, max(limit, 1) // a node has room for one element, also where the limit is 0
	}
	err := l.Visit(0, -1, nil, func(value []byte) bool {
		elements++
		if size += len(value) + 2; size > bytes || elements > limit {
			encoding = "quicklist"
		}
		return encoding == "listpack"
	})
	return encoding, err
}
