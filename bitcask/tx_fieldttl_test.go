package bitcask_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

var (
	fieldSeed  = flag.Uint64("fields.seed", 0, "seed of the test of deadlines of fields; 0 draws one")
	fieldSteps = flag.Int("fields.steps", 3000, "transactions of the test of deadlines of fields")
)

// fieldModel is what the keys hold: a string under the field "\x00string", or a hash. A deadline of 0 is none.
type fieldModel map[string]map[string]fieldState

type fieldState struct {
	value    string
	deadline int64
}

const wholeString = "\x00string"

func (m fieldModel) clone() fieldModel {
	c := fieldModel{}
	for key, fields := range m {
		c[key] = maps.Clone(fields)
	}
	return c
}

// TestFieldDeadlinesAgainstModel makes random transactions on hashes whose fields have deadlines, some of them rolled
// back, with merges, kills and reopenings in between, with the INDEX and without.
func TestFieldDeadlinesAgainstModel(t *testing.T) {
	seed := chance.Draw(*fieldSeed)
	t.Logf("repeat with -fields.seed=%d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewMem()
	o := bitcask.Options{SegmentSize: 2 << 10}
	s := openMem(t, mem, o)
	model := fieldModel{}
	steps := *fieldSteps
	if testing.Short() {
		steps /= 4
	}
	for i := range steps {
		model = fieldTransaction(t, s, r, model, i)
		switch p := r.IntN(300); {
		case p == 0 || p > 290: // some of the segments: what makes a record of no use may be in another one
			ids := slices.DeleteFunc(sealed(s), func(uint32) bool { return r.IntN(3) == 0 })
			if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
				t.Fatal(err)
			}
		case p < 3:
			if p == 1 {
				mem = mem.Clone() // killed: what the old one does from here on, it does elsewhere
			}
			closeStore(t, s)
			seam.Of(&o).NoIndex = r.IntN(2) == 0
			s = openMem(t, mem, o)
		case p < 6:
			fieldsEqual(t, s, model)
		}
	}
	fieldsEqual(t, s, model)
	closeStore(t, s)
	o.ReadOnly, seam.Of(&o).NoIndex = true, true
	s = openMem(t, mem, o)
	fieldsEqual(t, s, model) // and the INDEX is what the log says
	closeStore(t, s)
}

// fieldTransaction makes one transaction and returns what the store then holds.
func fieldTransaction(t *testing.T, s *bitcask.Store, r *rand.Rand, model fieldModel, step int) fieldModel {
	t.Helper()
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	next, saved := model.clone(), fieldModel(nil)
	var mark bitcask.Savepoint
	for i := range 1 + r.IntN(6) {
		fieldOperation(t, tx, r, next, fmt.Sprint(step, " ", i))
		switch r.IntN(8) {
		case 0:
			saved, mark = next.clone(), tx.Savepoint()
		case 1:
			if saved != nil {
				tx.RollbackTo(mark)
				next, saved = saved, nil
			}
		}
	}
	if r.IntN(6) == 0 {
		tx.End()
		return model
	}
	if _, err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx.End()
	return next
}

func fieldOperation(t *testing.T, tx *bitcask.Tx, r *rand.Rand, model fieldModel, value string) {
	t.Helper()
	key, field := fmt.Sprint("key", r.IntN(5)), fmt.Sprint("field", r.IntN(4))
	if r.IntN(4) == 0 {
		field = fmt.Sprint("field", r.IntN(200)) // collections that become large
	}
	_, isString := model[key][wholeString]
	_, exists := model[key][field]
	state := model[key][field]
	var err error
	switch op := r.IntN(100); {
	case op < 40 && !isString:
		var f keydir.Collection
		if f, err = tx.Collection(0, key, keydir.Hash); err == nil {
			err = tx.PutElem(0, key, f, field, []byte(value))
		}
		if model[key] == nil {
			model[key] = map[string]fieldState{}
		}
		state.value = value
		model[key][field] = state
	case op < 70 && exists:
		state.deadline = 1 + r.Int64N(1000)
		err = tx.SetFieldDeadline(0, key, field, state.deadline)
		model[key][field] = state
	case op < 78 && exists:
		var had bool
		if had, err = tx.ClearFieldDeadline(0, key, field); had != (state.deadline != 0) {
			t.Fatalf("clearing the deadline of %s %s: %v, had %d", key, field, had, state.deadline)
		}
		state.deadline = 0
		model[key][field] = state
	case op < 92 && exists:
		var f keydir.Collection
		if _, f, err = tx.Find(0, key); err == nil {
			_, err = tx.DeleteElem(0, key, f, field)
		}
		if delete(model[key], field); len(model[key]) == 0 {
			delete(model, key)
		}
	case op < 94:
		_, err = tx.Drop(0, key)
		delete(model, key)
	case op < 96:
		err = tx.PutString(0, key, []byte(value))
		model[key] = map[string]fieldState{wholeString: {value, 0}}
	case op < 98:
		to := fmt.Sprint("other", r.IntN(5))
		if held, ok := model[key]; ok {
			err = putFields(tx, to, held)
			model[to] = held
			delete(model, key)
			if err == nil {
				_, err = tx.Drop(0, key)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// putFields makes a key hold what the model says of another one, whatever it held.
func putFields(tx *bitcask.Tx, key string, fields map[string]fieldState) error {
	if _, err := tx.Drop(0, key); err != nil {
		return err
	}
	if whole, ok := fields[wholeString]; ok {
		return tx.PutString(0, key, []byte(whole.value))
	}
	f, err := tx.Collection(0, key, keydir.Hash)
	for name, field := range fields {
		if err == nil {
			err = tx.PutElem(0, key, f, name, []byte(field.value))
		}
		if err == nil && field.deadline != 0 {
			err = tx.SetFieldDeadline(0, key, name, field.deadline)
		}
	}
	return err
}

// fieldsEqual compares a store with the model, and checks it.
func fieldsEqual(t *testing.T, s *bitcask.Store, model fieldModel) {
	t.Helper()
	check(t, s)
	tx, err := s.BeginAll(false)
	if err != nil {
		t.Fatal(err)
	}
	got := fieldModel{}
	for stripe := range keydir.Stripes {
		err := tx.EachKey(0, stripe, 0, func(_ uint64, key []byte, _ keydir.Type) bool {
			got[string(key)] = fieldsOf(t, tx, string(key))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	tx.End()
	for key := range model {
		if !maps.Equal(got[key], model[key]) {
			t.Fatalf("%s is\n%v, want\n%v", key, got[key], model[key])
		}
	}
	if len(got) != len(model) || s.Len(0) != len(model) {
		t.Fatalf("%d keys, counted as %d, want %d", len(got), s.Len(0), len(model))
	}
	earliest := map[string]int64{}
	for key, fields := range model {
		for _, f := range fields {
			if f.deadline != 0 && (earliest[key] == 0 || f.deadline < earliest[key]) {
				earliest[key] = f.deadline
			}
		}
	}
	told := map[string]int64{}
	s.EachFieldDeadline(func(_ uint32, key string, ms int64) { told[key] = ms })
	if !maps.Equal(told, earliest) {
		t.Fatalf("earliest deadlines %v, want %v", told, earliest)
	}
}

func fieldsOf(t *testing.T, tx *bitcask.Tx, key string) map[string]fieldState {
	t.Helper()
	all := map[string]fieldState{}
	slot, f, err := tx.Find(0, key)
	if err != nil {
		t.Fatal(err)
	}
	value := func(elem string, loc keydir.Loc) string {
		b, err := tx.Value(nil, 0, key, elem, slot.Type, loc)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if slot.Type == keydir.String {
		return map[string]fieldState{wholeString: {value: value("", slot.Loc)}}
	}
	f.Each(func(elem []byte, loc keydir.Loc) bool {
		all[string(elem)] = fieldState{value: value(string(elem), loc)}
		return true
	})
	deadlines, err := tx.FieldDeadlines(0, key)
	if err != nil || !deadlines.Valid() {
		return all
	}
	deadlines.AscendRank(0, func(elem []byte, score uint64) bool {
		state, exists := all[string(elem)]
		if !exists {
			t.Fatalf("%s: a deadline of %q, which is not there", key, elem)
		}
		state.deadline = bitcask.FieldDeadlineOf(score)
		all[string(elem)] = state
		return true
	})
	return all
}

// hashWithDeadlines makes the hash "h" with the fields a, b and c, of which a and b have deadlines.
func hashWithDeadlines(t *testing.T, s *bitcask.Store) {
	t.Helper()
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.End()
	f, err := tx.Collection(0, "h", keydir.Hash)
	for _, field := range []string{"a", "b", "c"} {
		err = errors.Join(err, tx.PutElem(0, "h", f, field, []byte("value of "+field)))
	}
	err = errors.Join(err, tx.SetFieldDeadline(0, "h", "a", 1111111), tx.SetFieldDeadline(0, "h", "b", 2222222))
	if _, cerr := tx.Commit(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
}

// TestDeadlineOutlivesRecordOfField merges the segment with a field's record, and not the one with its deadline, once
// either is of no use any more: what took the field away takes the deadline, without the field to be seen.
func TestDeadlineOutlivesRecordOfField(t *testing.T) {
	const key, field = "h", "f"
	ends := map[string]func(tx *bitcask.Tx) error{
		"field deleted": func(tx *bitcask.Tx) error {
			_, f, err := tx.Find(0, key)
			if err == nil {
				_, err = tx.DeleteElem(0, key, f, field)
			}
			return err
		},
		"key deleted": func(tx *bitcask.Tx) error { _, err := tx.Drop(0, key); return err },
		"string put":  func(tx *bitcask.Tx) error { return tx.PutString(0, key, []byte("v")) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := *seam.With(&bitcask.Options{SegmentSize: 300}, seam.Options{NoIndex: true})
			s := openMem(t, mem, o)
			fill := func() { put(t, s, "filler", strings.Repeat("x", 300)) } // a segment of its own
			do := func(fn func(tx *bitcask.Tx) error) {
				tx, err := s.BeginAll(true)
				if err == nil {
					err = fn(tx)
				}
				if _, cerr := tx.Commit(); err != nil || cerr != nil {
					t.Fatal(err, cerr)
				}
				tx.End()
			}
			set := func(tx *bitcask.Tx) error {
				f, err := tx.Collection(0, key, keydir.Hash)
				return errors.Join(err, tx.PutElem(0, key, f, field, []byte("v")))
			}
			do(set)
			fill()
			do(func(tx *bitcask.Tx) error { return tx.SetFieldDeadline(0, key, field, 5) })
			fill()
			do(end)
			fill()
			fill()
			var first []uint32
			for _, sg := range s.Segments() {
				if sg.Sealed && sg.MinSeq == 1 {
					first = append(first, sg.ID)
				}
			}
			if _, err := s.Rewrite(context.Background(), first, bitcask.RewriteOptions{}); err != nil || len(first) != 1 {
				t.Fatal(err, first)
			}
			closeStore(t, s)
			s = openMem(t, mem, o)
			check(t, s)
			do(func(tx *bitcask.Tx) error { _, err := tx.Drop(0, key); return err })
			do(set)
			s.EachFieldDeadline(func(_ uint32, key string, ms int64) { t.Errorf("a new field of %s has the deadline %d", key, ms) })
			closeStore(t, s)
		})
	}
}

// TestSalvageDropsDeadlineOfLostField damages a field's record: what a salvage then makes of the store has no deadline
// for it.
func TestSalvageDropsDeadlineOfLostField(t *testing.T) {
	mem := vfs.NewMem()
	o := *seam.With(&bitcask.Options{}, seam.Options{NoIndex: true, NoHints: true})
	s := openMem(t, mem, o)
	hashWithDeadlines(t, s)
	closeStore(t, s)
	f, err := mem.Open("d/000000001.data", vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	size, _ := f.Size()
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), "value of a")
	if _, err := f.WriteAt([]byte{'V'}, int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	result, err := repair.Salvage(context.Background(), "d", "saved", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	if err != nil || result.Mended == 0 {
		t.Fatalf("salvage: %+v, %v", result, err)
	}
	s, err = bitcask.Open("saved", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	if err != nil {
		t.Fatal(err)
	}
	fieldsEqual(t, s, fieldModel{"h": {"b": {"value of b", 2222222}, "c": {"value of c", 0}}})
	closeStore(t, s)
}
