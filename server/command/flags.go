package command

// Flag is a set of properties of a command, named as COMMAND INFO names them.
type Flag uint32

// The flags, in the order in which COMMAND INFO lists them.
const (
	Write    Flag = 1 << iota // may change keys
	ReadOnly                  // reads keys, never changes them
	DenyOOM                   // may grow the data
	Admin                     // for operators
	PubSub
	NoScript // not from scripts
	Blocking // may wait
	Loading  // allowed while the store is loading
	Stale    // allowed on a stale replica
	SkipMonitor
	SkipSlowlog
	Fast    // O(1) or O(log n): never scans
	NoAuth  // allowed before authentication
	NoMulti // not inside MULTI
	MovableKeys
	AllowBusy

	Dangerous          // category only: can hurt a production store
	WholeKeyspace      // runs on the keyspace as a whole, not on keys it names
	ConnectionCategory // category "connection", whatever the group
	AdminCategory      // category "admin", without the flag
)

const (
	WhileSubscribed      Flag = 1 << (28 + iota) // allowed to a RESP2 session that has subscribed to something
	collectionCategories                         // categories "set", "sortedset" and "list", instead of "keyspace"
	RunsInsideMulti                              // executed at once within MULTI, not queued
	own                                          // Redis does not have it
)

var flagNames = []string{
	"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking", "loading", "stale", "skip_monitor",
	"skip_slowlog", "fast", "no_auth", "no_multi", "movablekeys", "allow_busy",
}

// Names returns the flags as COMMAND INFO lists them.
func (f Flag) Names() []string {
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Group is the family a command belongs to.
type Group string

// The groups, by the names of the ACL categories of Redis.
const (
	GroupGeneric      Group = "generic"
	GroupHyperLogLog  Group = "hyperloglog"
	GroupString       Group = "string"
	GroupBitmap       Group = "bitmap"
	GroupHash         Group = "hash"
	GroupList         Group = "list"
	GroupSet          Group = "set"
	GroupSortedSet    Group = "sorted-set"
	GroupGeo          Group = "geo"
	GroupConnection   Group = "connection"
	GroupServer       Group = "server"
	GroupTransactions Group = "transactions"
	GroupPubSub       Group = "pubsub"
)

// Categories returns the ACL categories, "@" first: those that follow from the flags and the one of
// the group.
func (c *Command) Categories() []string {
	var names []string
	add := func(name string, is bool) {
		if is {
			names = append(names, "@"+name)
		}
	}
	add("keyspace", c.Group == GroupGeneric && len(c.Keys) > 0 && c.Flags&collectionCategories == 0 || c.Flags&WholeKeyspace != 0)
	add("set", c.Flags&collectionCategories != 0)
	add("sortedset", c.Flags&collectionCategories != 0)
	add("list", c.Flags&collectionCategories != 0)
	add("write", c.Flags&Write != 0)
	add("read", c.Flags&ReadOnly != 0)
	add("connection", c.Flags&ConnectionCategory != 0)
	switch c.Group {
	case GroupSortedSet:
		add("sortedset", true)
	case GroupTransactions:
		add("transaction", true)
	case GroupGeneric, GroupServer, GroupPubSub:
	default:
		add(string(c.Group), true)
	}
	add("pubsub", c.Flags&PubSub != 0)
	add("admin", c.Flags&(Admin|AdminCategory) != 0)
	add("fast", c.Flags&Fast != 0)
	add("slow", c.Flags&Fast == 0)
	add("blocking", c.Flags&Blocking != 0)
	add("dangerous", c.Flags&(Dangerous|Admin) != 0)
	return names
}
