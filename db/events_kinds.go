package db

import "github.com/stavedb/stave/structures"

// EventKind is an operation, by Redis's name, which is its String: "set", "del", "expired", "hset" ...
type EventKind = structures.EventKind

// EventClass is a set of classes of events.
type EventClass = structures.EventClass

// The classes of events. AllClasses is every class but ClassNew, which "lpush" and its like imply.
const (
	ClassGeneric   = structures.ClassGeneric   // g: what can happen to a key of any type
	ClassString    = structures.ClassString    // $
	ClassList      = structures.ClassList      // l
	ClassSet       = structures.ClassSet       // s
	ClassHash      = structures.ClassHash      // h
	ClassSortedSet = structures.ClassSortedSet // z
	ClassExpired   = structures.ClassExpired   // x: the time of a key has come
	ClassEvicted   = structures.ClassEvicted   // e: a key has made room for others
	ClassNew       = structures.ClassNew       // n: a key has been made
	ClassNamespace = structures.ClassNamespace // a whole namespace has been emptied or swapped
	ClassStream    = structures.ClassStream    // t

	AllClasses = structures.AllClasses
)

// The kinds of events. A call that leaves a collection empty reports EventDel after its own event.
const (
	EventNone       = structures.EventNone
	EventDel        = structures.EventDel
	EventExpire     = structures.EventExpire
	EventPersist    = structures.EventPersist
	EventRenameFrom = structures.EventRenameFrom
	EventRenameTo   = structures.EventRenameTo
	EventMoveFrom   = structures.EventMoveFrom
	EventMoveTo     = structures.EventMoveTo
	EventCopyTo     = structures.EventCopyTo
	EventRestore    = structures.EventRestore

	EventSet         = structures.EventSet
	EventSetRange    = structures.EventSetRange
	EventAppend      = structures.EventAppend
	EventIncrBy      = structures.EventIncrBy
	EventIncrByFloat = structures.EventIncrByFloat
	EventSetBit      = structures.EventSetBit
	EventPFAdd       = structures.EventPFAdd

	EventHSet         = structures.EventHSet
	EventHDel         = structures.EventHDel
	EventHIncrBy      = structures.EventHIncrBy
	EventHIncrByFloat = structures.EventHIncrByFloat
	EventHExpire      = structures.EventHExpire
	EventHExpired     = structures.EventHExpired
	EventHPersist     = structures.EventHPersist

	EventLPush     = structures.EventLPush
	EventRPush     = structures.EventRPush
	EventLPop      = structures.EventLPop
	EventRPop      = structures.EventRPop
	EventLInsert   = structures.EventLInsert
	EventLSet      = structures.EventLSet
	EventLTrim     = structures.EventLTrim
	EventLRem      = structures.EventLRem
	EventSortStore = structures.EventSortStore

	EventSAdd        = structures.EventSAdd
	EventSRem        = structures.EventSRem
	EventSPop        = structures.EventSPop
	EventSUnionStore = structures.EventSUnionStore
	EventSInterStore = structures.EventSInterStore
	EventSDiffStore  = structures.EventSDiffStore

	EventZAdd             = structures.EventZAdd
	EventZIncr            = structures.EventZIncr
	EventZRem             = structures.EventZRem
	EventZPopMin          = structures.EventZPopMin
	EventZPopMax          = structures.EventZPopMax
	EventZRemRangeByRank  = structures.EventZRemRangeByRank
	EventZRemRangeByScore = structures.EventZRemRangeByScore
	EventZRemRangeByLex   = structures.EventZRemRangeByLex
	EventZUnionStore      = structures.EventZUnionStore
	EventZInterStore      = structures.EventZInterStore
	EventZDiffStore       = structures.EventZDiffStore
	EventZRangeStore      = structures.EventZRangeStore
	EventGeoSearchStore   = structures.EventGeoSearchStore
	EventGeoRadiusStore   = structures.EventGeoRadiusStore

	EventXAdd                 = structures.EventXAdd
	EventXDel                 = structures.EventXDel
	EventXTrim                = structures.EventXTrim
	EventXSetID               = structures.EventXSetID
	EventXGroupCreate         = structures.EventXGroupCreate
	EventXGroupSetID          = structures.EventXGroupSetID
	EventXGroupDestroy        = structures.EventXGroupDestroy
	EventXGroupCreateConsumer = structures.EventXGroupCreateConsumer
	EventXGroupDelConsumer    = structures.EventXGroupDelConsumer

	EventExpired = structures.EventExpired
	EventEvicted = structures.EventEvicted
	EventNew     = structures.EventNew

	EventFlushed = structures.EventFlushed // the namespace is empty now; the key is ""
	EventSwapped = structures.EventSwapped // the namespace has been swapped with another one; the key is ""
)
