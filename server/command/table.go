package command

import (
	"bytes"
	"slices"
	"strings"
)

// Command is one row of the command table.
type Command struct {
	// Name is in lower case, "client|setname" for a subcommand.
	Name string
	// Arity is the number of arguments, the name among them; negative: at least so many.
	Arity int
	Flags Flag
	// Work is how long a request works, where the flags do not say it.
	Work  Work
	Group Group
	// Keys are the runs of keys among the arguments.
	Keys []Keys
	// Channels are runs of names that COMMAND describes like keys, and that are none.
	Channels []Keys
	// Listens are the channels that a request is about, for the permissions of users.
	Listens Listens
	// Since, Complexity, Summary, Syntax and Tips are what the documentation says: see there. NewTable sets them.
	Since, Complexity, Summary, Syntax string
	Tips                               []string
	// Count is which argument says how many elements to take; 0 for none, and one element is taken
	// if it is absent.
	Count int
	// Subcommands make a container of the command: argument 1 chooses one of them.
	Subcommands []*Command

	// Run executes a call and appends its reply. If it returns an error, that is the reply, and its
	// writes are rolled back.
	Run func(*Call) error
	// Cost is what a request takes, unless its arguments say otherwise: see CostOf. NewTable sets it.
	Cost Cost
	// Container is the command whose subcommand this is; nil for others. NewTable sets it.
	Container *Command
	// Index numbers the commands of a table from 0, for counters. NewTable sets it.
	Index int
}

// Listens says which arguments are channels that a user needs permission for.
type Listens int

// To publish and to subscribe need a permission; to leave does not.
const (
	ToNothing     Listens = iota
	ToOneChannel          // argument 1
	ToAllChannels         // all arguments
	ToAllPatterns         // all arguments, which are patterns
)

// ChannelArgs returns which of n arguments are channels or patterns of channels; none if last is below first.
func (c *Command) ChannelArgs(n int) (first, last int, arePatterns bool) {
	switch c.Listens {
	case ToOneChannel:
		return 1, 1, false
	case ToAllChannels, ToAllPatterns:
		return 1, n - 1, c.Listens == ToAllPatterns
	}
	return 1, 0, false
}

// IsOwn reports whether the command is Stave's and not Redis's.
func (c *Command) IsOwn() bool { return c.Flags&own != 0 }

// InGroup puts rows into a group of Redis's and returns them.
func InGroup(group Group, rows []*Command) []*Command {
	for _, c := range rows {
		c.Group = group
	}
	return rows
}

// Data returns the commands on keys: all whose handlers work on a transaction of the store, or on
// the store, and need no more of the session than Host lends them.
func Data() []*Command {
	return slices.Concat(
		keyCommands, keyExpireCommands, keyspaceCommands, stringCommands, stringCompareCommands, stringIncrexCommands, hashCommands, listCommands, setCommands, setCombineCommands,
		sortedSetCommands, sortedSetRangeCommands, sortedSetCombineCommands, maintenanceCommands,
		hashExpireCommands, bitmapCommands, hyperLogLogCommands,
		blockingCommands, streamCommands, streamGroupCommands, streamInfoCommands, geoCommands, keyCopyCommands, dumpCommands, objectCommands, memoryCommands, sortCommands,
		serverCommands,
	)
}

// Table is a set of commands. It must not be changed once it is made.
type Table struct {
	Commands []*Command // sorted by name
	Size     int        // number of commands and subcommands: above every Command.Index
	byName   map[string]*Command
}

// NewTable makes a table of groups of commands. It numbers them, so a command is in one table at a
// time.
func NewTable(groups ...[]*Command) *Table {
	t := &Table{Commands: slices.Concat(groups...), byName: make(map[string]*Command)}
	slices.SortFunc(t.Commands, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range t.Commands {
		if t.byName[c.Name] != nil {
			panic("BUG: command: two commands called " + c.Name)
		}
		t.byName[c.Name] = c
		c.document()
		c.Cost = c.cost()
		c.Index = t.Size
		t.Size++
		for _, sub := range c.Subcommands {
			sub.document()
			sub.Container, sub.Index = c, t.Size
			sub.Cost = sub.cost()
			t.Size++
			if sub.Group == "" {
				sub.Group = c.Group
			}
		}
	}
	return t
}

// Lookup returns the command of that name in any case, or nil. A subcommand is called
// "client|setname".
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

// Resolve finds the command (or subcommand) of a request and checks the number of arguments. On an
// error the command is the one the request was for, if it is known. The order is Redis's: an
// unknown command, an unknown subcommand, then the number of arguments. A container without a
// subcommand has the arity error of its own row.
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

// IsHTTP reports whether a request that is no command is a line of HTTP: one that begins with POST or Host:, or the
// first line of a request of any method. A browser that is tricked into talking to the port of a server sends one.
func IsHTTP(args [][]byte) bool {
	return equalFold(args[0], "post") || equalFold(args[0], "host:") ||
		len(args) == 3 && bytes.HasPrefix(args[1], []byte("/")) && bytes.HasPrefix(args[2], []byte("HTTP/"))
}

// Subcommand returns the subcommand of that name in any case, nil if there is none.
func (c *Command) Subcommand(name []byte) *Command {
	for _, sub := range c.Subcommands {
		if equalFold(name, sub.Name[len(c.Name)+1:]) {
			return sub
		}
	}
	return nil
}

// equalFold compares ASCII letters without regard to case and everything else byte by byte. lower
// must be lower case.
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

// Publishes reports whether the command publishes a message.
func (c *Command) Publishes() bool { return c.Listens == ToOneChannel }

// IsWrite says whether the command may write.
func (c *Command) IsWrite() bool { return c.Flags&Write != 0 }

// Writes reports whether a request needs a writing transaction: one of a command such as SORT or GEORADIUS, which
// writes only to a key that follows the word STORE, locks as a reader without that. The arity has been checked.
func (c *Command) Writes(args [][]byte) bool {
	if !c.IsWrite() {
		return c.SavesCount(args)
	}
	if c.Flags&Blocking != 0 { // XREADGROUP, to which Redis gives keys that are read only, writes what is pending
		return true
	}
	for i := range c.Keys {
		if k := &c.Keys[i]; !strings.HasPrefix(k.Use, "RO") && (k.Keyword == "" && !k.Unknown || len(k.Append(nil, args)) > 0) {
			return true
		}
	}
	return len(c.Keys) == 0
}

// SavesCount reports whether a request reads, but may keep what it has computed with the key that it read, as PFCOUNT
// does. It needs a writing transaction for that, and can do without.
func (c *Command) SavesCount(args [][]byte) bool { return c.Flags&savesCount != 0 && len(args) == 2 }
