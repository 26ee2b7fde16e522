package structures

import (
	"slices"

	"github.com/stavedb/stave/keydir"
)

// StreamGroupInfo is what is known of a group.
type StreamGroupInfo struct {
	Name      string
	Last      StreamID // the last entry that was delivered
	Read      int64    // how many entries of the stream are up to there; -1 if unknown
	Lag       int64    // how many there are after it; -1 if unknown
	Consumers int
	Pending   int
}

// Info describes the group. O(log n).
func (g StreamGroup) Info() (StreamGroupInfo, error) {
	o, err := g.open()
	if err != nil {
		return StreamGroupInfo{}, err
	}
	info, err := g.Txn.StreamMeta(g.Key, o.coll)
	return o.info(info), err
}

func (o *streamGroup) info(info StreamInfo) StreamGroupInfo {
	from, to := keydir.ConsumerScore(o.number, 0), keydir.ConsumerScore(o.number, keydir.MaxGroup)
	return StreamGroupInfo{
		Name: o.Name, Last: o.last, Read: o.read, Lag: o.lag(info), Pending: o.pendingFor(0, keydir.MaxGroup),
		Consumers: o.all.Rank(to+1, "") - o.all.Rank(from, ""),
	}
}

// Groups describes the groups of the stream in order of name. O(log n) a group.
func (s Stream) Groups() (list []StreamGroupInfo, err error) {
	names, err := s.GroupNames()
	for _, name := range names {
		if err != nil {
			return nil, err
		}
		var info StreamGroupInfo
		info, err = StreamGroup{Txn: s.Txn, Key: s.Key, Name: name}.Info()
		list = append(list, info)
	}
	return list, err
}

// CountGroups returns the number of groups. O(log n).
func (s Stream) CountGroups() (int, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	all, err := s.Txn.StreamGroups(s.Key)
	if err != nil || !all.Valid() {
		return 0, err
	}
	return all.Rank(keydir.GroupScore(keydir.MaxGroup)+1, ""), nil
}

// GroupNames lists the groups of the stream in order of name.
func (s Stream) GroupNames() (names []string, err error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return nil, err
	}
	all, err := s.Txn.StreamGroups(s.Key)
	if err != nil || !all.Valid() {
		return nil, err
	}
	all.AscendRank(0, func(elem []byte, score uint64) bool {
		if score > keydir.GroupScore(keydir.MaxGroup) {
			return false
		}
		names = append(names, string(elem[len(keydir.GroupElem("")):]))
		return true
	})
	slices.Sort(names)
	return names, nil
}

// StreamConsumer is what is known of a consumer.
type StreamConsumer struct {
	Name    string
	Seen    int64 // when it last tried to get entries, in Unix milliseconds; up to ActiveStep earlier, or SeenStep if it was given none
	Active  int64 // when it last was given entries, in Unix milliseconds, up to ActiveStep earlier; -1: never
	Pending int
}

// Consumers describes the consumers of the group in order of name. O(log n) a consumer.
func (g StreamGroup) Consumers() ([]StreamConsumer, error) {
	o, err := g.open()
	if err != nil {
		return nil, err
	}
	consumers, err := o.consumersByName()
	if err != nil {
		return nil, err
	}
	list := make([]StreamConsumer, 0, len(consumers))
	for _, c := range consumers {
		list = append(list, StreamConsumer{c.name, c.seen, c.active, o.pendingFor(c.number, c.number)})
	}
	return list, nil
}

// StreamGroupState is all that a group has.
type StreamGroupState struct {
	Name      string
	Last      StreamID
	Read      int64 // -1 if unknown
	Consumers []StreamConsumer
	Pending   []StreamPending // in order of id
}

// State returns all that the group has. O(n log n).
func (g StreamGroup) State() (state StreamGroupState, err error) {
	o, err := g.open()
	if err != nil {
		return state, err
	}
	state = StreamGroupState{Name: g.Name, Last: o.last, Read: o.read}
	if state.Consumers, err = g.Consumers(); err != nil {
		return state, err
	}
	state.Pending = make([]StreamPending, 0, o.pendingFor(0, keydir.MaxGroup))
	err = g.Pending(StreamPendingRange{To: MaxStreamID}, func(p StreamPending) bool {
		state.Pending = append(state.Pending, p)
		return true
	})
	return state, err
}

// RestoreGroup makes a group of a stream that exists, with all that it is to have. It fails with ErrGroupExists if
// there is one of that name, and with ErrNoGroup if an entry is pending for a consumer that there is not. O(n log n).
func (s Stream) RestoreGroup(state StreamGroupState) error {
	quiet := quietStream{s.Txn}
	g := StreamGroup{Txn: quiet, Key: s.Key, Name: state.Name}
	if err := g.Create(StreamGroupStart{ID: state.Last}); err != nil {
		return err
	}
	o, err := g.open()
	if err != nil {
		return err
	}
	o.read = max(state.Read, unknownRead)
	if err := o.put(); err != nil {
		return err
	}
	numbers := make(map[string]uint32, len(state.Consumers))
	for _, c := range state.Consumers {
		o.Now = c.Seen
		made, _, err := o.see(c.Name)
		if err != nil {
			return err
		}
		made.seen, made.active = c.Seen, max(c.Active, neverActive)
		if err := o.putConsumer(made); err != nil {
			return err
		}
		numbers[c.Name] = made.number
	}
	for _, p := range state.Pending {
		number, ok := numbers[p.Consumer]
		if !ok {
			return ErrNoGroup
		}
		if err := o.putPending(pending{p.ID, number, p.Delivered, p.Deliveries}); err != nil {
			return err
		}
	}
	return nil
}
