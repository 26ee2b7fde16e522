package jsonl

import (
	"github.com/stavedb/stave/internal/keyimport"
	"github.com/stavedb/stave/internal/rdb"
)

// A line is one key as a line of JSON carries it, or a library of functions.
type line struct {
	keyimport.Item
	kind string // in the words of JSON
}

// kinds are the types that a line can hold, by their names in JSON.
var kinds = map[string]rdb.Kind{
	"string": rdb.String, "hash": rdb.Hash, "list": rdb.List, "set": rdb.Set, "zset": rdb.SortedSet, "stream": rdb.StreamKind,
}

// The members that a line may have.
const (
	memberDB = iota
	memberKey
	memberKeyB64
	memberType
	memberValue
	memberValueB64
	memberTTL
	memberExpireAt
	memberFieldExpireAt
	memberLibrary
	memberCount
)

// memberNames are their names in JSON.
var memberNames = [memberCount]string{"db", "key", "keyB64", "type", "value", "valueB64", "ttl_ms", "expire_at_ms", "field_expire_at_ms", "library"}
