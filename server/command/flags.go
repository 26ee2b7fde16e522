package command

// Flag is a set of properties of a command, named as COMMAND INFO names them.
type Flag uint64

// The flags, in the order in which COMMAND INFO lists them.
const (
	// Write commands may change keys. They need a writing transaction, which locks their keys
	// exclusively and ends with a commit.
	Write Flag = 1 << iota
	// ReadOnly commands read keys and never change them. Their replies count as hits and misses.
	ReadOnly
	// DenyOOM commands may grow the data. They are refused while maxmemory is exceeded.
	DenyOOM
	// Admin commands are for operators. MONITOR does not show them: they may carry secrets.
	Admin
	// PubSub commands belong to publishing and subscribing.
	PubSub
	// NoScript commands are refused in scripts.
	NoScript
	// Blocking commands may wait for other clients.
	Blocking
	// Loading commands are allowed while the data is being loaded.
	Loading
	// Stale commands are allowed on a replica that has lost its master.
	Stale
	// SkipMonitor commands are not shown by MONITOR after they have run: a script shows itself when it begins.
	SkipMonitor
	// SkipSlowlog commands are not kept by SLOWLOG, such as EXEC, whose commands are kept each by
	// itself.
	SkipSlowlog
	// Fast commands are O(1) or O(log n) and never scan, so they may run in a batch: see Cost.
	Fast
	// NoAuth commands are allowed before authentication.
	NoAuth
	// NoAsyncLoading commands are refused while a replica loads in the background, which none does here.
	NoAsyncLoading
	// NoMulti commands are refused within MULTI.
	NoMulti
	// MovableKeys commands have keys in places that depend on the other arguments.
	MovableKeys
	// AllowBusy commands are allowed while a script runs for long.
	AllowBusy
	// NoMandatoryKeys commands may be given no key at all.
	NoMandatoryKeys

	// Dangerous is a category only: the command can hurt a production store.
	Dangerous
	// WholeKeyspace commands run on the keyspace as a whole, not on keys that they name. Within
	// MULTI they make EXEC lock the whole store.
	WholeKeyspace
	// ConnectionCategory is the category "connection", whatever the group.
	ConnectionCategory
	// AdminCategory is the category "admin" without the flag.
	AdminCategory
)

// Flags that many commands share.
const (
	AnyState   = Loading | Stale // also while a store is being loaded or is stale, which it never is here
	OfSession  = NoScript | AnyState
	OfOperator = Admin | OfSession
)

// Flags that COMMAND INFO does not list. They are counted from the top, so that a flag of Redis's
// can be added below.
const (
	// RunsScript commands run a script, which begins its own transaction.
	RunsScript Flag = 1 << (23 + iota)
	// WhileSubscribed commands are allowed to a RESP2 session that has subscribed to something.
	WhileSubscribed
	// collectionCategories are "set", "sortedset" and "list", which SORT has instead of "keyspace".
	collectionCategories
	// RunsInsideMulti commands are executed at once within MULTI, and not queued.
	RunsInsideMulti
	// own commands do not exist in Redis.
	own
	// savesCount commands read one key, and keep what they have counted with it: see Command.SavesCount.
	savesCount
	// Describes commands reply about the server and change nothing, or what they do may be done again: a reply that finds
	// no room is given up, and the command executed anew. What a command that only reads keys does is known by ReadOnly.
	Describes
)

// flagNames are the names by bit.
var flagNames = []string{
	"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking", "loading", "stale", "skip_monitor",
	"skip_slowlog", "fast", "no_auth", "no_async_loading", "no_multi", "movablekeys", "allow_busy", "no_mandatory_keys",
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
	GroupStream       Group = "stream"
	GroupConnection   Group = "connection"
	GroupCluster      Group = "cluster"
	GroupServer       Group = "server"
	GroupTransactions Group = "transactions"
	GroupPubSub       Group = "pubsub"
	GroupScripting    Group = "scripting"
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
	add("read", c.Flags&ReadOnly != 0 && c.Flags&RunsScript == 0)
	add("connection", c.Flags&ConnectionCategory != 0)
	switch c.Group {
	case GroupConnection:
		add("connection", len(c.Subcommands) == 0) // a container has those that its flags give
	case GroupSortedSet:
		add("sortedset", true)
	case GroupTransactions:
		add("transaction", true)
	case GroupStream:
		add("stream", len(c.Subcommands) == 0)
	case GroupScripting:
		add("scripting", len(c.Subcommands) == 0)
	case GroupGeneric, GroupServer, GroupPubSub, GroupCluster:
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
