package group

import (
	"regexp"
	"slices"
)

var name = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// IsName reports whether a text may be the ID of a member, or the name of a group: up to 64 letters, digits, and any of "._-".
func IsName(text string) bool { return name.MatchString(text) }

// Member is a store of the group. Its incarnation changes when it starts with a log that may be shorter than what it has
// acknowledged: after the loss of power, unless every commit is synced.
type Member struct {
	ID          string `json:"id"`
	Incarnation uint64 `json:"incarnation"`
}

// Record says who is primary. It is kept by a service whose compare-and-swap is linearizable, and changes in no other way.
type Record struct {
	Term    uint64   `json:"term"`    // positive; grows with each process that becomes primary
	Primary string   `json:"primary"` // the ID of a member
	InSync  []Member `json:"in_sync"` // those that have every acknowledged commit, the primary among them
	// Addresses are where clients and other members reach those in sync, by ID, as far as they have said.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Slots are those of the group's keys as ParseSlots reads them, all if it is empty. They are stated when the group is begun, and stay.
	Slots string `json:"slots,omitempty"`
}

// Versioned is a Record with its version, which grows by each swap. The first one is 1.
type Versioned struct {
	Version int64 `json:"version"`
	Record
}

func (r Record) has(m Member) bool { return slices.Contains(r.InSync, m) }
