package command

import (
	"bytes"
	"slices"
	"strings"
)

// Keys says where a run of keys stands among the arguments, and what the command does with them:
//
//	GET key                           {First: 1, Step: 1}
//	MSET key value [key value ...]    {First: 1, Last: -1, Step: 2}
//	BLPOP key [key ...] timeout       {First: 1, Last: -2, Step: 1}
//	ZUNION numkeys key [key ...]      {First: 1, Counted: true}
//	GEORADIUS key ... [STORE key]     {First: 6, Keyword: "STORE"}
//
// A command may have several runs. Only keys that a run finds are locked, so a run that finds too
// many costs concurrency, and one that finds too few is a bug.
type Keys struct {
	Use     string // as COMMAND INFO lists it: "RO access", "RW insert" ...
	First   int    // index of the first key; the command's name is argument 0
	Last    int    // index of the last key relative to First; negative counts from the end, -1 being the last argument
	Step    int    // distance between keys
	Counted bool   // argument First is the number of keys, which follow it
	Keyword string // upper case: the key follows this word, which is at argument First or later, if it is there at all

	Unknown bool                         // the keys have no fixed positions
	find    func(args [][]byte) []string // keys of an Unknown run that the arguments name; nil: none
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

// appendAfterKeyword appends the arguments after a keyword. Wherever it stands more than once, all
// are taken: to lock too many keys does no harm.
func (k *Keys) appendAfterKeyword(keys []string, args [][]byte) []string {
	for i := k.First; i+1 < len(args); i++ {
		if strings.EqualFold(string(args[i]), k.Keyword) {
			keys = append(keys, string(args[i+1]))
		}
	}
	return keys
}

// leadingInt reads the digits that b starts with, as COMMAND GETKEYS does of Redis; the handlers
// are strict. It saturates beyond any number of arguments.
func leadingInt(b []byte) (n int) {
	for _, c := range bytes.TrimPrefix(bytes.TrimLeft(b, " \t\r\n\v\f"), []byte("+")) {
		if c < '0' || c > '9' || n > 1<<20 {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// AppendKeys appends the keys that a request names. The arity has been checked; a counted run whose
// count is no number or beyond the arguments gives none, for the handler to refuse.
func (c *Command) AppendKeys(keys []string, args [][]byte) []string {
	for i := range c.Keys {
		keys = c.Keys[i].Append(keys, args)
	}
	return keys
}

// StartsWithKey says whether argument 1 is the first of the keys.
func (c *Command) StartsWithKey() bool { return c.Keys[0].First == 1 && !c.Keys[0].Counted }

// ReadsUnknownKeys says whether a request may read keys that its arguments do not name, so that it
// has to lock the whole store.
func (c *Command) ReadsUnknownKeys(args [][]byte) bool {
	if !slices.ContainsFunc(c.Keys, func(k Keys) bool { return k.Unknown }) {
		return false
	}
	return slices.ContainsFunc(args, func(arg []byte) bool { return equalFold(arg, "by") || equalFold(arg, "get") })
}

// KeySpan is COMMAND INFO's old form of the key positions: first, last, step of the first fixed run
// of keys, widened over the runs that follow it.
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

// OneKey is the key specification of most commands: one key, after the name.
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

// destinationAnd is that of commands whose first key takes the result of the others.
func destinationAnd(others Keys) []Keys { return []Keys{{Use: "OW update", First: 1, Step: 1}, others} }

// beforeTimeout is the run of keys of commands whose last argument is a timeout.
func beforeTimeout() []Keys { return []Keys{{Use: "RW access delete", First: 1, Last: -2, Step: 1}} }

// countedKeysFrom2 is the run of keys of commands whose argument 1 is a destination and 2 the
// number of sources.
func countedKeysFrom2() Keys { return Keys{Use: "RO access", First: 2, Counted: true} }
