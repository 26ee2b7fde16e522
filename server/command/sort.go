package command

import (
	"math"
	"strings"

	"github.com/stavedb/stave/db"
)

// BY and GET build names of keys from elements, so which keys SORT reads is known only while it
// runs: such a request locks the whole store (Command.ReadsUnknownKeys). Without them it locks its
// key and the destination, like any command.
//
// Elements are compared as doubles, or as bytes with ALPHA: that is the order of the locale "C",
// where Redis uses its own locale's. Equal numbers are ordered by their bytes.

// sortCommands order the elements of a list, a set or a sorted set, by themselves or by other keys
// that a pattern names. With BY or GET any key may be read, so that the whole store is locked.
var sortCommands = []*Command{
	{Name: "sort", Arity: -2, Flags: Write | DenyOOM | MovableKeys | Dangerous | collectionCategories, Group: GroupGeneric,
		Keys: append(sortKeys(), Keys{Use: "OW update", Unknown: true, find: sortDestination}),
		Run:  func(c *Call) error { return sortElements(c, true) }},
	{Name: "sort_ro", Arity: -2, Flags: ReadOnly | MovableKeys | Dangerous | collectionCategories, Group: GroupGeneric, Keys: sortKeys(),
		Run: func(c *Call) error { return sortElements(c, false) }},
}

// sortKeys are the keys of SORT_RO: the one that is sorted, and those that the patterns of BY and
// GET name.
func sortKeys() []Keys {
	return []Keys{{Use: "RO access", First: 1, Step: 1}, {Use: "RO access", Unknown: true}}
}

// sortDestination finds the key of SORT's STORE; of several the last one counts. It must agree with
// sortElements about which words take arguments, or a key would be written without a lock.
func sortDestination(args [][]byte) (destination []int) {
	for i := 2; i+1 < len(args); i++ {
		switch {
		case equalFold(args[i], "limit"):
			i += 2
		case equalFold(args[i], "get"), equalFold(args[i], "by"):
			i++
		case equalFold(args[i], "store"):
			i++
			destination = []int{i}
		}
	}
	return destination
}

// Patterns reach keys that the arguments do not name, so a user needs all of them.
const (
	errSortBy  Error = "ERR BY option of SORT denied due to insufficient ACL permissions"
	errSortGet Error = "ERR GET option of SORT denied due to insufficient ACL permissions"
)

// sortElements is SORT and SORT_RO. The words are checked before the key, as in Redis. A BY without
// a star means "do not sort": the order is then that of the list, or of the scores. With STORE the
// reply is the length of the list that was stored, and an empty result deletes the destination.
func sortElements(c *Call, stores bool) error {
	var o db.SortOptions
	destination := -1
	for i := 2; i < len(c.Args); i++ {
		more := len(c.Args) - i - 1
		switch {
		case c.Args.Is(i, "asc"):
			o.Descending = false
		case c.Args.Is(i, "desc"):
			o.Descending = true
		case c.Args.Is(i, "alpha"):
			o.Alpha = true
		case c.Args.Is(i, "limit") && more >= 2:
			var err error
			if o.Offset, o.Count, err = c.Args.parseRange(i + 1); err != nil {
				return err
			}
			o.Limited = true
			i += 2
		case stores && c.Args.Is(i, "store") && more >= 1:
			i++
			destination = i
		case c.Args.Is(i, "by") && more >= 1:
			i++
			o.By = c.Key(i)
			if stars := Clip(c.Arg(i), math.MaxInt); !strings.Contains(stars, "*") {
				o.Unsorted = true // for the whole command, whatever another BY says
			} else if !c.mayReadAllKeys() {
				return errSortBy
			}
		case c.Args.Is(i, "get") && more >= 1:
			if !c.mayReadAllKeys() {
				return errSortGet
			}
			i++
			o.Get = append(o.Get, c.Key(i))
		default:
			return ErrSyntax
		}
	}
	key := c.Tx.Key(c.Key(1))
	if destination >= 0 {
		return c.Int(key.SortInto(c.Key(destination), o))
	}
	return key.VisitSorted(o, c.Out.Array, func(value []byte) bool { return c.eachOrNull(0, value) })
}
