package main

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
)

// A fact is a line about one element of one key. Answers look at a part of the facts, each with the call that is made for
// it; comparing all facts leaves nothing unseen.
func fieldFact(key, field, value string) string   { return fmt.Sprintf("%s: %s=%s", key, field, value) }
func memberFact(key, member string) string        { return fmt.Sprintf("%s: %s", key, member) }
func elementFact(key string, i int, e any) string { return fmt.Sprintf("%s[%d]: %v", key, i, e) }

// expect works facts and answers out from the packages, without a store. Both are sorted.
func expect(packages []Package, q Question) (facts []string, a Answers) {
	a.Packages = len(packages)
	for i, p := range packages {
		for name, value := range p.Fields {
			facts = append(facts, fieldFact(pkgKey+p.Name, name, value))
		}
		for _, key := range p.sets() {
			facts = append(facts, memberFact(key, p.Name))
		}
		facts = append(facts, elementFact(loadedKey, i, p.Name))
		if p.Fields["Section"] == q.Section {
			a.Section = append(a.Section, p.Name)
		}
		if slices.Contains(p.Needs, q.Needs) {
			a.Needs = append(a.Needs, p.Name)
		}
	}
	bySize := slices.SortedFunc(slices.Values(packages), func(x, y Package) int {
		return cmp.Or(cmp.Compare(y.Size, x.Size), cmp.Compare(y.Name, x.Name))
	})
	for i, p := range bySize {
		scored := db.Scored{Member: p.Name, Score: float64(p.Size)}
		facts = append(facts, elementFact(sizeKey, len(bySize)-1-i, scored))
		if i < largest {
			a.Largest = append(a.Largest, scored)
		}
		if p.Name == q.Rank {
			a.Rank = i + 1
		}
	}
	for _, lines := range [][]string{facts, a.Section, a.Needs} {
		slices.Sort(lines)
	}
	return facts, a
}

// stored reads the facts back. The summary comes and goes by the clock: see checkSummary.
func stored(tx *db.Tx) (facts []string, err error) {
	for k, err := range tx.Keyspace().All() {
		switch {
		case k.Key == summaryKey:
		case k.Type == db.TypeHash:
			err = collect(&facts, tx.Hash(k.Key).All(), func(_ int, f db.Field) string { return fieldFact(k.Key, f.Name, string(f.Value)) })
		case k.Type == db.TypeSet:
			err = collect(&facts, tx.Set(k.Key).All(), func(_ int, name string) string { return memberFact(k.Key, name) })
		case k.Type == db.TypeSortedSet:
			err = collect(&facts, tx.SortedSet(k.Key).All(db.AllRanks), func(i int, s db.Scored) string { return elementFact(k.Key, i, s) })
		case k.Type == db.TypeList:
			err = collect(&facts, tx.List(k.Key).All(), func(i int, name []byte) string { return elementFact(k.Key, i, string(name)) })
		default:
			err = errors.New("it should not be there")
		}
		if err != nil {
			return nil, fmt.Errorf("key %q, a %v: %w", k.Key, k.Type, err)
		}
	}
	slices.Sort(facts)
	return facts, nil
}

func collect[T any](facts *[]string, all iter.Seq2[T, error], fact func(i int, v T) string) error {
	i := 0
	for v, err := range all {
		if err != nil {
			return err
		}
		*facts = append(*facts, fact(i, v))
		i++
	}
	return nil
}

// compare says where two lists differ first.
func compare(got, want []string) error {
	got, want = append(slices.Clip(got), "nothing more"), append(slices.Clip(want), "nothing more")
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("the store says %q, expected %q", got[i], want[i])
		}
	}
	return nil
}

// verify compares what the store says, all at one moment, with what the file says, and prints the answers if they are new.
func (t *tour) verify() error {
	wantFacts, want := expect(t.packages, t.question)
	err := t.store.View(func(tx *db.Tx) error {
		a, err := ask(tx, t.question)
		if err != nil {
			return err
		}
		facts, err := stored(tx)
		return cmp.Or(err, compare(a.lines(t.question), want.lines(t.question)), compare(facts, wantFacts))
	})
	if text := strings.Join(want.lines(t.question), "\n"); err == nil && text != t.shown {
		fmt.Fprintln(t.out, text)
		t.shown = text
	}
	return cmp.Or(err, t.checkSummary())
}

// checkSummary checks that the summary is there until its deadline and gone from then on. The clock is read before and after,
// for the deadline may pass in between.
func (t *tour) checkSummary() error {
	before := time.Now()
	value, err := t.store.String(summaryKey).Get()
	after := time.Now()
	switch gone := errors.Is(err, db.ErrNotFound); {
	case err == nil && !before.Before(t.deadline):
		return fmt.Errorf("key %s: still there %v after its deadline", summaryKey, before.Sub(t.deadline))
	case err == nil && string(value) != t.summary:
		return fmt.Errorf("key %s: the store says %q, expected %q", summaryKey, value, t.summary)
	case gone && after.Before(t.deadline):
		return fmt.Errorf("key %s: gone %v before its deadline", summaryKey, t.deadline.Sub(after))
	case gone:
		return nil
	}
	return err
}
