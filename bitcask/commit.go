package bitcask

import "errors"

// append appends a transaction to the log. One that only deletes may draw on the reserve, and so may what Open and Close note; the
// others wait until that is whole.
func (s *Store) append(t *Tx) (sg *segment, at int64, seq uint64, err error) {
	r := &s.reserve
	state, seen := r.state.Load(), r.drawn.Load()
	if state&reserveShort == 0 || t.draws() {
		if sg, at, seq, err = s.log.append(t); err == nil {
			if state != 0 && !t.draws() {
				r.noteSpace()
			}
			return sg, at, seq, nil
		}
		if !NoSpace(err) {
			return nil, 0, 0, err
		}
	}
	switch {
	case t.draws():
		for r.release(seen, max(t.leave, leaveHalf), err) {
			seen = r.drawn.Load()
			if sg, at, seq, err = s.log.append(t); err == nil || !NoSpace(err) {
				return sg, at, seq, err
			}
		}
		r.noteLack(err)
	case err != nil:
		r.noteLack(err)
	case !r.refill():
		r.mu.Lock()
		err = r.cause
		r.setLocked(reserveLack, err) // so that whoever can free space hears of it
		r.mu.Unlock()
	default:
		if sg, at, seq, err = s.log.append(t); err != nil && NoSpace(err) {
			r.noteLack(err)
		}
	}
	if err != nil && s.opts.Sync == SyncAlways { // what it has left in the file must not come back
		err = errors.Join(err, s.log.sync())
	}
	return sg, at, seq, lacking(err)
}

// draws reports whether the transaction may draw on the reserve.
func (t *Tx) draws() bool { return t.leave > 0 || t.deletes() }

// deletes reports whether the transaction only takes away: it may need a few bytes now, and frees more sooner or later.
func (t *Tx) deletes() bool {
	for i := range t.recs {
		switch t.recs[i].kind {
		case KindMeta, KindBound, KindNamespaces:
		default:
			if !t.recs[i].kind.tombstone() {
				return false
			}
		}
	}
	return true
}
