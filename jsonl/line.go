package jsonl

// A keyLine is one key as a line of JSON carries it, in both directions.
type keyLine struct {
	namespace int
	key       string
	kind      string    // string, hash, list, set, zset
	value     string    // of a string
	elements  []element // of the four collections
	expireAt  int64     // deadline in Unix milliseconds; 0: none
	deadlines []fieldDeadline
}

// An element is a hash field (name, value), a list element (value), a set member
// (name) or a sorted-set member (name, score).
type element struct {
	name, value string
	score       float64
}

// A fieldDeadline is the deadline of one field of a hash.
type fieldDeadline struct {
	field    string
	expireAt int64 // Unix milliseconds
}

// kinds are the types that a line can hold, by their names in JSON.
var kinds = map[string]bool{"string": true, "hash": true, "list": true, "set": true, "zset": true}

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
	memberCount
)

// memberNames are their names in JSON.
var memberNames = [memberCount]string{"db", "key", "keyB64", "type", "value", "valueB64", "ttl_ms", "expire_at_ms", "field_expire_at_ms"}

// expired reports whether the key's deadline has passed at now (Unix ms).
func (l *keyLine) expired(now int64) bool { return l.expireAt != 0 && l.expireAt <= now }
