package command

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// XDELEX and XACKDEL, which came with Redis 8.2, delete entries of streams that are queues: a job that is done leaves
// nothing behind, and one that a group still needs stays. They reply with a number for each id.

// referenceWords say what becomes of the references of groups to entries that are deleted.
var referenceWords = words[db.StreamReferences]{
	{"keepref", structures.KeepReferences}, {"delref", structures.DeleteReferences}, {"acked", structures.NeedAcknowledged},
}

// The refusals of lists of ids.
const (
	errIDCount  Error = "ERR Number of IDs must be a positive integer"
	errIDNumber Error = "ERR The `numids` parameter must match the number of arguments"
)

// referencesAndIDs reads [KEEPREF | DELREF | ACKED] IDS numids id [id ...], from argument i to the end.
func (a Args) referencesAndIDs(i int) (how db.StreamReferences, ids []db.StreamID, err error) {
	how, ok := referenceWords.find(a[i])
	if ok {
		i++
	}
	if i+1 >= len(a) || !a.Is(i, "ids") {
		return how, nil, ErrSyntax
	}
	n, err := a.parseLeast(i+1, 1, errIDCount)
	if err != nil {
		return how, nil, err
	}
	if n != int64(len(a)-i-2) {
		return how, nil, errIDNumber
	}
	ids, err = a.streamIDs(i + 2)
	return how, ids, err
}

// xdelexCommand is XDELEX.
func xdelexCommand(c *Call) error {
	how, ids, err := c.Args.referencesAndIDs(2)
	if err != nil {
		return err
	}
	return c.deletions(c.Tx.Stream(c.Key(1)).DeleteWith(how, ids...))
}

// xackdelCommand is XACKDEL.
func xackdelCommand(c *Call) error {
	how, ids, err := c.Args.referencesAndIDs(3)
	if err != nil {
		return err
	}
	return c.deletions(c.Tx.Stream(c.Key(1)).Group(string(c.Args[2])).AckAndDelete(how, ids...))
}

// deletions replies with what became of entries.
func (c *Call) deletions(list []db.StreamDeletion, err error) error {
	if err != nil {
		return err
	}
	c.Out.Array(len(list))
	for _, became := range list {
		c.Out.Int(int64(became))
	}
	return nil
}
