package structures

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/stavedb/stave/keydir"
)

// StreamPending is an entry that was delivered to a consumer and has not been acknowledged. The entry itself may be
// gone.
type StreamPending struct {
	ID         StreamID
	Consumer   string
	Delivered  int64 // the last time, in Unix milliseconds
	Deliveries int64
}

// pending is a pending entry as its record has it.
type pending struct {
	id         StreamID
	consumer   uint32
	delivered  int64
	deliveries int64
}

// pendingOf looks a pending entry up.
func (o *streamGroup) pendingOf(id StreamID) (p pending, ok bool, err error) {
	elem := keydir.PendingElem(o.number, id)
	score, loc, ok := o.all.Score(elem)
	if !ok {
		return p, false, nil
	}
	p.id, p.consumer = id, keydir.GroupNumber(score)
	p.delivered, p.deliveries, err = o.numbers(elem, loc)
	return p, err == nil, err
}

func (o *streamGroup) putPending(p pending) error {
	return o.putNumbers(keydir.PendingElem(o.number, p.id), p.consumer, p.delivered, p.deliveries)
}

// removePending removes a pending entry, and says whether it was there.
func (o *streamGroup) removePending(id StreamID) (bool, error) {
	n, err := o.Txn.DeleteGroups(o.Key, o.all, keydir.PendingElem(o.number, id))
	return n > 0, err
}

// pendingFor counts the pending entries of the consumers whose numbers are from one to another.
func (o *streamGroup) pendingFor(from, to uint32) int {
	return o.all.Rank(keydir.PendingScore(o.number, to)+1, "") - o.all.Rank(keydir.PendingScore(o.number, from), "")
}

// pendingWalk goes through pending entries in order of id. Entries may be changed and removed meanwhile.
type pendingWalk struct {
	o       *streamGroup
	sources []pendingSource // a heap, by their first ids
}

// pendingSource is what is pending for one consumer.
type pendingSource struct {
	consumer uint32
	ids      []StreamID // the next ones, some
	all      bool       // and no more
}

// pendingBatch is how many ids a walk lists at a time.
const pendingBatch = 64

func (w *pendingWalk) Len() int           { return len(w.sources) }
func (w *pendingWalk) Less(i, j int) bool { return w.sources[i].ids[0].Less(w.sources[j].ids[0]) }
func (w *pendingWalk) Swap(i, j int)      { w.sources[i], w.sources[j] = w.sources[j], w.sources[i] }
func (w *pendingWalk) Push(any)           {}

// Pop is called with the last source.
func (w *pendingWalk) Pop() any {
	w.sources = w.sources[:len(w.sources)-1]
	return nil
}

// walkPending begins a walk from an id on, for one consumer or for all.
func (o *streamGroup) walkPending(from StreamID, consumers ...groupConsumer) *pendingWalk {
	w := &pendingWalk{o: o}
	for _, c := range consumers {
		source := pendingSource{consumer: c.number}
		if w.fill(&source, from); len(source.ids) > 0 {
			w.sources = append(w.sources, source)
		}
	}
	heap.Init(w)
	return w
}

// fill lists ids from one on.
func (w *pendingWalk) fill(s *pendingSource, from StreamID) {
	want := keydir.PendingScore(w.o.number, s.consumer)
	s.ids = s.ids[:0]
	w.o.all.AscendRank(w.o.all.Rank(want, keydir.PendingElem(w.o.number, from)), func(elem []byte, score uint64) bool {
		if score != want {
			return false
		}
		s.ids = append(s.ids, keydir.PendingID(elem))
		return len(s.ids) < pendingBatch
	})
	s.all = len(s.ids) < pendingBatch
}

// next returns the next id and its consumer.
func (w *pendingWalk) next() (id StreamID, consumer uint32, ok bool) {
	if len(w.sources) == 0 {
		return id, 0, false
	}
	s := &w.sources[0]
	id, consumer = s.ids[0], s.consumer
	if s.ids = s.ids[1:]; len(s.ids) == 0 && !s.all && id != MaxStreamID {
		s.ids = nil
		w.fill(s, id.Next())
	}
	if len(s.ids) == 0 {
		heap.Remove(w, 0)
	} else {
		heap.Fix(w, 0)
	}
	return id, consumer, true
}

// StreamPendingRange is which pending entries of a group to list.
type StreamPendingRange struct {
	From, To StreamID // both inclusive
	Count    int      // at most so many; 0: all
	MinIdle  int64    // delivered at least so many milliseconds ago
	Only     bool     // those of Consumer only
	Consumer string
}

// Pending calls visit for pending entries in order of id, until it returns false. visit may not change the stream.
// O(log n), and O(1) an entry of the range.
func (g StreamGroup) Pending(r StreamPendingRange, visit func(StreamPending) bool) error {
	o, err := g.open()
	if err != nil {
		return err
	}
	consumers := o.consumers()
	if r.Only {
		c, ok, err := o.consumer(r.Consumer)
		if !ok || err != nil {
			return err
		}
		consumers = []groupConsumer{c}
	}
	names := namesOf(consumers)
	walk, n := o.walkPending(r.From, consumers...), 0
	for id, consumer, ok := walk.next(); ok && id.Compare(r.To) <= 0; id, consumer, ok = walk.next() {
		p, _, err := o.pendingOf(id)
		if err != nil {
			return err
		}
		if r.MinIdle > 0 && o.Now-p.delivered < r.MinIdle {
			continue
		}
		n++
		if !visit(StreamPending{id, names[consumer], p.delivered, p.deliveries}) || n == r.Count {
			break
		}
	}
	return nil
}

func namesOf(consumers []groupConsumer) map[uint32]string {
	names := make(map[uint32]string, len(consumers))
	for _, c := range consumers {
		names[c.number] = c.name
	}
	return names
}

// StreamPendingSummary is how much is pending in a group: the first and the last id, and how many entries for which
// consumer, in order of name, without those that have none.
type StreamPendingSummary struct {
	Count       int
	First, Last StreamID
	Consumers   []StreamConsumerPending
}

// StreamConsumerPending is how many entries are pending for a consumer.
type StreamConsumerPending struct {
	Consumer string
	Count    int
}

// PendingSummary says how much is pending. O(log n) a consumer.
func (g StreamGroup) PendingSummary() (sum StreamPendingSummary, err error) {
	o, err := g.open()
	if err != nil {
		return sum, err
	}
	for _, c := range o.consumers() {
		end := o.all.Rank(keydir.PendingScore(o.number, c.number)+1, "")
		start := o.all.Rank(keydir.PendingScore(o.number, c.number), "")
		if start == end {
			continue
		}
		at := func(rank int) (id StreamID) {
			o.all.AscendRank(rank, func(elem []byte, _ uint64) bool {
				id = keydir.PendingID(elem)
				return false
			})
			return id
		}
		if first := at(start); sum.Count == 0 || first.Less(sum.First) {
			sum.First = first
		}
		if last := at(end - 1); sum.Last.Less(last) {
			sum.Last = last
		}
		sum.Count += end - start
		sum.Consumers = append(sum.Consumers, StreamConsumerPending{c.name, end - start})
	}
	slices.SortFunc(sum.Consumers, func(a, b StreamConsumerPending) int { return strings.Compare(a.Consumer, b.Consumer) })
	return sum, nil
}

// Ack takes entries off what is pending, and returns how many were there; 0 without a group. O(log n) an id.
func (g StreamGroup) Ack(ids []StreamID) (n int, err error) {
	o, err := g.find()
	if err == ErrNoGroup {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		did, err := o.removePending(id)
		if err != nil {
			return n, err
		}
		if did {
			n++
		}
	}
	o.note()
	return n, nil
}
