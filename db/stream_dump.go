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
	err = s.Visit(structures.StreamRange{To: MaxStreamID}, func(id StreamID, fields [][]byte) bool {
		w.Add(rdb.StreamID(id), fields)
		return w.Len() <= structures.MaxString
	})
	if err != nil {
		return nil, err
	}
	if w.Len() > structures.MaxString {
		return nil, structures.ErrTooLong
	}
	all := rdb.Stream{Last: rdb.StreamID(info.Last), Delete: rdb.StreamID(info.Deleted), Added: info.Added}
	if all.Groups, err = dumpGroups(s); err != nil {
		return nil, err
	}
	payload := w.Seal(all)
	if len(payload) > structures.MaxString {
		return nil, structures.ErrTooLong
	}
	return payload, nil
}

// dumpGroups returns the groups of a stream as a payload has them.
func dumpGroups(s structures.Stream) (groups []rdb.StreamGroup, err error) {
	names, err := s.GroupNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		state, err := structures.StreamGroup{Txn: s.Txn, Key: s.Key, Name: name}.State()
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
