package db_test

import (
	"encoding/hex"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// goldenV1e is a copy of a store, with system records, of which one has an unknown name, with a
// history, times in footers, and an INDEX of version 3. It is made by go test ./db/test -run
// 'TestGoldenSystem$' -update
var goldenV1e = golden{
	dir: "testdata/golden-v1e", chunkSize: 32, fill: fillGoldenV1e, last: lastOfGoldenV1b, copied: true, indexed: true,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile},
}

func fillGoldenV1e(t *testing.T, s *db.Store) {
	log := s.Log()
	_, err := log.BeginHistory()
	must(t, err)
	tx, err := log.BeginAll(true)
	must(t, err)
	must(t, tx.PutSystem("of a later version", []byte("kept")))
	must(t, tx.PutSystem("deleted", []byte("older")))
	must(t, tx.PutSystem("deleted", nil))
	_, err = tx.Commit()
	tx.End()
	must(t, err)
	fillGoldenV1b(t, s)
}

func TestGoldenSystem(t *testing.T) {
	goldenV1e.test(t)
	o := goldenV1e.options()
	o.ReadOnly = true
	s, err := db.Open(goldenV1e.copy(t), o)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	log := s.Log()
	if v := string(log.System("of a later version")); v != "kept" || log.System("deleted") != nil || len(log.System("clock")) != 8 {
		t.Errorf("system records: %q, %q, clock %x", v, log.System("deleted"), log.System("clock"))
	}
	h, err := log.History()
	must(t, err)
	if h.Term != 2 || len(h.Past) != 2 || h.Past[0].Last != 0 || h.Began.Year() != 2000 {
		t.Errorf("history %+v", h)
	}
	in := log.Inherited()
	if len(in) != 1 || hex.EncodeToString(in[0].Store[:]) != "000102030405060708090a0b0c0d0e0f" || in[0].Through != h.Past[1].Last {
		t.Errorf("inherited %+v", in)
	}
	for _, sg := range log.Segments() {
		if sg.Sealed && sg.Time.Year() != 2000 {
			t.Errorf("segment %d has the time %v", sg.ID, sg.Time)
		}
	}
}
