package command

import (
	"bytes"
	"slices"
	"strings"
)

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

// Keys says where a run of keys stands among the arguments, and what the command does with them.
type Keys struct {
	Use     string // as COMMAND INFO lists it: "RO access", "RW insert" ...
	First   int    // index of the first key; the command's name is argument 0
	Last    int    // index of the last key relative to First; negative counts from the end, -1 being the last argument
	Step    int    // distance between keys
	Counted bool   // argument First is the number of keys, which follow it
	Keyword string // upper case: the key follows this word, which is at argument First or later, if it is there at all

	Unknown bool                         // no position tells the keys
	find    func(args [][]byte) []string // keys of an Unknown run that the arguments tell; nil: none
}

// Command is one row of the command table.
type Command struct {
	Name        string // lower case; "client|setname" for a subcommand
	Arity       int    // number of arguments with the name; negative: at least so many
	Flags       Flag
	Group       Group
	Keys        []Keys
	Channels    []Keys // where names stand that COMMAND describes as it does keys, and that are none
	Since       string // first version of Redis (or of Stave, for its own) that has it
	Complexity  string
	Summary     string // one sentence
	Syntax      string // arguments in the notation of usage lines; see parseSyntax
	Subcommands []*Command

	Run       func(*Call) error
	Container *Command
	Index     int // position in a server's counters
}

// IsOwn reports whether the command is Stave's and not Redis's.
func (c *Command) IsOwn() bool { return c.Flags&own != 0 }

// Data returns the commands on keys: all whose handlers work on a transaction of the store, or on the store, and need no
// more of the session than Host lends them.
func Data() []*Command {
	return slices.Concat(
		keyCommands, keyExpireCommands, keyspaceCommands, stringCommands, hashCommands, listCommands, setCommands, setCombineCommands,
		sortedSetCommands, sortedSetRangeCommands, sortedSetCombineCommands, maintenanceCommands,
		stringEditCommands, hashEditCommands, hashExpireCommands, bitmapCommands, hyperLogLogCommands,
		blockingCommands, geoCommands, keyCopyCommands, dumpCommands, objectCommands, memoryCommands, sortCommands,
	)
}

// Table is a set of commands. It must not be changed once it is made.
type Table struct {
	Commands []*Command // sorted by name
	Size     int        // number of commands and subcommands: above every Command.Index
	byName   map[string]*Command
}

// NewTable makes a table of groups of commands. It numbers them, so a command is in one table at a time.
func NewTable(groups ...[]*Command) *Table {
	t := &Table{Commands: slices.Concat(groups...), byName: make(map[string]*Command)}
	slices.SortFunc(t.Commands, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range t.Commands {
		if t.byName[c.Name] != nil {
			panic("BUG: command: two commands called " + c.Name)
		}
		t.byName[c.Name] = c
		c.Index = t.Size
		t.Size++
		for _, sub := range c.Subcommands {
			sub.Container, sub.Index = c, t.Size
			t.Size++
			if sub.Group == "" {
				sub.Group = c.Group
			}
		}
	}
	return t
}

// Lookup returns the command of that name in any case, or nil. A subcommand is called "client|setname".
func (t *Table) Lookup(name string) *Command {
	name = strings.ToLower(name)
	container, sub, isSub := strings.Cut(name, "|")
	c := t.byName[container]
	if c == nil || !isSub {
		return c
	}
	return c.Subcommand([]byte(sub))
}

// maxName is above the length of every command's name.
const maxName = 32

// Find is Lookup without subcommands. It does not allocate.
func (t *Table) Find(name []byte) *Command {
	var lower [maxName]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return t.byName[string(lower[:len(name)])]
}

// Resolve finds the command (or subcommand) of a request and checks the number of arguments. On an error the command is
// the one the request was for, if it is known.
func (t *Table) Resolve(args [][]byte) (*Command, error) {
	cmd := t.Find(args[0])
	if cmd == nil {
		return nil, errUnknownCommand(args)
	}
	if len(cmd.Subcommands) > 0 && len(args) > 1 {
		sub := cmd.Subcommand(args[1])
		if sub == nil {
			return cmd, errUnknownSubcommand(cmd.Name, args[1])
		}
		cmd = sub
	}
	if !cmd.ArityFits(len(args)) {
		return cmd, ArityError(cmd.Name)
	}
	return cmd, nil
}

func (c *Command) Subcommand(name []byte) *Command {
	for _, sub := range c.Subcommands {
		if equalFold(name, sub.Name[len(c.Name)+1:]) {
			return sub
		}
	}
	return nil
}

// equalFold compares ASCII letters without regard to case and everything else byte by byte. lower must be lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// ArityFits says whether n arguments, the name among them, are enough and not too many.
func (c *Command) ArityFits(n int) bool {
	return n == c.Arity || c.Arity < 0 && n >= -c.Arity
}

// KeySpan is COMMAND INFO's old form of the key positions: first, last, step of the first fixed run of keys, widened over
// the runs that follow it.
func (c *Command) KeySpan() (first, last, step int) {
	for i, k := range slices.Concat(c.Keys, c.Channels) {
		if k.Counted || k.Unknown || k.Keyword != "" {
			continue
		}
		end := k.Last
		if end >= 0 {
			end += k.First
		}
		if i == 0 {
			first, last, step = k.First, end, k.Step
		} else if first > 0 {
			last = end
		}
	}
	return first, last, step
}

// AppendKeys appends the keys that a request names. The arity has been checked; a counted run whose count is no number or
// beyond the arguments gives none, for the handler to refuse.
func (c *Command) AppendKeys(keys []string, args [][]byte) []string {
	for i := range c.Keys {
		keys = c.Keys[i].Append(keys, args)
	}
	return keys
}

// Append appends the keys of one run.
func (k *Keys) Append(keys []string, args [][]byte) []string {
	first, last, step := k.First, k.First+k.Last, k.Step
	switch {
	case k.Unknown:
		if k.find != nil {
			keys = append(keys, k.find(args)...)
		}
		return keys
	case k.Keyword != "":
		return k.appendAfterKeyword(keys, args)
	case k.Counted:
		n := leadingInt(args[k.First])
		if n <= 0 || n > len(args)-k.First-1 {
			return keys
		}
		first, last, step = k.First+1, k.First+n, 1
	case k.Last < 0:
		last = len(args) + k.Last
	}
	for i := first; i <= last && i < len(args); i += step {
		keys = append(keys, string(args[i]))
	}
	return keys
}

// leadingInt reads the digits that b starts with, as COMMAND GETKEYS does of Redis; the handlers are strict. What is beyond any number of
// arguments is as good as that.
func leadingInt(b []byte) (n int) {
	for _, c := range bytes.TrimPrefix(bytes.TrimLeft(b, " \t\r\n\v\f"), []byte("+")) {
		if c < '0' || c > '9' || n > 1<<20 {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// appendAfterKeyword appends the arguments behind a keyword. Wherever it stands more than once, all are taken: to lock too many keys
// does no harm.
func (k *Keys) appendAfterKeyword(keys []string, args [][]byte) []string {
	for i := k.First; i+1 < len(args); i++ {
		if strings.EqualFold(string(args[i]), k.Keyword) {
			keys = append(keys, string(args[i+1]))
		}
	}
	return keys
}

// StartsWithKey says whether argument 1 is the first of the keys.
func (c *Command) StartsWithKey() bool { return c.Keys[0].First == 1 && !c.Keys[0].Counted }

// Categories returns the ACL categories, "@" first: those that follow from the flags and the one of the group.
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

// OneKey is the key specification of most commands: one key, behind the name.
func OneKey(use string) []Keys { return []Keys{{Use: use, First: 1, Step: 1}} }

// ManyKeys is that of commands whose arguments are all keys.
func ManyKeys(use string) []Keys { return []Keys{{Use: use, First: 1, Last: -1, Step: 1}} }

// keysFrom2 is the run of keys from argument 2 on.
func keysFrom2(use string) Keys { return Keys{Use: use, First: 2, Last: -1, Step: 1} }

// countedKeys is that of commands that say how many keys follow.
func countedKeys(use string) []Keys { return []Keys{{Use: use, First: 1, Counted: true}} }

// sourceAndDestination is that of commands that take from one key and give to the next.
func sourceAndDestination() []Keys {
	return []Keys{{Use: "RW access delete", First: 1, Step: 1}, {Use: "RW insert", First: 2, Step: 1}}
}

// destinationAnd is that of commands whose first key takes what is made of the others.
func destinationAnd(others Keys) []Keys { return []Keys{{Use: "OW update", First: 1, Step: 1}, others} }

// IsWrite says whether the command needs a writing transaction.
func (c *Command) IsWrite() bool { return c.Flags&Write != 0 }

// CanBatch says whether a command may run in a batch with others.
func (c *Command) CanBatch() bool {
	return len(c.Keys) > 0 && (c.Flags&Fast != 0 || c.Group == GroupString && c.Name != "lcs") && c.Flags&(Blocking|RunsInsideMulti) == 0
}
