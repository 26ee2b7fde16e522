package keydir

// The entries of a stream, as methods of its Collection.

// Empty reports whether nothing of the collection is left, so that its key does not exist. A
// stream without entries exists as long as it has a meta record.
func (c Collection) Empty() bool { return c.Len() == 0 && (c.Type() != Stream || c.Meta() == 0) }

// streamOf returns the stream, as the run of a small one or as a big one. It panics for other types.
func (c Collection) streamOf(method string) (streamRun, *stream) {
	if g := c.set.big(c.id); g != nil {
		mustBe(method, g.typ, g.typ == Stream)
		return nil, g.stream
	}
	s := c.set.small(c.id)
	mustBe(method, s.typ(), s.typ() == Stream)
	return streamRun(s.body()), nil
}

// Entry returns the location of a stream's entry.
func (c Collection) Entry(id StreamID) (Loc, bool) {
	run, x := c.streamOf("Entry")
	if x != nil {
		p, ok := x.pageOf(id)
		if !ok {
			return 0, false
		}
		run = x.block(p).run()
	}
	cur := runCursor{run: run}
	if off := run.find(id); off > 0 {
		cur.off = off
		return cur.loc(), true
	}
	return 0, false
}

// PutEntry sets the location of a stream's entry and returns the one it had.
func (c Collection) PutEntry(id StreamID, loc Loc) (old Loc, existed bool) {
	run, x := c.streamOf("PutEntry")
	if x != nil {
		return x.put(id, loc)
	}
	if off := run.find(id); off > 0 {
		return run.swapLoc(off, loc), true
	}
	if len(run) == 0 || id.Less(run.last()) {
		list := insertEntry(run.appendEntries(nil), streamEntry{id, loc})
		if !c.set.setRun(c.id, list) {
			c.set.promote(c.id).stream.put(id, loc)
		}
		return 0, false
	}
	var space [maxStepBytes]byte
	step, used := appendStep(space[:0], run.last(), id), len(run)
	s, ok := c.set.insertAt(c.id, used, len(step)+8)
	if !ok {
		c.set.promote(c.id).stream.append(id, loc)
		return 0, false
	}
	s.setBody(s.n()+1, s.used())
	streamRun(s.body()).finish(used, step, id, loc)
	return 0, false
}

// setRun replaces the body of a small stream. It reports false, and does nothing, if the stream would outgrow its
// limit.
func (cs *collectionSet) setRun(id uint32, list []streamEntry) bool {
	run := appendRun(nil, list)
	s := cs.small(id)
	if used := s.used(); len(run) < used {
		s = cs.removeAt(id, len(run), used-len(run))
	} else {
		var ok bool
		if s, ok = cs.insertAt(id, used, len(run)-used); !ok {
			return false
		}
	}
	s.setBody(len(list), len(run))
	copy(s.body(), run)
	return true
}

// DeleteEntry removes a stream's entry and returns the location that it had.
func (c Collection) DeleteEntry(id StreamID) (old Loc, existed bool) {
	run, x := c.streamOf("DeleteEntry")
	if x != nil {
		if old, existed = x.delete(id); existed {
			c.set.demote(c.id, c.set.big(c.id))
		}
		return old, existed
	}
	if run.find(id) == 0 {
		return 0, false
	}
	list, old := withoutEntry(run.appendEntries(nil), id)
	c.set.setRun(c.id, list)
	return old, true
}

// Trimmed is what TrimEntries has removed.
type Trimmed struct{ list []streamEntry }

// Len returns the number of entries.
func (t Trimmed) Len() int { return len(t.list) }

// Each calls fn for the location of every entry.
func (t Trimmed) Each(fn func(Loc)) {
	for _, e := range t.list {
		fn(e.loc)
	}
}

// TrimEntries removes all entries of a stream before an id. O(log n), and O(1) an entry removed.
func (c Collection) TrimEntries(before StreamID) (t Trimmed) {
	run, x := c.streamOf("TrimEntries")
	if x == nil {
		list := run.appendEntries(nil)
		n := 0
		for n < len(list) && list[n].id.Less(before) {
			n++
		}
		if n > 0 {
			c.set.setRun(c.id, list[n:])
		}
		return Trimmed{list[:n]}
	}
	for {
		p, ok := x.pages.Min()
		if !ok || !p.first.Less(before) {
			break
		}
		from := len(t.list)
		t.list = x.block(p).run().appendEntries(t.list)
		n := from
		for n < len(t.list) && t.list[n].id.Less(before) {
			n++
		}
		x.replacePage(p, t.list[n:])
		t.list = t.list[:n]
	}
	if len(t.list) > 0 {
		c.set.demote(c.id, c.set.big(c.id))
	}
	return t
}

// RestoreEntries puts back what TrimEntries has removed.
func (c Collection) RestoreEntries(t Trimmed) {
	if len(t.list) == 0 {
		return
	}
	if _, x := c.streamOf("RestoreEntries"); x == nil {
		for _, e := range t.list {
			c.PutEntry(e.id, e.loc)
		}
		return
	}
	c.set.big(c.id).stream.prepend(t.list)
}

// prepend adds entries before the first one.
func (x *stream) prepend(list []streamEntry) {
	const most = (streamPageLimit - streamPageHead - runHeaderBytes) / (maxStepBytes + 8)
	for len(list) > 0 {
		n := min(len(list), most)
		x.newPage(n, appendRun(nil, list[:n]))
		list = list[n:]
	}
}

// FirstEntry returns the id of the first entry of a stream; ok is false if it has none.
func (c Collection) FirstEntry() (id StreamID, ok bool) {
	run, x := c.streamOf("FirstEntry")
	if x != nil {
		p, ok := x.pages.Min()
		return p.first, ok
	}
	if len(run) == 0 {
		return id, false
	}
	return run.first(), true
}

// LastEntry returns the id of the last entry of a stream; ok is false if it has none.
func (c Collection) LastEntry() (id StreamID, ok bool) {
	run, x := c.streamOf("LastEntry")
	if x != nil {
		return x.last()
	}
	if len(run) == 0 {
		return id, false
	}
	return run.last(), true
}

// AscendEntries calls fn for the entries of a stream in order, from the first one that is not before
// from, until fn returns false.
func (c Collection) AscendEntries(from StreamID, fn func(id StreamID, loc Loc) bool) {
	run, x := c.streamOf("AscendEntries")
	if x == nil {
		run.ascend(from, fn)
		return
	}
	start, ok := x.pageOf(from)
	if !ok || !x.block(start).run().ascend(from, fn) { // most walks end in the page where they begin
		return
	}
	x.pages.AscendGreaterOrEqual(start, func(p streamPage) bool { return p == start || x.block(p).run().ascend(from, fn) })
}

// ascend reports false if fn did.
func (r streamRun) ascend(from StreamID, fn func(id StreamID, loc Loc) bool) bool {
	cur := runCursor{run: r}
	for ok := cur.seek(from); ok; ok = cur.next() {
		if !fn(cur.id, cur.loc()) {
			return false
		}
	}
	return true
}

// DescendEntries calls fn for the entries of a stream in descending order, from the last one that is not after
// from, until fn returns false.
func (c Collection) DescendEntries(from StreamID, fn func(id StreamID, loc Loc) bool) {
	var list []streamEntry
	descend := func(run streamRun) bool {
		list = run.appendEntries(list[:0])
		for i := len(list) - 1; i >= 0; i-- {
			if !from.Less(list[i].id) && !fn(list[i].id, list[i].loc) {
				return false
			}
		}
		return true
	}
	run, x := c.streamOf("DescendEntries")
	if x == nil {
		descend(run)
		return
	}
	x.pages.DescendLessOrEqual(streamPage{first: from}, func(p streamPage) bool { return descend(x.block(p).run()) })
}

// EntryAt returns the id of the i-th entry of a stream, 0 <= i < Len. O(pages before it), a
// page being some hundred entries.
func (c Collection) EntryAt(i int) (id StreamID) {
	run, x := c.streamOf("EntryAt")
	if x != nil {
		x.pages.Ascend(func(p streamPage) bool {
			b := x.block(p)
			if n := b.n(); i >= n {
				i -= n
				return true
			}
			run = b.run()
			return false
		})
	}
	cur := runCursor{run: run}
	for ; i >= 0 && cur.next(); i-- {
		id = cur.id
	}
	return id
}

// CountEntries returns the number of entries of a stream after an id. O(pages after it), and O(1) for an id before all
// entries.
func (c Collection) CountEntries(after StreamID) (n int) {
	if first, ok := c.FirstEntry(); !ok || after.Less(first) {
		return c.Len()
	}
	run, x := c.streamOf("CountEntries")
	if x == nil {
		return run.countAfter(after)
	}
	x.pages.Descend(func(p streamPage) bool {
		b := x.block(p)
		if after.Less(p.first) {
			n += b.n()
			return true
		}
		n += b.run().countAfter(after)
		return false
	})
	return n
}

func (r streamRun) countAfter(after StreamID) (n int) {
	for cur := (runCursor{run: r}); cur.next(); {
		if after.Less(cur.id) {
			n++
		}
	}
	return n
}
