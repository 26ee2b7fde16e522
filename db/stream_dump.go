package db

import (
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/rdbgroup"
	"github.com/stavedb/stave/structures"
)

// dumpStream is dump of a stream.
func (k Key) dumpStream(txn structures.Txn) ([]byte, error) {
	s := structures.Stream{Txn: txn, Key: k.key}
	info, _, err := s.Info()
	if err != nil {
		return nil, err
	}
	var w rdb.StreamWriter
	var noRoom error
	err = s.Visit(structures.StreamRange{To: MaxStreamID}, func(id StreamID, fields [][]byte) bool {
		w.Add(rdb.StreamID(id), fields)
		noRoom = txn.Room(2 * w.Len())
		return noRoom == nil && w.Len() <= structures.MaxString
	})
	if err != nil {
		return nil, err
	}
	if noRoom != nil {
		return nil, noRoom
	}
	if w.Len() > structures.MaxString {
		return nil, structures.ErrTooLong
	}
	all := rdb.Stream{Last: rdb.StreamID(info.Last), Delete: rdb.StreamID(info.Deleted), Added: info.Added}
	if all.Groups, err = dumpGroups(s, 2*w.Len()); err != nil {
		return nil, err
	}
	payload := w.Seal(all)
	if len(payload) > structures.MaxString {
		return nil, structures.ErrTooLong
	}
	return payload, nil
}

// pendingRoom is what a pending entry takes while it is dumped, in bytes: as the group has it, as a payload has it, and
// in the payload.
const pendingRoom = 256

// dumpGroups returns the groups of a stream as a payload has them. It asks for room for them besides so many bytes.
func dumpGroups(s structures.Stream, besides int) (groups []rdb.StreamGroup, err error) {
	names, err := s.GroupNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		g := structures.StreamGroup{Txn: s.Txn, Key: s.Key, Name: name}
		info, err := g.Info()
		if err != nil {
			return nil, err
		}
		besides += pendingRoom * info.Pending
		if err := s.Txn.Room(besides); err != nil {
			return nil, err
		}
		state, err := g.State()
		if err != nil {
			return nil, err
		}
		groups = append(groups, rdbgroup.Encode(state))
	}
	return groups, nil
}

// putStream writes a decoded stream to a key that does not exist.
func (k Key) putStream(txn structures.Txn, v *rdb.Stream) error {
	s := structures.Stream{Txn: txn, Key: k.key}
	for _, e := range v.Entries {
		id := structures.StreamNewID{Given: true, ID: StreamID(e.ID)}
		if _, _, err := s.Add(e.Fields, structures.StreamAddOptions{ID: id}); err != nil {
			return err
		}
	}
	info := StreamInfo{Last: StreamID(v.Last), Deleted: StreamID(v.Delete), Added: v.Added}
	put := s.Restore
	if len(v.Entries) == 0 {
		put = s.Create
	}
	if err := put(info); err != nil {
		return err
	}
	for _, g := range v.Groups {
		if err := s.RestoreGroup(rdbgroup.Decode(g)); err != nil {
			return err
		}
	}
	return nil
}
