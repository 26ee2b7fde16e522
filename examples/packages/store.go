package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stavedb/stave/db"
)

// The keys of the store. Those with a NAME behind them end in a colon.
const (
	pkgKey     = "pkg:"          // hash: the fields of a package
	sectionKey = "section:"      // set: the packages of a section
	neededKey  = "needed-by:"    // set: the packages that name this one as a dependency
	sizeKey    = "by-size"       // sorted set: all packages by installed size
	loadedKey  = "loaded"        // list: all packages in the order of the file
	summaryKey = "cache:summary" // string with a deadline: something that was worked out and may be forgotten
)

// add stores all facts about one package. They are one commit: nobody ever sees a package that is in its section, but not
// in the order by size.
func add(tx *db.Tx, p Package) error {
	if _, err := tx.Hash(pkgKey + p.Name).PutAll(fields(p)...); err != nil {
		return err
	}
	if p.Section != "" {
		if _, err := tx.Set(sectionKey + p.Section).Add(p.Name); err != nil {
			return err
		}
	}
	if _, err := tx.SortedSet(sizeKey).Add(db.Scored{Member: p.Name, Score: float64(p.Size)}); err != nil {
		return err
	}
	for _, name := range p.Needs() {
		if _, err := tx.Set(neededKey + name).Add(p.Name); err != nil {
			return err
		}
	}
	_, err := tx.List(loadedKey).PushBack([]byte(p.Name))
	return err
}

// fields are those of a package's hash. What the status file does not say has no field.
func fields(p Package) []db.Field {
	all := []db.Field{
		{Name: "version", Value: []byte(p.Version)},
		{Name: "section", Value: []byte(p.Section)},
		{Name: "architecture", Value: []byte(p.Architecture)},
		{Name: "description", Value: []byte(p.Description)},
		{Name: "depends", Value: []byte(p.Depends)},
		{Name: "size", Value: strconv.AppendInt(nil, p.Size, 10)},
	}
	said := all[:0]
	for _, f := range all {
		if len(f.Value) > 0 {
			said = append(said, f)
		}
	}
	return said
}

// remove deletes a package and everything that add stored about it. What that was, it reads in the same transaction.
func remove(tx *db.Tx, name string) error {
	values, err := tx.Hash(pkgKey+name).GetMany("section", "depends") // nil: no such field
	if err != nil {
		return err
	}
	existed, err := tx.Key(pkgKey + name).Delete()
	if err != nil {
		return err
	}
	if !existed {
		return fmt.Errorf("package %s: %w", name, db.ErrNotFound)
	}
	if values[0] != nil {
		if _, err := tx.Set(sectionKey + string(values[0])).Remove(name); err != nil {
			return err
		}
	}
	needs, err := parseDepends(string(values[1]))
	if err != nil {
		return err
	}
	for _, other := range needs {
		if _, err := tx.Set(neededKey + other).Remove(name); err != nil {
			return err
		}
	}
	if _, err := tx.SortedSet(sizeKey).Remove(name); err != nil {
		return err
	}
	_, err = tx.List(loadedKey).Remove(1, []byte(name))
	return err
}

// putSummary keeps a summary until ttl has passed, and returns it with the moment from which it is gone.
func putSummary(store *db.Store, ttl time.Duration) (summary string, deadline time.Time, err error) {
	err = store.Update(func(tx *db.Tx) error {
		count, err := tx.SortedSet(sizeKey).Len()
		if err != nil {
			return err
		}
		total := 0.0
		for p, err := range tx.SortedSet(sizeKey).All(db.AllRanks) {
			if err != nil {
				return err
			}
			total += p.Score
		}
		summary = fmt.Sprintf("%d packages, %.0f KiB", count, total)
		if err := tx.String(summaryKey).Put([]byte(summary), db.TTL(ttl)); err != nil {
			return err
		}
		deadline, err = tx.Key(summaryKey).Deadline()
		return err
	})
	return summary, deadline, err
}
