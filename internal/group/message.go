package group

import "time"

// Ping is what a primary sends to each member that follows it, again and again.
type Ping struct {
	Term uint64
	Sent time.Duration // by the primary's clock
	// Known is how far those in sync have come, for the choice of a successor.
	Known []Position
}

// Position is how far a member has come.
type Position struct {
	Member Member
	Offset uint64
}

// Ack answers a Ping, and says that a member has what the primary has sent up to Offset: applied, or on its disk if each
// commit is to be synced. An offset says something within a term only: another primary may have other commits there. It is
// positive; 0 says that the member does not follow the stream of the term. It is also the promise not to take over for Options.Patience.
type Ack struct {
	Term   uint64
	Sent   time.Duration // of the newest ping that has arrived
	Member Member
	Offset uint64
	// Address is where others reach the member; "" if it is as the record has it.
	Address string
}

// An Action is what a Node asks for: Read, Swap or Send.
type Action any

// Read asks for the record as it is now, not as a replica of the service may have it, which ends in Node.Answer.
type Read struct{}

// Swap replaces the record if it still has a version. The outcome is Node.Learn with the record that is there now, or, if
// there is no answer, nothing: then the swap may be carried out at any later time.
type Swap struct {
	If     int64  `json:"if"`
	Record Record `json:"record"`
}

// Send is a message to a member: a Ping or an Ack. It may be lost.
type Send struct {
	To      string
	Message any
}
