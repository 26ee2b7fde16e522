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
	stream  keydir.Collection
	all     keydir.Collection
	number  uint32

	positioned bool // the following two are known
	last       StreamID
	read       int64

	consumer groupConsumer // as its record has it; without a name: not known
}

// known fills in what is known of the group. It reports false if nothing is.
func (o *streamGroup) known() bool {
	k, changes := o.Txn.LastGroup()
	if k == nil || !k.is || k.changes != changes || k.key != o.Key || k.name != o.Name {
		return false
	}
	o.stream, o.all, o.number, o.consumerKnown = k.stream, k.all, k.number, k.consumer
	o.positioned, o.last, o.read = k.positioned, k.last, k.read
	return true
}

// note keeps what is known of the group after a call, and of a consumer, if its record says that.
func (o *streamGroup) note(c groupConsumer) {
	k, changes := o.Txn.LastGroup()
	if k == nil {
		return
	}
	*k = KnownGroup{
		is: true, changes: changes, key: o.Key, name: o.Name, stream: o.stream, all: o.all, number: o.number,
		positioned: o.positioned, last: o.last, read: o.read, consumer: c,
	}
}
