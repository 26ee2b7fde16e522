package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stavedb/stave/db"
)

// Question is what the user may choose.
type Question struct {
	Section string // whose packages?
	Needs   string // who depends on it?
	Rank    string // where does it stand by size?
}

// Answers are the answers to all questions.
type Answers struct {
	Packages int
	Sections int         // that have a package
	Needed   int         // names that some package depends on
	Largest  []db.Scored // ten, the largest first
	Section  []string    // sorted
	Needs    []string    // sorted
	Rank     int         // 1 is the largest
}

const largest = 10

// ask asks the store, all at one moment.
func ask(store *db.Store, q Question) (Answers, error) {
	var a Answers
	err := store.View(func(tx *db.Tx) error {
		var err error
		if a.Packages, err = tx.List(loadedKey).Len(); err != nil {
			return err
		}
		for k, err := range tx.Keyspace().All() {
			switch {
			case err != nil:
				return err
			case strings.HasPrefix(k.Key, sectionKey):
				a.Sections++
			case strings.HasPrefix(k.Key, neededKey):
				a.Needed++
			}
		}
		if a.Largest, err = tx.SortedSet(sizeKey).Range(db.Top(largest)); err != nil {
			return err
		}
		if a.Section, err = sortedMembers(tx.Set(sectionKey + q.Section)); err != nil {
			return err
		}
		if a.Needs, err = sortedMembers(tx.Set(neededKey + q.Needs)); err != nil {
			return err
		}
		above, err := tx.SortedSet(sizeKey).RevRank(q.Rank)
		a.Rank = above + 1
		return err
	})
	return a, err
}

func sortedMembers(s db.Set) ([]string, error) {
	members, err := s.Members()
	slices.Sort(members)
	return members, err
}

// expect works the same out from the packages, without a store.
func expect(packages []Package, q Question) Answers {
	a := Answers{Packages: len(packages)}
	sections, needed := make(map[string]bool), make(map[string]bool)
	for _, p := range packages {
		if p.Section != "" {
			sections[p.Section] = true
		}
		if p.Section == q.Section {
			a.Section = append(a.Section, p.Name)
		}
		for _, name := range p.Needs() {
			needed[name] = true
			if name == q.Needs {
				a.Needs = append(a.Needs, p.Name)
			}
		}
	}
	a.Sections, a.Needed = len(sections), len(needed)
	slices.Sort(a.Section)
	slices.Sort(a.Needs)
	bySize := slices.SortedFunc(slices.Values(packages), func(x, y Package) int {
		return cmp.Or(-cmp.Compare(x.Size, y.Size), -cmp.Compare(x.Name, y.Name))
	})
	for i, p := range bySize {
		if i < largest {
			a.Largest = append(a.Largest, db.Scored{Member: p.Name, Score: float64(p.Size)})
		}
		if p.Name == q.Rank {
			a.Rank = i + 1
		}
	}
	return a
}

// diff says where two sets of answers differ, "" if nowhere.
func (a Answers) diff(want Answers) string {
	switch {
	case a.Packages != want.Packages:
		return differs("number of packages", a.Packages, want.Packages)
	case a.Sections != want.Sections:
		return differs("number of sections", a.Sections, want.Sections)
	case a.Needed != want.Needed:
		return differs("number of needed names", a.Needed, want.Needed)
	case !slices.Equal(a.Largest, want.Largest):
		return differs("largest packages", a.Largest, want.Largest)
	case !slices.Equal(a.Section, want.Section):
		return differs("packages of the section", a.Section, want.Section)
	case !slices.Equal(a.Needs, want.Needs):
		return differs("packages that depend on it", a.Needs, want.Needs)
	case a.Rank != want.Rank:
		return differs("rank", a.Rank, want.Rank)
	}
	return ""
}

func differs(what string, got, want any) string {
	return fmt.Sprintf("%s: the store says %v, expected %v", what, got, want)
}

// print writes the answers for people.
func (a Answers) print(w io.Writer, q Question) {
	fmt.Fprintf(w, "%d packages in %d sections; they need %d others by name\n", a.Packages, a.Sections, a.Needed)
	fmt.Fprintf(w, "the %d largest:\n", len(a.Largest))
	for i, p := range a.Largest {
		fmt.Fprintf(w, "%4d  %-32s %8.0f KiB\n", i+1, p.Member, p.Score)
	}
	fmt.Fprintf(w, "section %s: %d packages\n", q.Section, len(a.Section))
	printNames(w, a.Section)
	fmt.Fprintf(w, "%d packages depend on %s\n", len(a.Needs), q.Needs)
	printNames(w, a.Needs)
	fmt.Fprintf(w, "%s is number %d of %d by size\n", q.Rank, a.Rank, a.Packages)
}

// printNames writes names in lines of up to 100 columns.
func printNames(w io.Writer, names []string) {
	const width = 100
	line := ""
	for _, name := range names {
		if line != "" && len(line)+1+len(name) > width {
			fmt.Fprintln(w, line)
			line = ""
		}
		if line == "" {
			line = "     "
		}
		line += " " + name
	}
	if line != "" {
		fmt.Fprintln(w, line)
	}
}
