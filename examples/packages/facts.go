package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/db"
)

// Facts is everything that the store should hold, as plain Go maps and slices. Answers look at a part of it, each with the
// call that is made for it; comparing all facts leaves nothing unseen.
type Facts struct {
	Packages map[string]map[string]string // fields by the name of the package
	Sections map[string][]string          // sorted
	NeededBy map[string][]string          // sorted
	BySize   []db.Scored                  // by size, then by name
	Loaded   []string                     // in the order of the file
}

func newFacts() Facts {
	return Facts{
		Packages: make(map[string]map[string]string),
		Sections: make(map[string][]string), NeededBy: make(map[string][]string),
	}
}

// expectFacts works the facts out from the packages, without a store.
func expectFacts(packages []Package) Facts {
	f := newFacts()
	for _, p := range packages {
		f.Packages[p.Name] = map[string]string{
			"version": p.Version, "section": p.Section, "architecture": p.Architecture, "description": p.Description,
			"depends": p.Depends, "size": strconv.FormatInt(p.Size, 10),
		}
		maps.DeleteFunc(f.Packages[p.Name], func(_, value string) bool { return value == "" })
		if p.Section != "" {
			f.Sections[p.Section] = append(f.Sections[p.Section], p.Name)
		}
		for _, name := range p.Needs() {
			f.NeededBy[name] = append(f.NeededBy[name], p.Name)
		}
		f.BySize = append(f.BySize, db.Scored{Member: p.Name, Score: float64(p.Size)})
		f.Loaded = append(f.Loaded, p.Name)
	}
	for _, names := range f.Sections {
		slices.Sort(names)
	}
	for _, names := range f.NeededBy {
		slices.Sort(names)
	}
	slices.SortFunc(f.BySize, func(x, y db.Scored) int {
		return cmp.Or(cmp.Compare(x.Score, y.Score), cmp.Compare(x.Member, y.Member))
	})
	return f
}

// storedFacts reads the facts back, all at one moment. A key that has no business in the store is an error.
func storedFacts(store *db.Store) (Facts, error) {
	f := newFacts()
	err := store.View(func(tx *db.Tx) error {
		for k, err := range tx.Keyspace().All() {
			if err != nil {
				return err
			}
			if err := f.take(tx, k.Key); err != nil {
				return fmt.Errorf("key %q, a %v: %w", k.Key, k.Type, err)
			}
		}
		return nil
	})
	return f, err
}

// take adds what one key holds.
func (f *Facts) take(tx *db.Tx, key string) error {
	prefix, name, _ := strings.Cut(key, ":")
	var err error
	switch prefix += ":"; {
	case key == summaryKey: // It comes and goes by the clock; see tour.checkSummary.
	case key == sizeKey:
		f.BySize, err = tx.SortedSet(key).Range(db.AllRanks)
	case key == loadedKey:
		for name, err := range tx.List(key).All() {
			if err != nil {
				return err
			}
			f.Loaded = append(f.Loaded, string(name))
		}
	case prefix == pkgKey:
		f.Packages[name] = make(map[string]string)
		for field, err := range tx.Hash(key).All() {
			if err != nil {
				return err
			}
			f.Packages[name][field.Name] = string(field.Value)
		}
	case prefix == sectionKey:
		f.Sections[name], err = sortedMembers(tx.Set(key))
	case prefix == neededKey:
		f.NeededBy[name], err = sortedMembers(tx.Set(key))
	default:
		err = fmt.Errorf("it should not be there")
	}
	return err
}

// diff says where two sets of facts differ first, "" if nowhere.
func (f Facts) diff(want Facts) string {
	return cmp.Or(
		diffMaps(pkgKey, f.Packages, want.Packages, maps.Equal[map[string]string, map[string]string]),
		diffMaps(sectionKey, f.Sections, want.Sections, slices.Equal[[]string]),
		diffMaps(neededKey, f.NeededBy, want.NeededBy, slices.Equal[[]string]),
		diffSlices(sizeKey, f.BySize, want.BySize),
		diffSlices(loadedKey, f.Loaded, want.Loaded),
	)
}

func diffMaps[T any](prefix string, got, want map[string]T, equal func(x, y T) bool) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[name]; !ok {
			return fmt.Sprintf("key %s%s: not in the store", prefix, name)
		} else if !equal(value, want[name]) {
			return differs("key "+prefix+name, value, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("key %s%s: in the store, but not expected", prefix, name)
		}
	}
	return ""
}

func diffSlices[T comparable](key string, got, want []T) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return differs(fmt.Sprintf("key %s, position %d", key, i), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return differs("key "+key+", length", len(got), len(want))
	}
	return ""
}
