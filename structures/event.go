package structures

// EventKind is what a call did to a key, as Redis names it in its keyspace
// notifications: "set", "lpush", "rename_from". Its String is that name.
type EventKind uint8

// EventClass is a set of classes of events: those that Redis's setting notify-keyspace-events
// selects with a letter each, and those of whole namespaces, which Redis does not report.
type EventClass uint16

// The classes.
const (
	ClassGeneric   EventClass = 1 << iota // g: what can happen to a key of any type
	ClassString                           // $
	ClassList                             // l
	ClassSet                              // s
	ClassHash                             // h
	ClassSortedSet                        // z
	ClassExpired                          // x: the time of a key has come
	ClassEvicted                          // e: a key has made room for others
	ClassNew                              // n: a key has been made
	ClassNamespace                        // a whole namespace has been emptied or swapped
	ClassStream                           // t

	// AllClasses is every class but ClassNew, which "lpush" and its like imply.
	AllClasses = ClassGeneric | ClassString | ClassList | ClassSet | ClassHash | ClassSortedSet | ClassStream | ClassExpired | ClassEvicted | ClassNamespace
)

// The events. A call that leaves a collection empty reports EventDel after its own event.
const (
	EventNone EventKind = iota
	EventDel
	EventExpire
	EventPersist
	EventRenameFrom
	EventRenameTo
	EventMoveFrom
	EventMoveTo
	EventCopyTo
	EventRestore

	EventSet
	EventSetRange
	EventAppend
	EventIncrBy
	EventIncrByFloat
	EventSetBit
	EventPFAdd

	EventHSet
	EventHDel
	EventHIncrBy
	EventHIncrByFloat
	EventHExpire
	EventHExpired
	EventHPersist

	EventLPush
	EventRPush
	EventLPop
	EventRPop
	EventLInsert
	EventLSet
	EventLTrim
	EventLRem
	EventSortStore

	EventSAdd
	EventSRem
	EventSPop
	EventSUnionStore
	EventSInterStore
	EventSDiffStore

	EventZAdd
	EventZIncr
	EventZRem
	EventZPopMin
	EventZPopMax
	EventZRemRangeByRank
	EventZRemRangeByScore
	EventZRemRangeByLex
	EventZUnionStore
	EventZInterStore
	EventZDiffStore
	EventZRangeStore
	EventGeoSearchStore
	EventGeoRadiusStore

	EventXAdd
	EventXDel
	EventXTrim
	EventXSetID
	EventXGroupCreate
	EventXGroupSetID
	EventXGroupDestroy
	EventXGroupCreateConsumer
	EventXGroupDelConsumer

	EventExpired
	EventEvicted
	EventNew

	EventFlushed // the namespace is empty now; the key is ""
	EventSwapped // the namespace has been swapped with another one; the key is ""
)

var eventNames = [...]string{
	EventDel: "del", EventExpire: "expire", EventPersist: "persist", EventRenameFrom: "rename_from", EventRenameTo: "rename_to",
	EventMoveFrom: "move_from", EventMoveTo: "move_to", EventCopyTo: "copy_to", EventRestore: "restore",

	EventSet: "set", EventSetRange: "setrange", EventAppend: "append", EventIncrBy: "incrby", EventIncrByFloat: "incrbyfloat",
	EventSetBit: "setbit", EventPFAdd: "pfadd",

	EventHSet: "hset", EventHDel: "hdel", EventHIncrBy: "hincrby", EventHIncrByFloat: "hincrbyfloat", EventHExpire: "hexpire",
	EventHExpired: "hexpired", EventHPersist: "hpersist",

	EventLPush: "lpush", EventRPush: "rpush", EventLPop: "lpop", EventRPop: "rpop", EventLInsert: "linsert", EventLSet: "lset",
	EventLTrim: "ltrim", EventLRem: "lrem", EventSortStore: "sortstore",

	EventSAdd: "sadd", EventSRem: "srem", EventSPop: "spop", EventSUnionStore: "sunionstore", EventSInterStore: "sinterstore",
	EventSDiffStore: "sdiffstore",

	EventZAdd: "zadd", EventZIncr: "zincr", EventZRem: "zrem", EventZPopMin: "zpopmin", EventZPopMax: "zpopmax",
	EventZRemRangeByRank: "zremrangebyrank", EventZRemRangeByScore: "zremrangebyscore", EventZRemRangeByLex: "zremrangebylex",
	EventZUnionStore: "zunionstore", EventZInterStore: "zinterstore", EventZDiffStore: "zdiffstore", EventZRangeStore: "zrangestore",
	EventGeoSearchStore: "geosearchstore", EventGeoRadiusStore: "georadiusstore",

	EventXAdd: "xadd", EventXDel: "xdel", EventXTrim: "xtrim", EventXSetID: "xsetid",
	EventXGroupCreate: "xgroup-create", EventXGroupSetID: "xgroup-setid", EventXGroupDestroy: "xgroup-destroy",
	EventXGroupCreateConsumer: "xgroup-createconsumer", EventXGroupDelConsumer: "xgroup-delconsumer",

	EventExpired: "expired", EventEvicted: "evicted", EventNew: "new", EventFlushed: "flushed", EventSwapped: "swapped",
}

func (e EventKind) String() string { return eventNames[e] }

// Class is the class that the event belongs to, 0 for EventNone.
func (e EventKind) Class() EventClass {
	switch {
	case e == EventNone:
		return 0
	case e <= EventRestore:
		return ClassGeneric
	case e <= EventPFAdd:
		return ClassString
	case e <= EventHPersist:
		return ClassHash
	case e <= EventSortStore:
		return ClassList
	case e <= EventSDiffStore:
		return ClassSet
	case e <= EventGeoRadiusStore:
		return ClassSortedSet
	case e <= EventXGroupDelConsumer:
		return ClassStream
	}
	switch e {
	case EventExpired:
		return ClassExpired
	case EventEvicted:
		return ClassEvicted
	case EventNew:
		return ClassNew
	}
	return ClassNamespace
}

// Quiet is a Txn for the parts of a call that names its event as a whole.
type Quiet struct{ Txn }

// Notify does nothing.
func (Quiet) Notify(EventKind, string) {}

// The same of what single types need.
type (
	quietList   struct{ ListTxn }
	quietStream struct{ StreamTxn }
)

func (quietList) Notify(EventKind, string)   {}
func (quietStream) Notify(EventKind, string) {}

// notifyUnless notifies of an event unless there was an error, which it returns.
func notifyUnless(t Events, e EventKind, key string, err error) error {
	if err == nil {
		t.Notify(e, key)
	}
	return err
}

// notifyReplaced reports the event of a call that makes a key anew out of n elements: without any,
// the old key has been deleted.
func notifyReplaced(t Events, e EventKind, key string, existed bool, n int, err error) error {
	switch {
	case err != nil:
	case n > 0:
		t.Notify(e, key)
	case existed:
		t.Notify(EventDel, key)
	}
	return err
}
