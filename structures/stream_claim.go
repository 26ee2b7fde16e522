package structures

// StreamClaim says for whom pending entries are taken over, and what is noted about them.
type StreamClaim struct {
	Consumer   string   // is made if it does not exist
	MinIdle    int64    // entries that were delivered at least so many milliseconds ago
	Delivered  *int64   // Unix milliseconds; nil: now
	Deliveries *int64   // nil: one more, unless JustID
	Force      bool     // also entries that are pending for nobody
	JustID     bool     // visit gets no fields, and it does not count as a delivery
	Last       StreamID // the group has delivered at least up to it
}

// Claim makes pending entries those of a consumer, and calls visit for each. Entries that are gone are pending no more.
// O(log n) an id.
func (g StreamGroup) Claim(c StreamClaim, ids []StreamID, visit func(id StreamID, fields [][]byte) bool) error {
	o, err := g.open()
	if err != nil {
		return err
	}
	if o.last.Less(c.Last) {
		o.last = c.Last
		if err := o.put(); err != nil {
			return err
		}
	}
	claimer, err := o.claimer(c)
	if err != nil {
		return err
	}
	for _, id := range ids {
		p, ok, err := o.pendingOf(id)
		if err != nil {
			return err
		}
		if _, there := o.coll.Entry(id); !there {
			if _, err := o.removePending(id); err != nil {
				return err
			}
			continue
		}
		switch {
		case !ok && !c.Force:
			continue
		case !ok:
			p.deliveries = 1
		case c.MinIdle > 0 && o.Now-p.delivered < c.MinIdle:
			continue
		}
		p.id = id
		if more, err := claimer.claim(p, visit); !more || err != nil {
			return err
		}
	}
	return claimer.end()
}

// claimer takes entries over.
type claimer struct {
	o         *streamGroup
	claimed   bool
	how       StreamClaim
	consumer  groupConsumer
	delivered int64
	reader    entryReader
}

func (o *streamGroup) claimer(c StreamClaim) (*claimer, error) {
	m := &claimer{o: o, how: c, delivered: o.Now, reader: entryReader{s: o.StreamGroup.stream(), f: o.coll}}
	if at := c.Delivered; at != nil && *at >= 0 && *at < o.Now {
		m.delivered = *at
	}
	var err error
	m.consumer, _, err = o.see(c.Consumer)
	return m, err
}

// claim takes over one pending entry.
func (m *claimer) claim(p pending, visit func(id StreamID, fields [][]byte) bool) (more bool, err error) {
	p.consumer, p.delivered = m.consumer.number, m.delivered
	switch {
	case m.how.Deliveries != nil:
		p.deliveries = *m.how.Deliveries
	case !m.how.JustID:
		p.deliveries++
	}
	if err := m.o.putPending(p); err != nil {
		return false, err
	}
	m.claimed = true
	if m.how.JustID {
		return visit(p.id, nil), nil
	}
	fields, _, err := m.reader.read(p.id)
	return err == nil && visit(p.id, fields), err
}

// end notes that the consumer was active.
func (m *claimer) end() error {
	if !m.claimed {
		return nil
	}
	return m.o.acted(m.consumer)
}

// StreamAutoClaim says which pending entries are taken over.
type StreamAutoClaim struct {
	Consumer string
	MinIdle  int64    // entries that were delivered at least so many milliseconds ago
	From     StreamID // from that id on
	Count    int      // at most so many, and ten times as many are looked at
	JustID   bool     // visit gets no fields, and it does not count as a delivery
}

// autoClaimFactor is how many pending entries are looked at for each that may be claimed, as in Redis.
const autoClaimFactor = 10

// AutoClaim makes entries those of a consumer that have been pending for long, and calls visit for each. It returns
// where to go on, the zero id at the end, and which entries were gone: they are pending no more. O(log n) an entry
// looked at.
func (g StreamGroup) AutoClaim(c StreamAutoClaim, visit func(id StreamID, fields [][]byte) bool) (next StreamID, gone []StreamID, err error) {
	o, err := g.open()
	if err != nil {
		return next, nil, err
	}
	claimer, err := o.claimer(StreamClaim{Consumer: c.Consumer, JustID: c.JustID})
	if err != nil {
		return next, nil, err
	}
	walk := o.walkPending(c.From, o.consumers()...)
	id, _, ok := walk.next()
	for left, tries := c.Count, c.Count*autoClaimFactor; ok && left > 0 && tries > 0; id, _, ok = walk.next() {
		tries--
		if _, there := o.coll.Entry(id); !there {
			if _, err := o.removePending(id); err != nil {
				return next, gone, err
			}
			gone = append(gone, id)
			left--
			continue
		}
		p, _, err := o.pendingOf(id)
		if err != nil {
			return next, gone, err
		}
		if c.MinIdle > 0 && o.Now-p.delivered < c.MinIdle {
			continue
		}
		if more, err := claimer.claim(p, visit); !more || err != nil {
			return next, gone, err
		}
		left--
	}
	if ok {
		next = id
	}
	return next, gone, claimer.end()
}
