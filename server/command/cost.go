package command

import "github.com/stavedb/stave/internal/resp"

// Work is how long a request works.
type Work uint8

const (
	byFlags Work = iota // of a row: what its flags say
	// Constant is little, whatever the keys hold: the request may share a transaction with its neighbours.
	Constant
	// BySize is as long as the arguments say: some keys, fields or elements.
	BySize
	// ByReply is as long as the reply: the command stops when that exceeds the writer's limit, so with a low limit it takes
	// little.
	ByReply
	// InSteps is as long as the value, but the command asks its transaction about each element, before it has worked on
	// many, whether to go on: see serverside.DB.SetInterrupt.
	InSteps
	// Unbounded is anything else.
	Unbounded
)

// Cost is what a request takes.
type Cost struct {
	Work    Work
	Waits   bool // for other clients, if there is nothing to take
	Repeats bool // it may be executed again after it has been given up: it only reads, or all that it does is rolled back
}

// cost is that of the row. A Fast command is O(1) or O(log n), one of strings is unless it says otherwise; those that wait
// take what they are asked for.
func (c *Command) cost() Cost {
	k := Cost{Work: c.Work, Waits: c.Flags&Blocking != 0}
	k.Repeats = c.Flags&Describes != 0 || c.OnlyReads() || len(c.Keys) > 0 || c.Name == "exec"
	switch {
	case k.Work != byFlags:
	case k.Waits && c.Group == GroupStream: // without COUNT all entries: see CostOf
		k.Work = Unbounded
	case k.Waits:
		k.Work = BySize
	case c.Flags&Fast != 0, c.Group == GroupString:
		k.Work = Constant
	case c.Flags&PubSub != 0 && c.Container == nil:
		k.Work = BySize
	default:
		k.Work = Unbounded
	}
	return k
}

// CostOf is the cost of a request. Its arguments may ask for many elements of a command that otherwise takes one, or for
// few of one that otherwise takes all.
func (c *Command) CostOf(args [][]byte) Cost {
	k := c.Cost
	switch {
	case c.Count != 0:
		if c.takesMany(args) {
			k.Work = Unbounded
		}
	case k.Waits && c.Group == GroupStream:
		if few, waits := readsFew(args); few {
			k.Work, k.Waits = Constant, waits
		}
	case k.Work == Constant && c.Group == GroupStream && asksForReferences(args):
		k.Work = Unbounded
	case c.SavesCount(args):
		k.Work = Constant
	}
	return k
}

// OnlyReads reports whether nobody misses the command when its client has gone.
func (c *Command) OnlyReads() bool { return c.Flags&ReadOnly != 0 || c.Group == GroupCluster }

// maxTaken is how many elements a quick command may be asked to take.
const maxTaken = 100

// takesMany says whether a request asks for many elements, of a command that otherwise takes one.
func (c *Command) takesMany(args [][]byte) bool {
	if c.Count == 0 || len(args) <= c.Count {
		return false
	}
	n, ok := resp.ParseInt(args[c.Count])
	return ok && n > maxTaken // what is no number is refused at once
}

// asksForReferences reports whether a command that deletes entries of a stream looks at, or deletes, references to each: what it
// takes depends on the groups then, and on what they have pending. The word is among the first arguments.
func asksForReferences(args [][]byte) bool {
	for _, arg := range args[min(len(args), 2):min(len(args), 10)] {
		if equalFold(arg, "acked") || equalFold(arg, "delref") {
			return true
		}
	}
	return false
}
