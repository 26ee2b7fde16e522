package bitcask

import "github.com/stavedb/stave/bitcask/internal/format"

// Kind says what a record is: a string, an element, a count, a deadline, or a tombstone of one.
type Kind = format.Kind

// Identity is what a record is about: namespace, kind, type, key and element. No
// two facts share one, whatever bytes their keys and elements hold.
type Identity = format.Identity

// The kinds of records. Their numbers are part of the format.
const (
	KindString                 = format.KindString
	KindElement                = format.KindElement
	KindMeta                   = format.KindMeta
	KindBound                  = format.KindBound
	KindOrder                  = format.KindOrder
	KindDeadline               = format.KindDeadline
	KindTombstone              = format.KindTombstone
	KindElementTombstone       = format.KindElementTombstone
	KindDeadlineTombstone      = format.KindDeadlineTombstone
	KindNamespaces             = format.KindNamespaces
	KindFieldDeadline          = format.KindFieldDeadline
	KindFieldDeadlineTombstone = format.KindFieldDeadlineTombstone
	KindSystem                 = format.KindSystem
)

// Limits of the format, in bytes but for MaxSystemRecords.
const (
	MaxKey           = format.MaxKey           // longest user key
	MaxElement       = format.MaxElement       // longest field or member
	MaxValue         = format.MaxValue         // longest value
	MaxCommit        = format.MaxCommit        // longest commit, headers included
	MaxSystemName    = format.MaxSystemName    // longest name of a system record
	MaxSystemValue   = format.MaxSystemValue   // longest value of a system record
	MaxSystemRecords = format.MaxSystemRecords // system records that a store has at a time
)
