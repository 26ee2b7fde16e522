package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
)

// facts are a line for each element of each key, sorted.
type facts []string

func (f *facts) add(key string, element ...any) { *f = append(*f, key+": "+fmt.Sprint(element...)) }

// expect works the facts out from the packages, without a store.
func expect(packages []Package) (f facts) {
	for i, p := range packages {
		for name, value := range p.Fields {
			f.add(pkgKey+p.Name, name, "=", value)
		}
		for _, key := range p.sets() {
			f.add(key, p.Name)
		}
		f.add(loadedKey, i, " ", p.Name)
	}
	bySize := func(x, y Package) int { return cmp.Or(cmp.Compare(x.Size, y.Size), cmp.Compare(x.Name, y.Name)) }
	for i, p := range slices.SortedFunc(slices.Values(packages), bySize) {
		f.add(sizeKey, i, " ", db.Scored{Member: p.Name, Score: float64(p.Size)})
	}
	return f
}

// stored reads the facts back.
func stored(tx *db.Tx) (f facts, err error) {
	for k, err := range tx.Keyspace().All() {
		switch i := 0; k.Type {
		case db.TypeHash:
			for field, failed := range tx.Hash(k.Key).All() {
				f.add(k.Key, field.Name, "=", string(field.Value))
				err = cmp.Or(err, failed)
			}
		case db.TypeSet:
			for name, failed := range tx.Set(k.Key).All() {
				f.add(k.Key, name)
				err = cmp.Or(err, failed)
			}
		case db.TypeSortedSet:
			for scored, failed := range tx.SortedSet(k.Key).All(db.AllRanks) {
				f.add(k.Key, i, " ", scored)
				i, err = i+1, cmp.Or(err, failed)
			}
		case db.TypeList:
			for name, failed := range tx.List(k.Key).All() {
				f.add(k.Key, i, " ", string(name))
				i, err = i+1, cmp.Or(err, failed)
			}
		case db.TypeString:
			value, failed := tx.String(k.Key).Get()
			f.add(k.Key, string(value))
			err = cmp.Or(err, failed)
		}
		if err != nil {
			return nil, fmt.Errorf("key %q, a %v: %w", k.Key, k.Type, err)
		}
	}
	return f, nil
}

// check compares all that the store holds at one moment with what the file says, and reports the first difference.
func (t *tour) check() error {
	want := expect(t.packages)
	alive := time.Now().Before(t.deadline)
	if alive {
		want.add(summaryKey, summary)
	}
	var got facts
	if err := t.store.View(func(tx *db.Tx) (err error) { got, err = stored(tx); return err }); err != nil {
		return err
	}
	if alive != time.Now().Before(t.deadline) {
		return t.check() // The summary has expired in between, or has not.
	}
	slices.Sort(got)
	slices.Sort(want)
	got, want = append(got, "nothing more"), append(want, "nothing more")
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("the store says %q, expected %q", got[i], want[i])
		}
	}
	return nil
}

// checkAnswers compares the answers of the store with those that plain Go gives.
func (t *tour) checkAnswers() error {
	bySize := slices.SortedFunc(slices.Values(t.packages), func(x, y Package) int { return cmp.Or(cmp.Compare(y.Size, x.Size), cmp.Compare(y.Name, x.Name)) })
	want := Answers{Count: len(bySize)}
	for i, p := range bySize {
		if i < 10 {
			want.Largest = append(want.Largest, db.Scored{Member: p.Name, Score: float64(p.Size)})
		}
		if p.Fields["Section"] == t.Section {
			want.Section = append(want.Section, p.Name)
		}
		if slices.Contains(p.Needs, t.Needs) {
			want.Needs = append(want.Needs, p.Name)
		}
		if p.Name == t.Rank {
			want.Above = i
		}
	}
	slices.Sort(want.Section)
	slices.Sort(want.Needs)
	return t.store.View(func(tx *db.Tx) error {
		got, err := ask(tx, t.Question)
		if err == nil && got.text(t.Question) != want.text(t.Question) {
			err = fmt.Errorf("the store answers\n%swant\n%s", got.text(t.Question), want.text(t.Question))
		}
		return err
	})
}
