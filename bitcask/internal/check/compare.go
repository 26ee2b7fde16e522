package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/keydir"
)

// Comparing what a store has in memory, or its INDEX, with what a replay of its whole log makes.

// comparison is of two stores of one moment.
type comparison struct {
	*checker
	kept, replayed *Environment
	rule, file     string // of findings
}

// Compare compares what a store has in memory with what a replay of its log has made of the same moment, and returns the
// number of findings. Nobody else may change either.
func Compare(ctx context.Context, kept, replayed *Environment, report func(rule, file string, offset int64, key, detail string)) (findings int, err error) {
	c := &checker{Environment: kept, ctx: ctx, report: report}
	err = (&comparison{checker: c, kept: kept, replayed: replayed, rule: "I12"}).run()
	return c.result.Findings, err
}

func (c *comparison) run() error {
	if !maps.EqualFunc(c.kept.System.Dump().There(), c.replayed.System.Dump().There(), system.SameRecord) {
		c.found(c.rule, c.file, 0, "", "the system records are not what the log says")
	}
	kept, replayed := c.kept.Spaces.Now.Load().ByID, c.replayed.Spaces.Now.Load().ByID
	all := maps.Clone(kept)
	maps.Copy(all, replayed)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		a, b := c.directory(kept[id]), c.directory(replayed[id])
		if replayed[id] == nil && a.Len()+a.LenDeadlines()+a.LenFieldDeadlines() > 0 {
			c.found(c.rule, c.file, 0, "", "the log has no space %d", id)
		}
		for stripe := range keydir.Stripes {
			if err := c.stripe(id, stripe, a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// directory is that of a space, or an empty one.
func (c *comparison) directory(sp *namespace.Space) *keydir.Directory {
	if sp == nil {
		return keydir.NewDirectory(c.Seed)
	}
	return sp.Dir
}

// stripe compares one stripe of a space.
func (c *comparison) stripe(space uint32, stripe int, kept, replayed *keydir.Directory) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	a, err1 := c.reloaded(kept, stripe)
	b, err2 := c.reloaded(replayed, stripe)
	if err := errors.Join(err1, err2); err != nil || bytes.Equal(a, b) {
		return err
	}
	before := c.result.Findings
	x, err1 := c.records(c.kept, kept, stripe)
	y, err2 := c.records(c.replayed, replayed, stripe)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var differ []recordName
	for name, loc := range x {
		if y[name] != loc {
			differ = append(differ, name)
		}
	}
	for name := range y {
		if x[name] == 0 {
			differ = append(differ, name)
		}
	}
	slices.SortFunc(differ, recordName.compare)
	for _, name := range differ {
		c.compareRecords(name, x[name], y[name])
	}
	// The places of records may differ without that: a merge that was interrupted has left one in two segments.
	if c.rule == "I8" && c.result.Findings == before {
		c.found(c.rule, c.file, 0, "", "stripe %d of space %d is not what the log says", stripe, space)
	}
	return nil
}

// compareRecords compares the records of one name; 0: there is none.
func (c *comparison) compareRecords(name recordName, kept, replayed keydir.Loc) {
	switch {
	case kept == 0:
		c.found(c.rule, c.file, 0, name.key, "a replay of the log brings back %v, which is gone", name)
	case replayed == 0:
		c.found(c.rule, c.file, 0, name.key, "a replay of the log loses %v", name)
	case kept != replayed:
		a, err1 := c.value(c.kept, kept)
		b, err2 := c.value(c.replayed, replayed)
		if err1 == nil && err2 == nil && a != b { // damage is found elsewhere
			c.found(c.rule, c.file, 0, name.key, "a replay of the log changes %v", name)
		}
	}
}

// recordName names a record of a space.
type recordName struct {
	key, elem string
	typ       keydir.Type
	meta      bool
}

func (n recordName) compare(m recordName) int {
	return cmp.Or(cmp.Compare(n.key, m.key), cmp.Compare(n.typ, m.typ), cmp.Compare(n.elem, m.elem)) // there is one meta record
}

// String says what of its key a record is.
func (n recordName) String() string {
	switch {
	case n.meta:
		return "its count"
	case n.typ == keydir.String:
		return "its value"
	case n.typ == keydir.Deadline:
		return "its deadline"
	case n.typ == keydir.FieldDeadlines:
		return fmt.Sprintf("the deadline of field %q", n.elem)
	case n.typ == keydir.StreamGroups && keydir.IsPending(n.elem):
		return fmt.Sprintf("the pending entry %v of a group", keydir.PendingID([]byte(n.elem)))
	case n.typ == keydir.StreamGroups:
		return fmt.Sprintf("%q of its groups", n.elem)
	}
	return fmt.Sprintf("its element %q", n.elem)
}

// value is that of the record at a place.
func (c *comparison) value(env *Environment, loc keydir.Loc) (value string, err error) {
	sg, err := segmentOf(env, loc)
	if err == nil {
		err = sg.Identify(loc, func(rec format.Record) { value = string(rec.Value) })
	}
	return value, err
}

// records lists where the records of a stripe are.
func (c *comparison) records(env *Environment, dir *keydir.Directory, stripe int) (map[recordName]keydir.Loc, error) {
	if err := c.Lock(stripe, false); err != nil {
		return nil, err
	}
	defer c.Unlock(stripe, false)
	list := map[recordName]keydir.Loc{}
	dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		if format.LocatedBy(format.HomeSlot, slot.Type).Home != format.NoHome {
			name := recordName{typ: slot.Type, key: fmt.Sprintf("hash %x", h)} // of one that cannot be read
			if sg, err := segmentOf(env, slot.Loc); err == nil {
				_ = sg.Identify(slot.Loc, func(rec format.Record) { name.key = string(rec.Key) }) // damage is found elsewhere
			}
			list[name] = slot.Loc
			return true
		}
		coll := dir.CollectionOf(h, slot)
		name := recordName{key: coll.Key(), typ: coll.Type()}
		if coll.Meta() != 0 {
			list[recordName{key: name.key, typ: name.typ, meta: true}] = coll.Meta()
		}
		locate.Each(coll, func(p *format.Place, loc keydir.Loc) bool {
			name.elem = strings.Clone(p.Text())
			list[name] = loc
			return true
		})
		return true
	})
	return list, nil
}

// reloaded is the dump of a stripe as it is after loading: what its history makes of slots of one hash, and of the order
// of hashes and sets, does not show. The INDEX keeps that order; the log of a merged store has another one.
func (c *comparison) reloaded(dir *keydir.Directory, stripe int) ([]byte, error) {
	whole := func(dir *keydir.Directory) (b []byte) {
		dump := dir.Dump(stripe)
		for dump.ByHash = true; !dump.Done(); {
			b = dump.Append(b, 1<<30)
		}
		return b
	}
	if err := c.Lock(stripe, false); err != nil {
		return nil, err
	}
	b := whole(dir)
	c.Unlock(stripe, false)
	fresh := keydir.NewDirectory(c.Seed)
	loader := keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }}
	if err := loader.Load(fresh, stripe, b); err != nil {
		panic("BUG: " + err.Error())
	}
	return whole(fresh), nil
}
