package structures

import (
	"cmp"
	"slices"
)

// StreamIdleClaim says for whom the entries are taken over that have been pending for long.
type StreamIdleClaim struct {
	Consumer string // is made if it does not exist
	MinIdle  int64  // entries that were delivered at least so many milliseconds ago
	Count    int    // at most so many entries; 0: all
}

// ClaimIdle makes entries those of a consumer that have been pending for long, the one that was delivered first at
// first, and calls visit for each with how many milliseconds ago and how often it had been delivered, until it returns
// false. Entries that are gone are pending no more. O(p log p), p being the pending entries of the group, whose times
// are read from the log.
func (g StreamGroup) ClaimIdle(c StreamIdleClaim, visit func(id StreamID, fields [][]byte, idle, deliveries int64) bool) error {
	o, err := g.open()
	if err != nil {
		return err
	}
	claimer, err := o.claimer(StreamClaim{Consumer: c.Consumer})
	if err != nil {
		return err
	}
	idle, err := o.idle(c.MinIdle)
	if err != nil {
		return err
	}
	claimed := 0
	for _, p := range idle {
		if c.Count > 0 && claimed == c.Count {
			break
		}
		if _, there := o.coll.Entry(p.id); !there {
			if _, err := o.removePending(p.id); err != nil {
				return err
			}
			continue
		}
		claimed++
		more, err := claimer.claim(p, func(id StreamID, fields [][]byte) bool {
			return visit(id, fields, o.Now-p.delivered, p.deliveries)
		})
		if !more || err != nil {
			return err
		}
	}
	return claimer.end()
}

// idle lists the entries that were delivered at least so many milliseconds ago, in order of delivery and then of id.
func (o *streamGroup) idle(ms int64) (list []pending, err error) {
	err = o.eachPending(func(p pending) {
		if o.Now-p.delivered >= ms {
			list = append(list, p)
		}
	})
	slices.SortStableFunc(list, func(a, b pending) int { return cmp.Compare(a.delivered, b.delivered) })
	return list, err
}

// eachPending calls visit for what is pending in the group, in order of id.
func (o *streamGroup) eachPending(visit func(pending)) error {
	walk := o.walkPending(StreamID{}, o.consumers()...)
	for id, _, ok := walk.next(); ok; id, _, ok = walk.next() {
		p, _, err := o.pendingOf(id)
		if err != nil {
			return err
		}
		visit(p)
		o.Txn.Yield()
	}
	return nil
}

// FirstDelivered returns when that pending entry was delivered whose delivery is the longest ago, in Unix milliseconds,
// if any is pending that is not gone: ClaimIdle would visit it. O(p log p), p being the pending entries of the group.
func (g StreamGroup) FirstDelivered() (ms int64, ok bool, err error) {
	o, err := g.open()
	if err != nil {
		return 0, false, err
	}
	err = o.eachPending(func(p pending) {
		if ok && p.delivered >= ms {
			return
		}
		if _, there := o.coll.Entry(p.id); there {
			ms, ok = p.delivered, true
		}
	})
	return ms, ok, err
}
