package bitcask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Finding is one broken promise of the format. Rules are the invariants of
// ARCHITECTURE.md that Check can see.
type Finding struct {
	Rule   string `json:"rule"`
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Key    string `json:"key,omitempty"`
	Detail string `json:"detail"`
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s: %s at %d", f.Rule, f.File, f.Offset)
	if f.Key != "" {
		s += fmt.Sprintf(", key %q", f.Key)
	}
	return s + ": " + f.Detail
}

// CheckResult says how much was checked.
type CheckResult struct {
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	Records  uint64 `json:"records"`
	Hints    int    `json:"hints"`
	Index    bool   `json:"index"` // there is an INDEX that fits the log
	Keys     int    `json:"keys"`
	Findings int    `json:"findings"`
}

// Check reads the whole store and reports everything that is not as the format promises: every frame, record
// and footer verifies (I2), sequences ascend within a segment (I3), hints and the INDEX agree with the data
// (I8), every location leads to its record (I4), counts and bounds in meta records are right, order records
// repeat the score of their member, and fields with a deadline exist (I5). It writes nothing and holds one
// lock at a time. The error is about a check that could not be made, not about its findings.
func (s *Store) Check(ctx context.Context, report func(Finding)) (CheckResult, error) {
	c := &checker{s: s, ctx: ctx, report: report}
	if err := s.maintenanceMu.LockUnless(ctx); err != nil {
		return c.result, err
	}
	defer s.maintenanceMu.Unlock()
	if s.closed.Load() {
		return c.result, ErrClosed
	}
	for _, d := range s.recovery.Damage {
		c.found("I2", d.File, d.Offset, "", "%s", d.Reason)
	}
	for _, sg := range s.segments.Load().All() {
		if err := c.segment(sg); err != nil {
			return c.result, err
		}
	}
	if err := c.index(); err != nil {
		return c.result, err
	}
	c.system()
	for _, ns := range s.Namespaces() {
		for stripe := range keydir.Stripes {
			if err := c.stripe(ns, stripe); err != nil {
				return c.result, err
			}
		}
	}
	return c.result, nil
}

type checker struct {
	s      *Store
	ctx    context.Context
	report func(Finding)
	result CheckResult
}

func (c *checker) found(rule, file string, offset int64, key, format string, args ...any) {
	c.result.Findings++
	c.report(Finding{rule, file, offset, key, fmt.Sprintf(format, args...)})
}

// segment reads every frame of a segment, and its hint alongside it.
func (c *checker) segment(sg *segment.Segment) error {
	c.result.Segments++
	c.result.Bytes += sg.Size.Load()
	var hint func() (*format.Entry, error)
	if sg.Sealed() {
		hs, err := segment.OpenHint(c.s.opts.seam.FS, c.s.dir, sg)
		switch {
		case err == nil:
			c.result.Hints++
			hint = stepper(hs.Next)
			defer func() {
				if err := hs.Close(); err != nil {
					c.found("I8", format.HintName(sg.ID), 0, "", "closing: %v", err)
				}
			}()
		case !failure.IsNotExist(err) && !errors.Is(err, ErrVersion): // which are merely rebuilt
			c.found("I8", format.HintName(sg.ID), 0, "", "%v", err)
		}
	}
	fr := segment.NewFrames(sg)
	var last uint64
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		raw, _, entries, err := fr.NextFrame()
		var bad *segment.BadFrame
		switch {
		case err == io.EOF:
			c.result.Records += fr.Records
			return c.segmentEnd(sg, fr, hint)
		case errors.As(err, &bad):
			if !slices.ContainsFunc(c.s.recovery.Damage, func(d CorruptError) bool { return d.File == sg.Name && d.Offset == bad.At }) {
				c.found("I2", sg.Name, bad.At, "", "%s", bad.Reason)
			}
			return nil // nothing after a bad frame can be identified here
		case err != nil:
			return err
		}
		for i := range entries {
			e := &entries[i]
			if e.Seq <= last {
				c.found("I3", sg.Name, int64(e.At), string(e.Key), "sequence %d after %d", e.Seq, last)
			}
			last = e.Seq
			c.followers(sg, e, raw[int64(e.At)-(fr.Pos-int64(len(raw))):][:e.Size])
			hint = c.compareHint(sg, hint, e)
		}
	}
}

func (c *checker) segmentEnd(sg *segment.Segment, fr *segment.Frames, hint func() (*format.Entry, error)) error {
	if hint != nil {
		if e, err := hint(); err != io.EOF {
			c.found("I8", format.HintName(sg.ID), 0, "", "says more than the data: %v %v", e, err)
		}
	}
	if fr.HasFooter && (sg.Footer.Records != fr.Records || sg.Footer.MaxSeq != fr.MaxSeq || fr.Records > 0 && sg.Footer.MinSeq != fr.MinSeq) {
		c.found("I2", sg.Name, fr.Pos-format.FooterSize, "", "footer says %d records %d..%d, found %d records %d..%d",
			sg.Footer.Records, sg.Footer.MinSeq, sg.Footer.MaxSeq, fr.Records, fr.MinSeq, fr.MaxSeq)
	}
	return nil
}

// followers checks the records that share an entry's fate.
func (c *checker) followers(sg *segment.Segment, e *format.Entry, raw []byte) {
	for at := 0; at < len(raw); {
		rec, err := format.ParseRecord(raw[at:])
		if err != nil {
			return // the frame has verified: cannot be
		}
		if at > 0 {
			bad := string(rec.Key) != string(e.Key) || rec.Type != e.Type
			if rec.Kind == KindOrder && e.Kind == KindElement {
				bad = bad || string(rec.Elem) != "s:"+string(e.Inline)+":"+string(e.Elem)
			}
			if bad {
				c.found("I5", sg.Name, int64(e.At)+int64(at), string(e.Key), "follows a record it does not belong to")
			}
		}
		at += rec.Size
	}
}

// stepper turns blocks of entries into single ones.
func stepper(next func() ([]format.Entry, error)) func() (*format.Entry, error) {
	var block []format.Entry
	return func() (*format.Entry, error) {
		for len(block) == 0 {
			var err error
			if block, err = next(); err != nil {
				return nil, err
			}
		}
		e := &block[0]
		block = block[1:]
		return e, nil
	}
}

// compareHint steps the hint alongside the data; it returns nil once the hint has
// been found wrong.
func (c *checker) compareHint(sg *segment.Segment, hint func() (*format.Entry, error), e *format.Entry) func() (*format.Entry, error) {
	if hint == nil {
		return nil
	}
	h, err := hint()
	if errors.Is(err, ErrVersion) {
		return nil // of a newer version: not used
	}
	if err != nil {
		c.found("I8", format.HintName(sg.ID), 0, "", "%v", err)
		return nil
	}
	same := h.Seq == e.Seq && h.At == e.At && h.Size == e.Size && h.Kind == e.Kind && h.Type == e.Type &&
		h.Namespace == e.Namespace && string(h.Key) == string(e.Key) && string(h.Elem) == string(e.Elem) && string(h.Inline) == string(e.Inline)
	if !same {
		c.found("I8", format.HintName(sg.ID), 0, string(e.Key), "differs from the data at offset %d", e.At)
		return nil
	}
	return hint
}

// stripe checks every key of one stripe, under its lock.
func (c *checker) stripe(ns, stripe int) error {
	s := c.s
	s.stripes[stripe].RLock()
	defer s.stripes[stripe].RUnlock()
	if err := c.ctx.Err(); err != nil {
		return err
	}
	sp := s.spaces.Of(ns)
	if sp == nil {
		return nil
	}
	sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		switch slot.Type {
		case keydir.String:
			c.result.Keys++
			c.leads(sp, KindString, slot.Type, "", "", slot.Loc, false)
		case keydir.Deadline:
			c.leads(sp, KindDeadline, slot.Type, "", "", slot.Loc, false)
		case keydir.FieldDeadlines:
			c.fieldDeadlines(sp, h, sp.Dir.CollectionOf(h, slot))
		default:
			c.result.Keys++
			c.collection(sp, sp.Dir.CollectionOf(h, slot))
		}
		return true
	})
	return nil
}

// leads checks that loc leads to the record it should, and returns the record's value. ok is false if it cannot be
// read: then there is a finding, and nothing can be said about the value.
func (c *checker) leads(sp *namespace.Space, k Kind, typ keydir.Type, key, elem string, loc keydir.Loc, named bool) (value string, ok bool) {
	sg, err := c.s.segmentOf(loc)
	if err == nil {
		err = sg.Identify(loc, func(rec *format.Record) {
			value = string(rec.Value)
			if rec.Kind != k || rec.Type != typ || rec.Namespace != sp.ID || named && (string(rec.Key) != key || string(rec.Elem) != elem) {
				c.found("I4", sg.Name, int64(loc.Offset()), key, "the keydir expects another record here")
			}
		})
	}
	if err != nil {
		c.found("I4", format.DataName(loc.Segment()), int64(loc.Offset()), key, "%v", err)
	}
	return value, err == nil
}

func (c *checker) collection(sp *namespace.Space, coll keydir.Collection) {
	key, typ := coll.Key(), coll.Type()
	count := 0
	switch typ {
	case keydir.Chunks:
		c.chunks(sp, coll, key)
		return
	case keydir.List:
		head, tail := coll.Bounds()
		for i := head; i <= tail; i++ {
			if loc, ok := coll.LocAt(i); ok {
				count++
				c.leads(sp, KindElement, typ, key, format.IndexName(i), loc, true)
			}
		}
		if int64(count) != tail-head+1 {
			c.found("I5", "", 0, key, "list has holes: %d elements from %d to %d", count, head, tail)
		}
	default:
		coll.Scan(0, func(_ uint64, elem []byte, loc keydir.Loc) bool {
			count++
			value, ok := c.leads(sp, KindElement, typ, key, string(elem), loc, true)
			if ok && typ == keydir.ZSet {
				if score, _, _ := coll.Score(string(elem)); value != string(ordered.AppendHex(nil, score)) {
					c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "score %s of member %q differs from the keydir's", value, elem)
				}
			}
			return true
		})
	}
	c.meta(sp, coll, key, string(format.AppendMeta(nil, typ, 0, count)), count)
}

// fieldDeadlines checks the deadlines of the fields of one hash.
func (c *checker) fieldDeadlines(sp *namespace.Space, h uint64, coll keydir.Collection) {
	key := coll.Key()
	coll.Scan(0, func(_ uint64, field []byte, loc keydir.Loc) bool {
		value, ok := c.leads(sp, KindFieldDeadline, keydir.FieldDeadlines, key, string(field), loc, true)
		if score, _, _ := coll.Score(string(field)); ok && value != strconv.FormatInt(ordered.ToInt(score), 10) {
			c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "deadline %s of field %q differs from the keydir's", value, field)
		}
		return true
	})
	lostFields(sp.Dir, h, key, coll, func(field []byte, loc keydir.Loc) {
		c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "deadline of field %q, which is not there", field)
	})
}

// lostFields calls fn for the fields that have a deadline but do not exist.
func lostFields(dir *keydir.Directory, h uint64, key string, deadlines keydir.Collection, fn func(field []byte, loc keydir.Loc)) {
	hash, ok := dir.FindCollection(h, key)
	ok = ok && hash.Type() == keydir.Hash
	deadlines.Each(func(field []byte, loc keydir.Loc) bool {
		exists := false
		if ok {
			_, exists = hash.Get(format.Text(field))
		}
		if !exists {
			fn(field, loc)
		}
		return true
	})
}

// meta compares a meta record with the count.
func (c *checker) meta(sp *namespace.Space, coll keydir.Collection, key, want string, count int) {
	loc := coll.Meta()
	if loc == 0 {
		c.found("I5", "", 0, key, "no meta record")
		return
	}
	file, at := format.DataName(loc.Segment()), int64(loc.Offset())
	value, ok := c.leads(sp, KindMeta, coll.Type(), key, format.MetaLen, loc, true)
	if ok && value != want || count != coll.Len() {
		c.found("I5", file, at, key, "meta record says %q, the keydir has %d elements, counted %q", value, coll.Len(), want)
	}
	if !ok || coll.Type() != keydir.List {
		return
	}
	head, tail := coll.Bounds()
	bounds := []struct{ name, value string }{{format.MetaHead, format.IndexName(head)}, {format.MetaTail, format.IndexName(tail)}}
	sg, err := c.s.segmentOf(loc)
	if err != nil {
		return // found above
	}
	buf := make([]byte, min(int64(loc.Size()), sg.Size.Load()-at))
	if _, err := sg.File.ReadAt(buf, at); err != nil {
		c.found("I5", file, at, key, "%v", err)
		return
	}
	first, err := format.ParseRecord(buf)
	if err != nil {
		return // found above
	}
	rest := buf[first.Size:]
	for _, w := range bounds {
		rec, err := format.ParseRecord(rest)
		if err != nil || rec.Kind != KindBound || string(rec.Elem) != w.name || string(rec.Value) != w.value {
			c.found("I5", file, at, key, "%s is not %s", w.name, w.value)
			return
		}
		rest = rest[rec.Size:]
	}
}

// chunks checks a string in chunks and recounts its length.
func (c *checker) chunks(sp *namespace.Space, coll keydir.Collection, key string) {
	head, tail := coll.Bounds()
	size, _, _ := keydir.ChunkAt(tail)
	count, length, read := 0, int64(0), true
	for i := head; i <= tail; i++ {
		loc, ok := coll.LocAt(i)
		if !ok {
			continue
		}
		count++
		value, ok := c.leads(sp, KindElement, keydir.Chunks, key, format.IndexName(i), loc, true)
		if !ok {
			read = false
			continue
		}
		_, number, _ := keydir.ChunkAt(i)
		length = int64(size)*int64(number) + int64(len(value))
		if len(value) > size || len(value) == 0 {
			c.found("I5", format.DataName(loc.Segment()), int64(loc.Offset()), key, "a chunk of %d bytes among those of %d", len(value), size)
		}
	}
	if !read { // its length is unknown, too
		if coll.Meta() != 0 {
			c.leads(sp, KindMeta, keydir.Chunks, key, format.MetaLen, coll.Meta(), true)
		}
		return
	}
	c.meta(sp, coll, key, string(format.AppendMeta(nil, keydir.Chunks, length, count)), count)
}

// system checks that each system record is at its location.
func (c *checker) system() {
	sp := new(namespace.Space)
	for name, r := range c.s.system.Dump() {
		value, ok := c.leads(sp, KindSystem, keydir.None, name, "", r.Loc, true)
		if ok && value != string(r.Value) {
			c.found("I4", format.DataName(r.Loc.Segment()), int64(r.Loc.Offset()), name, "the system record is not what is known of it")
		}
	}
}
