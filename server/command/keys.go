package command

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/number"
)

// Keys says where a run of keys stands among the arguments, and what the command does with them:
//
//	GET key                           {First: 1, Step: 1}
//	MSET key value [key value ...]    {First: 1, Last: -1, Step: 2}
//	BLPOP key [key ...] timeout       {First: 1, Last: -2, Step: 1}
//	ZUNION numkeys key [key ...]      {First: 1, Counted: true}
//	MSETEX numkeys key value [key value ...]  {First: 1, Counted: true, Step: 2}
//	GEORADIUS key ... [STORE key]     {First: 6, Keyword: "STORE"}
//	XREAD STREAMS key [key ...] id [id ...]   {First: 1, Keyword: "STREAMS", Half: true}
//
// A command may have several runs. Only keys that a run finds are locked, so a run that finds too
// many costs concurrency, and one that finds too few is a bug.
type Keys struct {
	Use     string // as COMMAND INFO lists it: "RO access", "RW insert" ...
	First   int    // index of the first key; the command's name is argument 0
	Last    int    // index of the last key relative to First; negative counts from the end, -1 being the last argument
	Step    int    // distance between keys; 0 with Counted is 1
	Counted bool   // argument First is the number of keys, which follow it
	Keyword string // upper case: the key follows this word, which is at argument First or later, if it is there at all

	Half bool // with Keyword: the keys are the first half of everything after the word

	Unknown bool                       // the keys have no fixed positions
	find    func(args [][]byte) []int  // indexes of the keys of an Unknown run that the arguments name; nil: none
	vary    func(args [][]byte) string // what a request uses the keys for, if that depends on its other arguments; nil: Use
}

// Append appends the keys of one run.
func (k *Keys) Append(keys []string, args [][]byte) []string {
	if k.isScattered() {
		var room [8]int
		for _, i := range k.scattered(room[:0], args) {
			keys = appendKey(keys, args[i])
		}
		return keys
	}
	first, end, step := k.span(args)
	keys = slices.Grow(keys, max(0, end-first+step-1)/step) // many would be moved over and over
	for i := first; i < end; i += step {
		keys = appendKey(keys, args[i])
	}
	return keys
}

// appendKey appends a copy of a key. A pipeline on one key has one copy for all.
func appendKey(keys []string, key []byte) []string {
	if n := len(keys); n > 0 && keys[n-1] == string(key) {
		return append(keys, keys[n-1])
	}
	return append(keys, string(key))
}

// isScattered says whether scattered finds the keys of the run, and not span.
func (k *Keys) isScattered() bool { return k.Unknown || k.Keyword != "" }

// span returns the first index of a run, the end beyond its last one, and the step between.
func (k *Keys) span(args [][]byte) (first, end, step int) {
	switch {
	case k.Counted:
		n, step := leadingInt(args[k.First]), max(k.Step, 1)
		if n <= 0 || n > (len(args)-k.First-1)/step {
			return 0, 0, 1
		}
		return k.First + 1, k.First + n*step + 1, step
	case k.Last < 0:
		return k.First, min(len(args), len(args)+k.Last+1), k.Step
	}
	return k.First, min(len(args), k.First+k.Last+1), k.Step
}

// scattered appends the indexes of keys whose places depend on words. Wherever a keyword stands more than once, all are
// taken: to lock too many keys does no harm.
func (k *Keys) scattered(list []int, args [][]byte) []int {
	if k.Unknown {
		if k.find != nil {
			list = append(list, k.find(args)...)
		}
		return list
	}
	for i := k.First; i+1 < len(args); i++ {
		if !strings.EqualFold(string(args[i]), k.Keyword) {
			continue
		}
		n := 1
		if k.Half {
			n = (len(args) - i - 1) / 2 // what is left over is no key: the request is refused, and COMMAND GETKEYS does not name it
		}
		for next := i + 1; next <= i+n; next++ {
			list = append(list, next)
		}
		if k.Half {
			break
		}
	}
	return list
}

// KeyUse is a key of a request: the index of its argument, and what it is used for, as in Keys.
type KeyUse struct {
	Arg int
	Use string
}

// AppendKeyUses appends the keys that a request names, in the order of AppendKeys. Of a request whose number of keys is
// none, as 1.5, which the command refuses, Redis still knows the keys by the digits in front, but not what they are
// used for.
func (c *Command) AppendKeyUses(list []KeyUse, args [][]byte) []KeyUse {
	known := !slices.ContainsFunc(c.Keys, func(k Keys) bool {
		if !k.Counted {
			return false
		}
		_, ok := number.ParseInt(args[k.First])
		return !ok
	})
	for i := range c.Keys {
		k, use := &c.Keys[i], ""
		if known {
			use = k.UseBy(args)
		}
		for _, arg := range k.positions(args) {
			list = append(list, KeyUse{arg, use})
		}
	}
	return list
}

// UseBy is what a request does with the keys of the run: of some commands its words decide it.
func (k *Keys) UseBy(args [][]byte) string {
	if k.vary != nil {
		return k.vary(args)
	}
	return k.Use
}

// positions returns the indexes of the keys of one run.
func (k *Keys) positions(args [][]byte) (list []int) {
	if k.isScattered() {
		return k.scattered(nil, args)
	}
	first, end, step := k.span(args)
	for i := first; i < end; i += step {
		list = append(list, i)
	}
	return list
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

// oneKeyVaried is a key whose use depends on the other arguments of a request.
func oneKeyVaried(vary func(args [][]byte) string) []Keys {
	return []Keys{{Use: "RW access update variable_flags", First: 1, Step: 1, vary: vary}}
}

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
