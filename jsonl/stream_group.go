package jsonl

import (
	"fmt"
	"strconv"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/rdbgroup"
)

// "groups" of a stream is an array of objects: "name", "last" (delivered id), "read" (how many entries, -1 if unknown),
// "consumers", an array of [name, seen, active], and "pending", an array of [id, consumer, delivered, deliveries] in
// order of id. Moments are Unix milliseconds; a consumer that never was active has -1.

// writeGroups writes the groups of a stream, if it has any.
func (e *exporter) writeGroups(s db.Stream) error {
	groups, err := s.Groups()
	if err != nil || len(groups) == 0 {
		return err
	}
	e.buf = append(e.buf, `,"groups":[`...)
	for i, info := range groups {
		g, err := s.Group(info.Name).State()
		if err != nil {
			return err
		}
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = appendElement(append(e.buf, `{"name":`...), g.Name)
		e.buf = fmt.Appendf(e.buf, `,"last":"%v","read":%d,"consumers":[`, g.Last, g.Read)
		first := true
		for _, c := range g.Consumers {
			err := e.element(&first, func(dst []byte) []byte {
				return appendNumbers(appendElement(append(dst, '['), c.Name), c.Seen, c.Active)
			})
			if err != nil {
				return err
			}
		}
		e.buf = append(e.buf, `],"pending":[`...)
		first = true
		for _, p := range g.Pending {
			err := e.element(&first, func(dst []byte) []byte {
				dst = append(p.ID.Append(append(dst, `["`...)), `",`...)
				return appendNumbers(appendElement(dst, p.Consumer), p.Delivered, p.Deliveries)
			})
			if err != nil {
				return err
			}
		}
		e.buf = append(e.buf, "]}"...)
	}
	e.buf = append(e.buf, ']')
	return nil
}

// appendNumbers ends an array.
func appendNumbers(dst []byte, a, b int64) []byte {
	dst = strconv.AppendInt(append(dst, ','), a, 10)
	return append(strconv.AppendInt(append(dst, ','), b, 10), ']')
}

// readGroup consumes a group.
func readGroup(d *decoder, s *rdb.Stream) error {
	g := db.StreamGroupState{Read: -1}
	named := false
	err := d.object("an object as a group", func(name []byte) (err error) {
		switch string(name) {
		case "name":
			named = true
			g.Name, err = d.name("the name of a group")
		case "last":
			g.Last, err = d.streamID()
		case "read":
			if g.Read, err = d.integer("read"); err == nil && g.Read < -1 {
				err = fmt.Errorf("read must not be %d", g.Read)
			}
		case "consumers":
			err = d.array("an array of consumers", func() error { return readConsumer(d, &g) })
		case "pending":
			err = d.array("an array of pending entries", func() error { return readPending(d, &g) })
		default:
			err = fmt.Errorf("unknown member %q of a group (known: name, last, read, consumers, pending)", clip(name, 40))
		}
		return err
	})
	if err != nil {
		return err
	}
	if !named {
		return fmt.Errorf("a group has no name")
	}
	for _, other := range s.Groups {
		if string(other.Name) == g.Name {
			return fmt.Errorf("the group %q appears twice", clip(g.Name, 40))
		}
	}
	if err := checkPending(g); err != nil {
		return err
	}
	s.Groups = append(s.Groups, rdbgroup.Encode(g))
	return nil
}

// checkPending refuses pending entries of consumers that a group has not.
func checkPending(g db.StreamGroupState) error {
	consumers := make(map[string]bool, len(g.Consumers))
	for _, c := range g.Consumers {
		if consumers[c.Name] {
			return fmt.Errorf("the consumer %q of the group %q appears twice", clip(c.Name, 40), clip(g.Name, 40))
		}
		consumers[c.Name] = true
	}
	for _, p := range g.Pending {
		if !consumers[p.Consumer] {
			return fmt.Errorf("the entry %v is pending for %q, which is no consumer of the group %q", p.ID, clip(p.Consumer, 40), clip(g.Name, 40))
		}
	}
	return nil
}

// tuple consumes an array of one value for each reader. article and form are for the errors, which speak of what it
// stands for.
func (d *decoder) tuple(article, what, form string, read ...func() error) error {
	n := 0
	err := d.array(article+" "+form+" array", func() error {
		if n++; n > len(read) {
			return fmt.Errorf("%s must be %s", what, form)
		}
		return read[n-1]()
	})
	if err == nil && n < len(read) {
		err = fmt.Errorf("%s must be %s", what, form)
	}
	return err
}

func readConsumer(d *decoder, g *db.StreamGroupState) error {
	c := db.StreamConsumer{Active: -1}
	err := d.tuple("a", "a consumer", "[name, seen, active]",
		func() (err error) { c.Name, err = d.name("the name of a consumer"); return err },
		func() (err error) { c.Seen, err = d.integer("seen"); return err },
		func() (err error) { c.Active, err = d.integer("active"); return err })
	g.Consumers = append(g.Consumers, c)
	return err
}

func readPending(d *decoder, g *db.StreamGroupState) error {
	var p db.StreamPending
	err := d.tuple("an", "a pending entry", "[id, consumer, delivered, deliveries]",
		func() (err error) { p.ID, err = d.streamID(); return err },
		func() (err error) { p.Consumer, err = d.name("the consumer of a pending entry"); return err },
		func() (err error) { p.Delivered, err = d.integer("delivered"); return err },
		func() (err error) { p.Deliveries, err = d.integer("deliveries"); return err })
	switch {
	case err != nil:
		return err
	case len(g.Pending) > 0 && !g.Pending[len(g.Pending)-1].ID.Less(p.ID):
		return fmt.Errorf("the pending entry %v is not after the one before", p.ID)
	}
	g.Pending = append(g.Pending, p)
	return nil
}
