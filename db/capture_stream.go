package db

import (
	"bytes"
	"strconv"

	commands "github.com/stavedb/stave/internal/effects"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// What writes of streams and their groups amount to: see capture.go. The log has numbers for groups and consumers, the
// commands have their names. When a consumer was seen is not told: whoever applies the commands notes that by its own
// clock, as in Redis.

func (t *txn) captureEntry(key string, id keydir.StreamID, value []byte) {
	var few [16][]byte // on the stack
	var words [3 + len(few)]string
	args := append(words[:0], "XADD", key, id.String())
	fields, _ := structures.ParseEntry(few[:0], value)
	for _, field := range fields {
		args = append(args, text(field))
	}
	t.captured.Add(t.ns, args...)
	t.captured.made = nil
}

// deletedEntries are those that a call has deleted before it writes what is known of the stream.
type deletedEntries struct {
	some     bool
	before   keydir.StreamMeta // what was known
	greatest keydir.StreamID
	last     bool // the last entry that a stream can have is one
}

// captureEntryDeleted is followed by captureStreamMeta. The last entry that there can be is left to that: it goes by
// XTRIM, too. before is what was known of the stream.
func (t *txn) captureEntryDeleted(key string, id keydir.StreamID, before keydir.StreamMeta) {
	d := &t.captured.deleting
	if !d.some {
		*d = deletedEntries{some: true, before: before}
	}
	if id == keydir.MaxStreamID {
		d.last = true
		return
	}
	t.captured.Join(t.ns, 2, 0, "XDEL", key, id.String())
	d.add(id)
}

func (d *deletedEntries) add(id keydir.StreamID) {
	if d.greatest.Less(id) {
		d.greatest = id
	}
}

// captureStreamMeta tells what XADD, XDEL and XTRIM do not do by themselves. old is what was known of the stream, and
// trimmed says that entries before m.First were there.
func (t *txn) captureStreamMeta(key string, old, m keydir.StreamMeta, trimmed bool) {
	c := t.captured
	d := c.deleting
	if d.some {
		old = d.before
	}
	c.deleting = deletedEntries{}
	isNew := c.made != nil && *c.made == nsKey{t.ns, key}
	if isNew { // there is no command for that alone
		c.made = nil
		c.Add(t.ns, "XADD", key, "MAXLEN", "0", "0-1", "x", "y")
	}
	switch {
	case d.last && m.First == keydir.MaxStreamID:
		c.Add(t.ns, "XTRIM", key, "MAXLEN", "=", "0")
		d.last = false
	case trimmed:
		c.Add(t.ns, "XTRIM", key, "MINID", "=", m.First.String())
	}
	if d.last {
		c.Add(t.ns, "XDEL", key, keydir.MaxStreamID.String())
		d.add(keydir.MaxStreamID)
	}
	if old.Deleted.Less(d.greatest) {
		old.Deleted = d.greatest
	}
	if !isNew && m.Last == old.Last && m.Added == old.Added && m.Deleted == old.Deleted {
		c.unsaid = true
		return
	}
	args := []string{"XSETID", key, m.Last.String()}
	if isNew || m.Added != old.Added {
		args = append(args, "ENTRIESADDED", strconv.FormatUint(m.Added, 10))
	}
	if m.Deleted != old.Deleted {
		args = append(args, "MAXDELETEDID", m.Deleted.String())
	}
	c.Add(t.ns, args...)
}

// describeStream describes what was written to a stream by all that it holds now: no other command makes a pending entry
// whose entry is gone.
func (t *Tx) describeStream(m commands.Mark, key string) error {
	payload, err := t.Key(key).dump(t)
	if err != nil {
		return err
	}
	t.captured.Describe(m, t.ns, "RESTORE", key, "0", string(payload), "REPLACE")
	if ms, timed := (*txn)(t).Deadline(key); timed {
		(*txn)(t).captureDeadline(key, ms)
	}
	return nil
}

// groupNames are those of what an element of a stream's groups is about: see keydir/streamgroups.go.
type groupNames struct {
	had             bool // the element is there
	group, consumer string
}

// groupNames looks them up. value is that of a pending entry or nil, which means the one that is there.
func (t *txn) groupNames(key, elem string, value []byte) (n groupNames, err error) {
	all, err := t.base.StreamGroups(t.ns, key)
	if err != nil || !all.Valid() {
		return n, err
	}
	score, _, had := all.Score(elem)
	n.had = had
	if value != nil {
		score, _ = keydir.GroupsScore([]byte(elem), value)
	}
	named := func(score uint64, prefix int) (name string) {
		all.AscendRank(all.Rank(score, ""), func(elem []byte, at uint64) bool {
			if at == score {
				name = string(elem[prefix:])
			}
			return false
		})
		return name
	}
	if group, ok := keydir.GroupOf([]byte(elem)); ok {
		n.group = named(keydir.GroupScore(group), len("g:"))
		if keydir.IsPending(elem) {
			n.consumer = named(keydir.ConsumerScore(group, keydir.GroupNumber(score)), keydir.GroupPrefix)
		}
	}
	return n, nil
}

// captureGroups is called with the names from before, or after, a write of an element.
func (t *txn) captureGroups(key, elem string, value []byte, n groupNames) {
	c := t.captured
	parts := bytes.SplitN(value, []byte(" "), 3)
	switch elem[0] {
	case 'g':
		verb := "CREATE"
		if n.had {
			verb = "SETID"
		}
		c.Add(t.ns, "XGROUP", verb, key, elem[len("g:"):], text(parts[1]), "ENTRIESREAD", text(parts[2]))
	case 'c':
		if n.had {
			c.unsaid = true // its times
			return
		}
		c.Add(t.ns, "XGROUP", "CREATECONSUMER", key, n.group, elem[keydir.GroupPrefix:])
	default:
		id := keydir.PendingID([]byte(elem))
		c.Join(t.ns, 5, 6, "XCLAIM", key, n.group, n.consumer, "0", id.String(),
			"TIME", text(parts[1]), "RETRYCOUNT", text(parts[2]), "FORCE", "JUSTID")
	}
}

func (t *txn) captureGroupsDeleted(key, elem string, n groupNames) {
	switch c := t.captured; elem[0] {
	case 'G':
		c.Add(t.ns, "XGROUP", "DESTROY", key, n.group)
	case 'c':
		c.Add(t.ns, "XGROUP", "DELCONSUMER", key, n.group, elem[keydir.GroupPrefix:])
	default:
		c.Join(t.ns, 3, 0, "XACK", key, n.group, keydir.PendingID([]byte(elem)).String())
	}
}
