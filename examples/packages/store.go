package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
)

// The keys of the store. Those with a NAME after them end in a colon.
const (
	pkgKey     = "pkg:"          // hash: the fields of a package
	sectionKey = "section:"      // set: the packages of a section
	neededKey  = "needed-by:"    // set: the packages that name this one as a dependency
	sizeKey    = "by-size"       // sorted set: all packages by installed size
	loadedKey  = "loaded"        // list: all packages in the order of the file
	summaryKey = "cache:summary" // string with a deadline: something that was worked out and may be forgotten
)

// sets are the keys of the sets that a package is a member of.
func (p Package) sets() (keys []string) {
	for _, name := range p.Needs {
		keys = append(keys, neededKey+name)
	}
	if section := p.Fields["Section"]; section != "" {
		keys = append(keys, sectionKey+section)
	}
	return keys
}

// add stores all facts about one package. They are one commit: no reader sees a package that is in its section, but not
// in the order by size.
func add(tx *db.Tx, p Package) error {
	var fields []db.Field
	for name, value := range p.Fields {
		fields = append(fields, db.Field{Name: name, Value: []byte(value)})
	}
	if _, err := tx.Hash(pkgKey + p.Name).PutAll(fields...); err != nil {
		return err
	}
	for _, key := range p.sets() {
		if _, err := tx.Set(key).Add(p.Name); err != nil {
			return err
		}
	}
	if _, err := tx.SortedSet(sizeKey).Add(db.Scored{Member: p.Name, Score: float64(p.Size)}); err != nil {
		return err
	}
	_, err := tx.List(loadedKey).PushBack([]byte(p.Name))
	return err
}

// remove deletes a package and everything that add stored about it.
func remove(tx *db.Tx, p Package) error {
	for _, key := range p.sets() {
		if _, err := tx.Set(key).Remove(p.Name); err != nil {
			return err
		}
	}
	if _, err := tx.SortedSet(sizeKey).Remove(p.Name); err != nil {
		return err
	}
	if _, err := tx.List(loadedKey).Remove(1, []byte(p.Name)); err != nil {
		return err
	}
	_, err := tx.Key(pkgKey + p.Name).Delete()
	return err
}

// putSummary keeps a summary until ttl has passed, and returns it with the moment from which it is gone.
func putSummary(tx *db.Tx, ttl time.Duration) (summary string, deadline time.Time, err error) {
	count, err := tx.SortedSet(sizeKey).Len()
	summary = fmt.Sprintf("%d packages", count)
	if err == nil {
		err = tx.String(summaryKey).Put([]byte(summary), db.TTL(ttl))
	}
	if err == nil {
		deadline, err = tx.Key(summaryKey).Deadline()
	}
	return summary, deadline, err
}

// Question is what the user may choose.
type Question struct {
	Section string // whose packages?
	Needs   string // who depends on it?
	Rank    string // where does it stand by size?
}

// Answers are the answers to all questions.
type Answers struct {
	Packages       int
	Largest        []db.Scored // ten, the largest first
	Section, Needs []string    // sorted
	Rank           int         // 1 is the largest
}

const largest = 10

// ask asks the store. The answers are those of one moment: what tx sees does not change.
func ask(tx *db.Tx, q Question) (a Answers, err error) {
	var errs [5]error
	a.Packages, errs[0] = tx.List(loadedKey).Len()
	a.Largest, errs[1] = tx.SortedSet(sizeKey).Range(db.Top(largest))
	a.Section, errs[2] = tx.Set(sectionKey + q.Section).Members()
	a.Needs, errs[3] = tx.Set(neededKey + q.Needs).Members()
	a.Rank, errs[4] = tx.SortedSet(sizeKey).RevRank(q.Rank)
	a.Rank++
	slices.Sort(a.Section)
	slices.Sort(a.Needs)
	return a, errors.Join(errs[:]...)
}

// lines are the answers for people.
func (a Answers) lines(q Question) []string {
	lines := []string{
		fmt.Sprintf("%d packages", a.Packages),
		fmt.Sprintf("section %s: %d packages\n      %s", q.Section, len(a.Section), strings.Join(a.Section, " ")),
		fmt.Sprintf("%d packages depend on %s\n      %s", len(a.Needs), q.Needs, strings.Join(a.Needs, " ")),
		fmt.Sprintf("%s is number %d of %d by size", q.Rank, a.Rank, a.Packages),
		fmt.Sprintf("the %d largest:", len(a.Largest)),
	}
	for i, p := range a.Largest {
		lines = append(lines, fmt.Sprintf("%4d  %-32s %8.0f KiB", i+1, p.Member, p.Score))
	}
	return lines
}
