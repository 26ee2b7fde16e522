package structures

import (
	"fmt"

	"github.com/stavedb/stave/keydir"
)

// Error is a refusal: the command does not fit the data or its own arguments.
// The text is Redis's, with its leading code, and can be sent to a client as
// it is. Nothing was written.
type Error string

// Error returns the text.
func (e Error) Error() string { return string(e) }

// The refusals of the types.
const (
	ErrWrongType      Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrNoKey          Error = "ERR no such key"
	ErrNotInteger     Error = "ERR value is not an integer or out of range"
	ErrNotFloat       Error = "ERR value is not a valid float"
	ErrOverflow       Error = "ERR increment or decrement would overflow"
	ErrHashNotInteger Error = "ERR hash value is not an integer"
	ErrHashNotFloat   Error = "ERR hash value is not a float"
	ErrNaNOrInfinity  Error = "ERR value is NaN or Infinity"
	ErrSumInfinite    Error = "ERR increment would produce NaN or Infinity"
	ErrBounds         Error = "ERR the lower bound is greater than the upper bound"
	ErrOffset         Error = "ERR offset is out of range"
	ErrBitOffset      Error = "ERR bit offset is not an integer or out of range"
	ErrBitfieldType   Error = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	ErrBitNot         Error = "ERR BITOP NOT must be called with a single source key."
	ErrBitTwoSources  Error = "ERR BITOP must be called with at least two source keys."
	ErrNotSketch      Error = "WRONGTYPE Key is not a valid HyperLogLog string value."
	ErrSketchDamaged  Error = "INVALIDOBJ Corrupted HLL object detected"
	ErrSortScore      Error = "ERR One or more scores can't be converted into double"
	ErrLCSType        Error = "ERR The specified keys must contain string values"
	ErrLCSTooLong     Error = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
	ErrTooLong        Error = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrNameTooLong    Error = "ERR name of a field or member exceeds maximum allowed size (65535 bytes)"
	ErrIndexRange     Error = "ERR index out of range"
	ErrNegative       Error = "ERR value is out of range, must be positive"
	ErrSyntax         Error = "ERR syntax error"
	ErrExpireTime     Error = "ERR invalid expire time"
	ErrScoreNaN       Error = "ERR resulting score is not a number (NaN)"
	ErrScoreRange     Error = "ERR min or max is not a float"
	ErrLexRange       Error = "ERR min or max not valid string range item"
	ErrAddNXXX        Error = "ERR XX and NX options at the same time are not compatible"
	ErrAddNXGTLT      Error = "ERR GT, LT, and/or NX options at the same time are not compatible"
	ErrExpireNX       Error = "ERR NX and XX, GT or LT options at the same time are not compatible"
	ErrStreamIDZero   Error = "ERR The ID specified in XADD must be greater than 0-0"
	ErrStreamIDSmall  Error = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
	ErrStreamTooLarge Error = "ERR Elements are too large to be stored"
	ErrStreamSetTop   Error = "ERR The ID specified in XSETID is smaller than the target stream top item"
	ErrStreamSetAdded Error = "ERR The entries_added specified in XSETID is smaller than the target stream length"
	ErrStreamExists   Error = "BUSYKEY Target key name already exists."
	ErrNoGroup        Error = "NOGROUP No such consumer group"
	ErrGroupExists    Error = "BUSYGROUP Consumer Group name already exists"
	ErrTooManyGroups  Error = "ERR too many groups or consumers"
	ErrExpireGTLT     Error = "ERR GT and LT options at the same time are not compatible"
)

// Two refusals of streams, whose texts are long.
const (
	ErrStreamExhausted       Error = "ERR The stream has exhausted the last possible ID, unable to add more items"
	ErrStreamSetBelowDeleted Error = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
	ErrStreamSetDeleted      Error = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
)

// MaxString is the longest value of a string, a field or a list element, in
// bytes.
const MaxString = 512 << 20

// checkElem refuses names and values that are too long for a record.
func checkElem(name string, value []byte) error {
	switch {
	case len(name) > keydir.MaxName:
		return ErrNameTooLong
	case len(value) > MaxString:
		return ErrTooLong
	}
	return nil
}

// EntryError reports an entry of a stream whose value is none.
type EntryError struct {
	Key string
	ID  StreamID
}

// Error names the key and the entry.
func (e *EntryError) Error() string {
	return fmt.Sprintf("structures: entry %v of stream %q has a value that is none", e.ID, e.Key)
}
