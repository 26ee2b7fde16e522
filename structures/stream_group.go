package structures

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/keydir"
)

// StreamGroup is a consumer group of a stream: it delivers each entry to one of its consumers, and remembers which
// entries are pending, delivered and not acknowledged. Its methods fail with ErrNoGroup if the stream or the group does
// not exist.
//
// The group, each consumer and each pending entry is one record. In memory they are elements of one collection
// alongside the stream (keydir/streamgroups.go), by whose scores the pending entries of a consumer stand together, in
// order of id.
type StreamGroup struct {
	Txn  StreamTxn
	Key  string
	Name string
	Now  int64 // the moment of the call in Unix milliseconds
}

// streamGroup is a group that has been looked up.
type streamGroup struct {
	StreamGroup
	elem   string            // of the group
	coll   keydir.Collection // the stream
	all    keydir.Collection // what the groups of the stream have
	number uint32

	positioned bool // the next two are known
	last       StreamID
	read       int64 // entries, unknownRead if unknown

	seen groupConsumer // the one that was looked up or written last; without a name if there is none

	buf []byte // room for the value of a record
}

// maxGroupValue is the greatest length of the value of a group, a consumer or a pending entry: numbers and an id.
const maxGroupValue = 4 * 24

// GroupsError reports a group, a consumer or a pending entry whose value is none.
type GroupsError struct {
	Key  string
	Elem string
}

// Error names the key and the element.
func (e *GroupsError) Error() string {
	return fmt.Sprintf("structures: %q of a group of stream %q has a value that is none", e.Elem, e.Key)
}

func (g StreamGroup) stream() Stream { return Stream{Txn: g.Txn, Key: g.Key} }

// open looks the group up and reads its record.
func (g StreamGroup) open() (o streamGroup, err error) {
	o, err = g.find()
	if err != nil || o.positioned {
		return o, err
	}
	_, loc, _ := o.all.Score(o.elem)
	parts, err := o.value(o.elem, loc)
	if err != nil {
		return o, err
	}
	last, ok := ParseStreamID(parts[1], 0)
	read, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || !ok {
		return o, &GroupsError{o.Key, o.elem}
	}
	o.positioned, o.last, o.read = true, last, read
	return o, nil
}

// find looks the group up, and not how far it is.
func (g StreamGroup) find() (o streamGroup, err error) {
	if o, ok := g.noted(); ok {
		return o, nil
	}
	f, err := g.stream().open()
	if err != nil {
		return o, err
	}
	if !f.Valid() {
		return o, ErrNoGroup
	}
	all, err := g.Txn.StreamGroups(g.Key)
	if err != nil {
		return o, err
	}
	if !all.Valid() {
		return o, ErrNoGroup
	}
	elem := keydir.GroupElem(g.Name)
	score, _, ok := all.Score(elem)
	if !ok {
		return o, ErrNoGroup
	}
	return streamGroup{StreamGroup: g, elem: elem, coll: f, all: all, number: keydir.GroupNumber(score)}, nil
}

// room returns room for the value of a record, until the next call.
func (o *streamGroup) room() []byte {
	if o.buf == nil {
		o.buf = make([]byte, 0, maxGroupValue)
	}
	return o.buf[:0]
}

// value reads the three parts of a record, valid until the next call of room.
func (o *streamGroup) value(elem string, loc keydir.Loc) (parts [3]string, err error) {
	b, err := o.Txn.Value(o.room(), o.Key, elem, keydir.StreamGroups, loc)
	if err != nil {
		return parts, err
	}
	n := 0
	for part := range strings.SplitSeq(text(b), " ") {
		if n == len(parts) {
			return parts, &GroupsError{o.Key, elem}
		}
		parts[n] = part
		n++
	}
	if n < len(parts) {
		return parts, &GroupsError{o.Key, elem}
	}
	return parts, nil
}

// numbers reads the second and the third part of a record, which are numbers.
func (o *streamGroup) numbers(elem string, loc keydir.Loc) (a, b int64, err error) {
	parts, err := o.value(elem, loc)
	if err != nil {
		return 0, 0, err
	}
	a, err1 := strconv.ParseInt(parts[1], 10, 64)
	b, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, &GroupsError{o.Key, elem}
	}
	return a, b, nil
}

// put writes the record of the group.
func (o *streamGroup) put() error {
	value := append(o.last.Append(append(strconv.AppendUint(o.room(), uint64(o.number), 10), ' ')), ' ')
	return o.putElem(o.elem, strconv.AppendInt(value, o.read, 10))
}

// putNumbers writes the record of a consumer or of a pending entry.
func (o *streamGroup) putNumbers(elem string, number uint32, a, b int64) error {
	value := append(strconv.AppendUint(o.room(), uint64(number), 10), ' ')
	value = append(strconv.AppendInt(value, a, 10), ' ')
	return o.putElem(elem, strconv.AppendInt(value, b, 10))
}

// putElem is Txn.PutGroups. The first element of a stream's groups creates their collection, which o then knows.
func (o *streamGroup) putElem(elem string, value []byte) error {
	err := o.Txn.PutGroups(o.Key, o.all, elem, value)
	if err == nil && !o.all.Valid() {
		o.all, err = o.Txn.StreamGroups(o.Key)
	}
	return err
}

// unused returns a number that no element with a score from one to another has.
func (o *streamGroup) unused(from, to uint64) (uint32, error) {
	if !o.all.Valid() {
		return 0, nil
	}
	first, end := o.all.Rank(from, ""), o.all.Rank(to+1, "")
	if first == end {
		return 0, nil
	}
	var last uint64
	o.all.AscendRank(end-1, func(_ []byte, score uint64) bool {
		last = score
		return false
	})
	if last < to {
		return keydir.GroupNumber(last) + 1, nil
	}
	next := from // there is a gap, or 2^31 elements
	o.all.AscendRank(first, func(_ []byte, score uint64) bool {
		if score != next || next == to {
			return false
		}
		next++
		return true
	})
	if next == to {
		return 0, ErrTooManyGroups
	}
	return keydir.GroupNumber(next), nil
}

// StreamGroupStart says where a group begins: after an entry.
type StreamGroupStart struct {
	ID   StreamID
	Last bool    // after the last entry, not after ID
	Read *uint64 // how many entries it has read already; nil: unknown
	Make bool    // the stream, if it does not exist
}

// apply sets where the group is.
func (o *streamGroup) apply(start StreamGroupStart) (err error) {
	if o.last, o.read = start.ID, unknownRead; start.Last {
		o.last, err = o.Txn.LastEntryID(o.Key, o.coll)
	}
	if start.Read != nil {
		o.read = int64(*start.Read)
	}
	return err
}

// Create makes the group. It fails with ErrGroupExists if there is one of that name, and with ErrNoKey if there is no
// stream and start does not make one. O(1).
func (g StreamGroup) Create(start StreamGroupStart) error {
	if len(g.Name) > keydir.MaxName-keydir.GroupPrefix {
		return ErrNameTooLong
	}
	s := g.stream()
	f, err := s.open()
	if err != nil {
		return err
	}
	o := streamGroup{StreamGroup: g, elem: keydir.GroupElem(g.Name), coll: f}
	switch {
	case f.Valid():
		if o.all, err = g.Txn.StreamGroups(g.Key); err != nil {
			return err
		}
	case !start.Make:
		return ErrNoKey
	default:
		if err := s.Create(StreamInfo{}); err != nil {
			return err
		}
		if o.coll, err = s.open(); err != nil {
			return err
		}
	}
	if o.all.Valid() {
		if _, _, exists := o.all.Score(o.elem); exists {
			return ErrGroupExists
		}
	}
	if o.number, err = o.unused(keydir.GroupScore(0), keydir.GroupScore(keydir.MaxGroup)); err == nil {
		err = o.apply(start)
	}
	if err == nil {
		err = o.put()
	}
	return notifyUnless(g.Txn, EventXGroupCreate, g.Key, err)
}

// Set lets the group continue elsewhere. What is pending stays. O(1).
func (g StreamGroup) Set(start StreamGroupStart) error {
	o, err := g.open()
	if err == nil {
		err = o.apply(start)
	}
	if err == nil {
		err = o.put()
	}
	return notifyUnless(g.Txn, EventXGroupSetID, g.Key, err)
}

// Destroy removes the group with all that it has, in one record, and says whether it was there. It fails with ErrNoKey
// without a stream. O(1) a consumer and a pending entry.
func (g StreamGroup) Destroy() (bool, error) {
	f, err := g.stream().open()
	if err != nil {
		return false, err
	}
	if !f.Valid() {
		return false, ErrNoKey
	}
	o, err := g.open()
	if err == ErrNoGroup {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = g.Txn.DeleteGroups(g.Key, o.all, keydir.GroupRange(o.number))
	return err == nil, notifyUnless(g.Txn, EventXGroupDestroy, g.Key, err)
}

// groupConsumer is a consumer of a group.
type groupConsumer struct {
	name   string
	number uint32
	seen   int64 // milliseconds
	active int64 // milliseconds, -1: never
}

// consumer looks a consumer up.
func (o *streamGroup) consumer(name string) (c groupConsumer, ok bool, err error) {
	if name != "" && o.seen.name == name {
		return o.seen, true, nil
	}
	c.name = name
	elem := keydir.ConsumerElem(o.number, name)
	score, loc, ok := o.all.Score(elem)
	if !ok {
		return c, false, nil
	}
	c.number = keydir.GroupNumber(score)
	if c.seen, c.active, err = o.numbers(elem, loc); err != nil {
		return c, false, err
	}
	o.seen = c
	return c, true, nil
}

func (o *streamGroup) putConsumer(c groupConsumer) error {
	o.seen = c
	return o.putNumbers(keydir.ConsumerElem(o.number, c.name), c.number, c.seen, c.active)
}

// The times of a consumer may be a little old, so that it does not cost a record each time.
const (
	// SeenStep is how old, in milliseconds, the seen-time becomes before a call that changes nothing else writes it: a
	// consumer that polls an empty stream shall not cost a record, and a sync, each time.
	SeenStep = 10_000

	// ActiveStep is how old, in milliseconds, the active-time becomes before a call that delivers writes both times: of
	// many busy consumers each is given something about once a millisecond.
	ActiveStep = 10
)

// see notes that a consumer has been seen, and makes it if it does not exist.
func (o *streamGroup) see(name string) (c groupConsumer, made bool, err error) {
	c, ok, err := o.consumer(name)
	if err != nil {
		return c, false, err
	}
	if since := o.Now - c.seen; ok && 0 <= since && since < SeenStep { // less than none: the clock has been put back
		return c, false, nil // acted notes it if the consumer is given something
	}
	if !ok {
		if len(name) > keydir.MaxName-keydir.GroupPrefix {
			return c, false, ErrNameTooLong
		}
		c.active = neverActive
		if c.number, err = o.unused(keydir.ConsumerScore(o.number, 0), keydir.ConsumerScore(o.number, keydir.MaxGroup)); err != nil {
			return c, false, err
		}
	}
	c.seen = o.Now
	if err := o.putConsumer(c); err != nil {
		return c, false, err
	}
	if !ok {
		o.Txn.Notify(EventXGroupCreateConsumer, o.Key)
	}
	return c, !ok, nil
}

// acted notes that a consumer has been given something.
func (o *streamGroup) acted(c groupConsumer) error {
	if since := o.Now - c.active; c.active != neverActive && 0 <= since && since < ActiveStep {
		return nil
	}
	c.seen, c.active = o.Now, o.Now
	return o.putConsumer(c)
}

// CreateConsumer makes a consumer, and says whether it is new. O(log n).
func (g StreamGroup) CreateConsumer(name string) (made bool, err error) {
	o, err := g.open()
	if err != nil {
		return false, err
	}
	if _, ok, err := o.consumer(name); ok || err != nil {
		return false, err
	}
	_, made, err = o.see(name)
	return made, err
}

// DeleteConsumer removes a consumer with its pending entries, and returns how many these were. Each is removed by its
// name: an earlier record of it may say that it is another consumer's, and is what a merge leaves of it.
// O(log n) a pending entry.
func (g StreamGroup) DeleteConsumer(name string) (pending int, err error) {
	o, err := g.open()
	if err != nil {
		return 0, err
	}
	c, ok, err := o.consumer(name)
	if !ok || err != nil {
		return 0, err
	}
	walk := o.walkPending(StreamID{}, c)
	for id, _, more := walk.next(); more; id, _, more = walk.next() {
		if _, err := o.removePending(id); err != nil {
			return 0, err
		}
		pending++
		g.Txn.Yield()
	}
	_, err = g.Txn.DeleteGroups(g.Key, o.all, keydir.ConsumerElem(o.number, name))
	return pending, notifyUnless(g.Txn, EventXGroupDelConsumer, g.Key, err)
}

// consumers lists the consumers of the group in order of number; their times are left out.
func (o *streamGroup) consumers() (list []groupConsumer) {
	to := keydir.ConsumerScore(o.number, keydir.MaxGroup)
	o.all.AscendRank(o.all.Rank(keydir.ConsumerScore(o.number, 0), ""), func(elem []byte, score uint64) bool {
		if score > to {
			return false
		}
		list = append(list, groupConsumer{name: string(elem[keydir.GroupPrefix:]), number: keydir.GroupNumber(score)})
		return true
	})
	return list
}

// consumersByName lists the consumers of the group with their times.
func (o *streamGroup) consumersByName() ([]groupConsumer, error) {
	list := o.consumers()
	slices.SortFunc(list, func(a, b groupConsumer) int { return strings.Compare(a.name, b.name) })
	for i := range list {
		c, ok, err := o.consumer(list[i].name)
		if err != nil {
			return nil, err
		}
		if ok {
			list[i] = c
		}
	}
	return list, nil
}

// copyGroups writes what the groups of a stream have to the one at another key.
func (s Stream) copyGroups(dst Groups, to string) error {
	list, err := s.groupRecords()
	for _, r := range list {
		if err == nil {
			err = dst.PutGroups(to, keydir.Collection{}, r.elem, r.value)
		}
	}
	return err
}

type groupRecord struct {
	elem  string
	value []byte
}

// groupRecords reads all that the groups of a stream have.
func (s Stream) groupRecords() (list []groupRecord, err error) {
	all, err := s.Txn.StreamGroups(s.Key)
	if err != nil || !all.Valid() {
		return nil, err
	}
	list = make([]groupRecord, 0, all.Len())
	all.AscendRank(0, func(elem []byte, _ uint64) bool {
		list = append(list, groupRecord{elem: string(elem)})
		return true
	})
	for i := range list {
		_, loc, _ := all.Score(list[i].elem)
		if list[i].value, err = s.Txn.Value(nil, s.Key, list[i].elem, keydir.StreamGroups, loc); err != nil {
			return nil, err
		}
	}
	return list, nil
}
