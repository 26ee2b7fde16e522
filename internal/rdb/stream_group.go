package rdb

import (
	"encoding/binary"
	"math"
	"slices"
)

// Each group is its name and where it is, then what is pending, in order of id, and then its consumers, each with the
// ids of what is pending for it.

// StreamGroup is a consumer group of a stream. What is pending is in order of id.
type StreamGroup struct {
	Name      []byte
	Last      StreamID // that was delivered
	Read      int64    // entries, -1 if unknown
	Consumers []StreamConsumer
	Pending   []StreamPending
}

// StreamConsumer is a consumer of a group. Times are Unix milliseconds; Active is -1 if it never was.
type StreamConsumer struct {
	Name         []byte
	Seen, Active int64
}

// StreamPending is an entry that is pending for the consumer of an index.
type StreamPending struct {
	ID         StreamID
	Consumer   int
	Delivered  int64 // Unix milliseconds
	Deliveries int64
}

// groups appends the groups of a stream, in the form of Redis 7.0, which has not when consumers were active.
func (w *Writer) groups(groups []StreamGroup, counted bool) {
	w.length(uint64(len(groups)))
	for _, g := range groups {
		w.Bytes(g.Name)
		w.length(g.Last.Ms)
		w.length(g.Last.Seq)
		if counted {
			w.length(uint64(g.Read))
		}
		w.length(uint64(len(g.Pending)))
		of := make([][]StreamID, len(g.Consumers))
		for _, p := range g.Pending {
			w.pendingID(p.ID)
			w.moment(p.Delivered)
			w.length(uint64(p.Deliveries))
			of[p.Consumer] = append(of[p.Consumer], p.ID)
		}
		w.length(uint64(len(g.Consumers)))
		for i, c := range g.Consumers {
			w.Bytes(c.Name)
			w.moment(c.Seen)
			w.length(uint64(len(of[i])))
			for _, id := range of[i] {
				w.pendingID(id)
			}
		}
	}
}

func (w *Writer) pendingID(id StreamID) {
	w.buf = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(w.buf, id.Ms), id.Seq)
}

func (w *Writer) moment(ms int64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(ms)) }

// groups reads the groups of a stream of any version.
func (r *reader) groups(code byte) (groups []StreamGroup) {
	names := make(map[string]bool)
	for n := r.count(); n > 0 && !r.failed; n-- {
		g := StreamGroup{Name: r.string(), Last: r.streamID(), Read: -1}
		if code != typeStream {
			g.Read = int64(r.count())
		}
		if names[string(g.Name)] || g.Read < -1 {
			r.spoil()
		}
		names[string(g.Name)] = true
		at := r.pending(&g)
		r.consumers(&g, at, code)
		groups = append(groups, g)
	}
	return groups
}

// pending reads what is pending in a group, and returns where an id is among it.
func (r *reader) pending(g *StreamGroup) (at map[StreamID]int) {
	at = make(map[StreamID]int)
	for n := r.count(); n > 0 && !r.failed; n-- {
		p := StreamPending{ID: r.pendingID(), Consumer: -1, Delivered: r.moment()}
		deliveries := r.count()
		if k := len(g.Pending); deliveries > math.MaxInt64 || k > 0 && !g.Pending[k-1].ID.Less(p.ID) {
			r.spoil()
		}
		p.Deliveries = int64(deliveries)
		at[p.ID] = len(g.Pending)
		g.Pending = append(g.Pending, p)
	}
	return at
}

// consumers reads the consumers of a group. A pending entry that is none of theirs is left out.
func (r *reader) consumers(g *StreamGroup, at map[StreamID]int, code byte) {
	names, owned := make(map[string]bool), 0
	for n := r.count(); n > 0 && !r.failed; n-- {
		c := StreamConsumer{Name: r.string(), Seen: r.moment()}
		c.Active = c.Seen
		if code == typeStream3 {
			c.Active = r.moment()
		}
		if names[string(c.Name)] {
			r.spoil()
		}
		names[string(c.Name)] = true
		for k := r.count(); k > 0 && !r.failed; k-- {
			i, ok := at[r.pendingID()]
			if !ok || g.Pending[i].Consumer >= 0 {
				r.spoil()
				continue
			}
			g.Pending[i].Consumer = len(g.Consumers)
			owned++
		}
		g.Consumers = append(g.Consumers, c)
	}
	if owned == len(g.Pending) {
		return
	}
	// Redis loads them, and ends when it meets one.
	g.Pending = slices.DeleteFunc(g.Pending, func(p StreamPending) bool { return p.Consumer < 0 })
	r.v.Stream.Recounted = true
}

func (r *reader) pendingID() StreamID {
	b := r.take(16)
	if b == nil {
		return StreamID{}
	}
	return StreamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func (r *reader) moment() int64 { return int64(r.fixed(8)) }
