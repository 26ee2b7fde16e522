package structures

import "github.com/stavedb/stave/keydir"

// KnownGroup is what a transaction knows of the group that it looked up last. Consumers ask and acknowledge in
// pipelines: the calls of one transaction mostly concern the same group, and often the same consumer, whose records
// need not be found and read for each. It is right as long as nothing has changed but by the calls that note it here
// (Txn.LastGroup), which do not change the stream, and no longer than the transaction, whose clock stands. The zero value
// knows nothing.
type KnownGroup struct {
	is      bool
	changes uint64
	key     string
	name    string
	group   groupFacts

	value [maxGroupValue]byte // room for the value of a record
	ids   []StreamID          // room for those that a call delivers
}

// groupFacts are what is known of a group.
type groupFacts struct {
	elem   string            // of the group
	coll   keydir.Collection // the stream
	all    keydir.Collection // what the groups of the stream have
	number uint32

	positioned bool // the following three are known
	last       StreamID
	read       int64      // entries, -1 if unknown
	record     keydir.Loc // that has them; see Txn.PutGroups

	place    keydir.EntryPlace // of the last entry that was read
	informed bool              // the following two are known
	meta     StreamInfo
	first    StreamID

	consumerKnown groupConsumer // as its record has it; without a name: not known
}

// maxGroupValue is the greatest length of the value of a group, a consumer or a pending entry: numbers and an id.
const maxGroupValue = 4 * 24

// keptIDs is the greatest number of ids for which a transaction keeps room.
const keptIDs = 1024

// Forget makes it know nothing, and keeps its memory.
func (k *KnownGroup) Forget() { k.is, k.key, k.name, k.group = false, "", "", groupFacts{} }

// known fills in what is known of the group. It reports false if nothing is.
func (o *streamGroup) known() bool {
	k, changes := o.Txn.LastGroup()
	if o.noted = k; k == nil || !k.is || k.changes != changes || k.key != o.Key || k.name != o.Name {
		return false
	}
	o.groupFacts = k.group
	return true
}

// note keeps what is known of the group after a call.
func (o *streamGroup) note() {
	k, changes := o.Txn.LastGroup()
	if k == nil {
		return
	}
	k.is, k.changes, k.key, k.name, k.group = true, changes, o.Key, o.Name, o.groupFacts
}

// room returns room for the value of a record.
func (o *streamGroup) room() []byte {
	if o.noted == nil {
		return make([]byte, 0, maxGroupValue)
	}
	return o.noted.value[:0]
}

// roomForIDs returns room for the ids of entries, which keepIDs keeps for the next call.
func (o *streamGroup) roomForIDs() []StreamID {
	if o.noted == nil {
		return nil
	}
	return o.noted.ids[:0]
}

func (o *streamGroup) keepIDs(ids []StreamID) {
	if o.noted != nil && cap(ids) <= keptIDs {
		o.noted.ids = ids
	}
}
