package bitcask

import "time"

// cut is the log as of a moment between two commits, and the sequence number after its last record. Nobody waits for more than a
// look at every segment. The segments that are listed hold all that was written before: a merge lists its output, and takes out what went
// into it, only when all that it relied on is in the log.
func (l *commitLog) cut() (list []cutSegment, next uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return nil, 0, l.failed
	}
	sl := l.rotation.sealing
	for _, sg := range l.store.segments.Load().all() {
		c := cutSegment{sg: sg, frames: sg.size.Load()}
		switch {
		case sg.sealed():
			c.foot, c.frames = sg.foot, 0
		case sg == l.active:
			c.foot = l.foot
			if !l.store.opts.ReadOnly {
				c.foot.time = time.Now().UnixMilli()
			}
		case sl != nil && sg == sl.sg:
			c.foot, c.frames = sl.foot, sl.end // its footer may be under way
		default:
			c.foot = sg.foot // ready for use and empty; or not, in a store open for reading
		}
		if c.frames > 0 && sg.footed {
			c.frames -= footerSize
		}
		if c.frames == 0 || c.foot.records > 0 {
			list = append(list, c)
		}
	}
	return list, l.writeSeq, nil
}

// cutSegment is a segment as of the moment of a backup.
type cutSegment struct {
	sg     *segment
	foot   footer
	frames int64 // where its frames end; 0 if it is sealed
}
