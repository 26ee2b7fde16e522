package db_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/keydir"
)

// Merges of some segments: what any of them leaves of a key must say the same as all of its records did, whoever reads it
// from the log.

// mergeSome merges sealed segments that are drawn, whatever they hold. A policy would leave out those that are mostly
// live, or take all that are alike.
func mergeSome(s *db.Store, r *rand.Rand) error {
	for {
		ids := sealed(s)
		one := r.IntN(4) + 1 // in so many
		ids = slices.DeleteFunc(ids, func(uint32) bool { return r.IntN(one) > 0 })
		if len(ids) == 0 {
			return nil
		}
		_, err := s.Log().Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
		now := sealed(s)
		if err == nil || !slices.ContainsFunc(ids, func(id uint32) bool { return !slices.Contains(now, id) }) {
			return err
		} // the background merge has taken one of them
	}
}

// sealed are the segments that can be merged.
func sealed(s *db.Store) (ids []uint32) {
	for _, sg := range s.Log().Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	return ids
}

// groupRecords is what the consumer groups of all streams have in three namespaces, as the records say it.
func groupRecords(s *db.Store) (map[string]string, error) {
	records := map[string]string{}
	for ns := range 3 {
		in, err := s.Use(ns)
		if err != nil {
			return nil, err
		}
		keys, err := in.Keyspace().Keys("*")
		for _, key := range keys {
			if err == nil {
				err = groupRecordsOf(s, ns, key, records)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

func groupRecordsOf(s *db.Store, ns int, key string, records map[string]string) error {
	tx, err := s.Log().Begin(false, key)
	if err != nil {
		return err
	}
	defer tx.End()
	coll, err := tx.StreamGroups(ns, key)
	if err != nil || !coll.Valid() {
		return err
	}
	coll.Each(func(elem []byte, loc keydir.Loc) bool {
		var value []byte
		value, err = tx.Value(nil, ns, key, string(elem), keydir.StreamGroups, loc)
		records[groupRecord(ns, key, string(elem))] = string(value)
		return err == nil
	})
	return err
}

func groupRecord(ns int, key, elem string) string { return fmt.Sprintf("%d %q %q", ns, key, elem) }

// everything is all that a store holds in three namespaces, and its libraries.
func everything(s *db.Store) (string, error) {
	libraries, err := serverside.DB.Libraries(s)
	if err != nil {
		return "", err
	}
	_, _, text, err := contentsOf(s)
	if err != nil {
		return "", err
	}
	groups, err := groupRecords(s)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("%s%q", text, libraries)}
	for name, value := range groups {
		lines = append(lines, name+" "+value)
	}
	return strings.Join(append(lines[:1], slices.Sorted(slices.Values(lines[1:]))...), "\n"), nil
}
