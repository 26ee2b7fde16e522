package db

import (
	"context"
	"time"

	"github.com/stavedb/stave/structures"
)

// StreamGroup is a handle on a consumer group of a stream: each entry is delivered to one of its consumers, and is
// pending for it until it is acknowledged. Its methods return structures.ErrNoGroup if the stream or the group does not
// exist, and ErrWrongType if the key holds anything else. A group lives as long as its stream, and is renamed, copied
// and dumped with it. Changes of groups alone are none for a Watch of the key.
type StreamGroup struct {
	stream Stream
	name   string
}

// Group returns a handle on a consumer group of the stream. It reads nothing.
func (s Stream) Group(name string) StreamGroup { return StreamGroup{s, name} }

// StreamGroupStart says where a group begins: the entries after it are those to deliver. The zero value is before all
// entries.
//
//	ID   StreamID
//	Last bool    // after the last entry, not after ID
//	Read *uint64 // how many entries of the stream are up to there; nil: unknown
//	Make bool    // the stream as well, if it does not exist
type StreamGroupStart = structures.StreamGroupStart

// StreamGroupInfo is what is known of a group.
//
//	Name      string
//	Last      StreamID // the last entry that was delivered
//	Read      int64    // how many entries of the stream are up to there; -1 if unknown
//	Lag       int64    // how many there are after it; -1 if unknown
//	Consumers int
//	Pending   int
type StreamGroupInfo = structures.StreamGroupInfo

// StreamConsumer is what is known of a consumer.
//
//	Name    string
//	Seen    int64 // when it last tried to get entries, in Unix milliseconds; up to ten seconds earlier if it was given none
//	Active  int64 // when it last was given entries, in Unix milliseconds; -1: never
//	Pending int
type StreamConsumer = structures.StreamConsumer

// StreamPending is an entry that was delivered to a consumer and has not been acknowledged. The entry itself may be
// gone.
//
//	ID         StreamID
//	Consumer   string
//	Delivered  int64 // the last time, in Unix milliseconds
//	Deliveries int64
type StreamPending = structures.StreamPending

// StreamPendingRange is which pending entries to list.
//
//	From, To StreamID // both inclusive
//	Count    int      // at most so many; 0: all
//	MinIdle  int64    // delivered at least so many milliseconds ago
//	Only     bool     // those of Consumer only
//	Consumer string
type StreamPendingRange = structures.StreamPendingRange

// StreamPendingSummary is how much is pending.
//
//	Count       int
//	First, Last StreamID
//	Consumers   []StreamConsumerPending // in order of name, without those that have none
type StreamPendingSummary = structures.StreamPendingSummary

// StreamClaim says for whom pending entries are taken over, and what is noted about them.
//
//	Consumer   string   // is made if it does not exist
//	MinIdle    int64    // entries that were delivered at least so many milliseconds ago
//	Delivered  *int64   // Unix milliseconds; nil: now
//	Deliveries *int64   // nil: one more, unless JustID
//	Force      bool     // also entries that are pending for nobody
//	JustID     bool     // the entries are returned without fields, and it does not count as a delivery
//	Last       StreamID // the group has delivered at least up to it
type StreamClaim = structures.StreamClaim

// StreamAutoClaim says which pending entries are taken over.
//
//	Consumer string
//	MinIdle  int64    // entries that were delivered at least so many milliseconds ago
//	From     StreamID // from that id on
//	Count    int      // at most so many, and ten times as many are looked at
//	JustID   bool     // the entries are returned without fields, and it does not count as a delivery
type StreamAutoClaim = structures.StreamAutoClaim

// StreamGroupState is all that a group has.
//
//	Name      string
//	Last      StreamID
//	Read      int64 // -1 if unknown
//	Consumers []StreamConsumer
//	Pending   []StreamPending // in order of id
type StreamGroupState = structures.StreamGroupState

// Groups describes the groups of the stream in order of name. O(log n) a group.
func (s Stream) Groups() ([]StreamGroupInfo, error) {
	return call(s.handle, reading, func(t *Tx) ([]StreamGroupInfo, error) { return s.on(t).Groups() })
}

// CountGroups returns the number of groups, 0 if the key does not exist. O(log n).
func (s Stream) CountGroups() (int, error) {
	return call(s.handle, reading, func(t *Tx) (int, error) { return s.on(t).CountGroups() })
}

// RestoreGroup makes a group with all that it is to have, as StreamGroup.State returns it. It returns ErrExists if
// there is one of that name, and fails with structures.ErrNoGroup if an entry is pending for a consumer that there is
// not. O(n log n).
func (s Stream) RestoreGroup(state StreamGroupState) error {
	return groupError(s.do(writing, func(t *Tx) error {
		m, err := t.describing(nsKey{t.ns, s.key})
		if err == nil {
			err = s.on(t).RestoreGroup(state)
		}
		if err != nil || t.captured == nil || len(state.Pending) == 0 {
			return err
		}
		return t.describeStream(m, s.key)
	}))
}

// Create makes the group. It returns ErrExists if there is one of that name, and ErrNotFound if there is no stream and
// start does not make one. O(log n).
func (g StreamGroup) Create(start StreamGroupStart) error {
	return groupError(g.stream.do(writing, func(t *Tx) error { return g.on(t).Create(start) }))
}

// Set lets the group continue after another entry. What is pending stays. O(log n).
func (g StreamGroup) Set(start StreamGroupStart) error {
	return g.stream.do(writing, func(t *Tx) error { return g.on(t).Set(start) })
}

// Destroy removes the group, and says whether it was there. It returns ErrNotFound if there is no stream. It writes one
// record. O(1) a consumer and a pending entry.
func (g StreamGroup) Destroy() (bool, error) {
	did, err := call(g.stream.handle, writing, func(t *Tx) (bool, error) { return g.on(t).Destroy() })
	return did, groupError(err)
}

// groupError is the error of this package for that of structures.
func groupError(err error) error {
	switch err {
	case structures.ErrGroupExists:
		return ErrExists
	case structures.ErrNoKey:
		return ErrNotFound
	}
	return err
}

// Info describes the group. O(log n).
func (g StreamGroup) Info() (StreamGroupInfo, error) {
	return call(g.stream.handle, reading, func(t *Tx) (StreamGroupInfo, error) { return g.on(t).Info() })
}

// State returns all that the group has. O(n log n).
func (g StreamGroup) State() (StreamGroupState, error) {
	return call(g.stream.handle, reading, func(t *Tx) (StreamGroupState, error) { return g.on(t).State() })
}

// CreateConsumer makes a consumer, and says whether it is new. Reading and claiming make theirs themselves. O(log n).
func (g StreamGroup) CreateConsumer(name string) (bool, error) {
	return call(g.stream.handle, writing, func(t *Tx) (bool, error) { return g.on(t).CreateConsumer(name) })
}

// DeleteConsumer removes a consumer, and returns how many entries were pending for it: nobody has these now. It writes a
// record for each of them, in one commit: with a key of 20 bytes some 15 million fit. O(log n) a pending entry.
func (g StreamGroup) DeleteConsumer(name string) (int, error) {
	return call(g.stream.handle, writing, func(t *Tx) (int, error) { return g.on(t).DeleteConsumer(name) })
}

// Consumers describes the consumers of the group in order of name. O(log n) a consumer.
func (g StreamGroup) Consumers() ([]StreamConsumer, error) {
	return call(g.stream.handle, reading, func(t *Tx) ([]StreamConsumer, error) { return g.on(t).Consumers() })
}

// HasNew reports whether there are entries that the group has not delivered. O(log n).
func (g StreamGroup) HasNew() (bool, error) {
	return call(g.stream.handle, reading, func(t *Tx) (bool, error) { return g.on(t).HasNew() })
}

// HasNewBeyond reports whether there are more than n entries that the group has not delivered. O(n + log m), m being
// all entries.
func (g StreamGroup) HasNewBeyond(n int) (bool, error) {
	return call(g.stream.handle, reading, func(t *Tx) (bool, error) { return g.on(t).HasNewBeyond(n) })
}

// Read delivers the next entries of the stream to a consumer, up to count, all if that is 0. They are pending for it
// then. O(log n) an entry.
func (g StreamGroup) Read(consumer string, count int) ([]StreamEntry, error) {
	return g.entries(func(t *Tx, visit func(StreamID, [][]byte) bool) error {
		return g.on(t).Read(structures.StreamGroupRead{Consumer: consumer, Count: count}, visit)
	})
}

// ReadWait is Read that waits while there is nothing new. Who came first gets the next entries. It fails with
// structures.ErrNoGroup once the stream or the group is deleted. In a transaction it does not wait: ErrNotFound.
func (g StreamGroup) ReadWait(ctx context.Context, consumer string, count int) (list []StreamEntry, err error) {
	err = g.stream.await(ctx, g.Wait([]string{g.stream.key}, func(tx *Tx, key string) (err error) {
		list, err = tx.Stream(key).Group(g.name).Read(consumer, count)
		return err
	}))
	return owned(list, err)
}

// Wait is a wait for entries of several streams that the groups of this name have not delivered, or for one of them to
// be gone, which do is to find.
func (g StreamGroup) Wait(keys []string, do func(tx *Tx, key string) error) Wait {
	return Wait{Keys: keys, Type: TypeStream, Do: do, Missing: true, Ready: func(tx *Tx, key string) bool {
		some, err := tx.Stream(key).Group(g.name).HasNew()
		return some || err != nil
	}}
}

// WaitIdle is Wait for entries that have been pending for so many milliseconds as well, which VisitClaimIdle takes over.
func (g StreamGroup) WaitIdle(keys []string, minIdle int64, do func(tx *Tx, key string) error) Wait {
	w := g.Wait(keys, do)
	w.due = func(tx *Tx, key string) time.Duration {
		// What is delivered from now on, or given an earlier time by XCLAIM, is seen then.
		after := min(max(minIdle, shortestLook), longestLook)
		first, some, err := tx.Stream(key).Group(g.name).firstDelivered()
		if some && err == nil {
			after = min(after, minIdle-max(tx.now()-first, 0)) // an entry's time may lie ahead
		}
		return time.Duration(after) * time.Millisecond
	}
	return w
}

// How many milliseconds pass until WaitIdle looks after what is pending, if it has nothing better to go by.
const (
	shortestLook = 100
	longestLook  = 3_600_000
)

// firstDelivered returns when the pending entry was delivered whose delivery is the longest ago, if any is pending.
func (g StreamGroup) firstDelivered() (ms int64, some bool, err error) {
	err = g.stream.do(reading, func(t *Tx) (err error) {
		ms, some, err = g.on(t).FirstDelivered()
		return err
	})
	return ms, some, err
}

// VisitRead is Read that calls visit for each entry with its fields and values in turns, until it returns false: these
// entries have been delivered. The slices are valid during the call only, and visit may not use the store or change the
// transaction. With r.NoAck nothing is pending.
func (g StreamGroup) VisitRead(r structures.StreamGroupRead, visit func(id StreamID, fields [][]byte) bool) error {
	return g.change(func(t *Tx) error { return g.on(t).Read(r, visit) })
}

// History returns what is pending for a consumer after an id, up to count, all if that is 0, and counts as one more
// delivery. An entry that is gone has no fields. O(log n) an entry.
func (g StreamGroup) History(consumer string, after StreamID, count int) ([]StreamEntry, error) {
	return g.entries(func(t *Tx, visit func(StreamID, [][]byte) bool) error {
		return g.on(t).History(structures.StreamGroupRead{Consumer: consumer, Count: count}, after, visit)
	})
}

// VisitHistory is History that calls visit as VisitRead does; fields is nil for an entry that is gone.
func (g StreamGroup) VisitHistory(r structures.StreamGroupRead, after StreamID, visit func(id StreamID, fields [][]byte) bool) error {
	return g.change(func(t *Tx) error { return g.on(t).History(r, after, visit) })
}

// Ack takes entries off what is pending, and returns how many were there, 0 without a group. O(log n) an id.
func (g StreamGroup) Ack(ids ...StreamID) (int, error) {
	return call(g.stream.handle, writing, func(t *Tx) (int, error) { return g.on(t).Ack(ids) })
}

// AckAndDelete acknowledges entries, deletes them from the stream, and returns what became of each: absent
// ones were not pending. O(log n) an entry and a group.
func (g StreamGroup) AckAndDelete(how StreamReferences, ids ...StreamID) (list []StreamDeletion, err error) {
	list = make([]StreamDeletion, 0, len(ids))
	err = g.stream.do(writing, func(t *Tx) error {
		return g.on(t).AckAndDelete(ids, how, func(became StreamDeletion) { list = append(list, became) })
	})
	return owned(list, err)
}

// Pending lists pending entries in order of id. O(log n), and O(1) an entry of the range.
func (g StreamGroup) Pending(r StreamPendingRange) ([]StreamPending, error) {
	return call(g.stream.handle, reading, func(t *Tx) (list []StreamPending, err error) {
		err = g.on(t).Pending(r, func(p StreamPending) bool {
			list = append(list, p)
			return true
		})
		return list, err
	})
}

// PendingSummary says how much is pending. O(log n) a consumer.
func (g StreamGroup) PendingSummary() (StreamPendingSummary, error) {
	return call(g.stream.handle, reading, func(t *Tx) (StreamPendingSummary, error) { return g.on(t).PendingSummary() })
}

// Claim makes pending entries those of another consumer, and returns them; entries that are gone are pending no more.
// O(log n) an id.
func (g StreamGroup) Claim(c StreamClaim, ids ...StreamID) ([]StreamEntry, error) {
	return g.entries(func(t *Tx, visit func(StreamID, [][]byte) bool) error { return g.on(t).Claim(c, ids, visit) })
}

// VisitClaim is Claim that calls visit as VisitRead does.
func (g StreamGroup) VisitClaim(c StreamClaim, ids []StreamID, visit func(id StreamID, fields [][]byte) bool) error {
	return g.change(func(t *Tx) error { return g.on(t).Claim(c, ids, visit) })
}

// AutoClaim is Claim of entries that have been pending for long. It returns where to go on as well, the zero id at the
// end, and which entries were gone. O(log n) an entry looked at.
func (g StreamGroup) AutoClaim(c StreamAutoClaim) (list []StreamEntry, next StreamID, gone []StreamID, err error) {
	list, err = g.entries(func(t *Tx, visit func(StreamID, [][]byte) bool) (err error) {
		next, gone, err = g.on(t).AutoClaim(c, visit)
		return err
	})
	return list, next, gone, err
}

// VisitAutoClaim is AutoClaim that calls visit as VisitRead does.
func (g StreamGroup) VisitAutoClaim(c StreamAutoClaim, visit func(id StreamID, fields [][]byte) bool) (next StreamID, gone []StreamID, err error) {
	err = g.change(func(t *Tx) (err error) {
		next, gone, err = g.on(t).AutoClaim(c, visit)
		return err
	})
	return next, gone, err
}

// VisitClaimIdle makes entries those of a consumer that have been pending for long, the one that was delivered first at
// first, and calls visit as VisitRead does, with how many milliseconds ago and how often each had been delivered. Entries
// that are gone are pending no more. It looks at all that is pending: O(p log p) with p such entries.
func (g StreamGroup) VisitClaimIdle(c structures.StreamIdleClaim, visit func(id StreamID, fields [][]byte, idle, deliveries int64) bool) error {
	return g.change(func(t *Tx) error { return g.on(t).ClaimIdle(c, visit) })
}

// entries collects what a call visits that changes the group.
func (g StreamGroup) entries(fn func(t *Tx, visit func(StreamID, [][]byte) bool) error) (list []StreamEntry, err error) {
	err = g.stream.do(writing, func(t *Tx) error {
		return fn(t, func(id StreamID, fields [][]byte) bool {
			list = append(list, streamEntry(id, fields))
			return true
		})
	})
	return owned(list, err)
}

// change runs a call that writes, and calls what the user has given.
func (g StreamGroup) change(fn func(t *Tx) error) error {
	return g.stream.do(writing, func(t *Tx) error { return g.stream.calling(t, fn) })
}

func (g StreamGroup) on(t *Tx) structures.StreamGroup {
	return structures.StreamGroup{Txn: t.txn(), Key: g.stream.key, Name: g.name, Now: t.now()}
}
