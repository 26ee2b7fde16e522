package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/db"
)

// The keys of the store. Those with a name after them end in a colon.
const (
	pkgKey        = "pkg:"          // hash: the fields of a package
	sectionKey    = "section:"      // set: the packages of a section
	neededKey     = "needed-by:"    // set: the packages that name this one as a dependency
	sizeKey       = "by-size"       // sorted set: all packages by installed size
	loadedKey     = "loaded"        // list: all packages in the order of the file
	summaryKey    = "cache:summary" // string with a deadline: something that was worked out and may be forgotten
	summary       = "worked out with much effort"
	defaultStatus = "/var/lib/dpkg/status" // where a Debian system has its package database
)

// Package is what the program keeps of one installed package.
type Package struct {
	Name   string
	Fields map[string]string // by name, with long values on one line
	Size   int64             // installed, in KiB
	Needs  []string          // the names of the packages that it depends on, sorted
}

// parseStatus reads a dpkg status file and returns the installed packages in the order of the file. A paragraph of the
// file describes one package and looks like the header of a mail.
func parseStatus(r io.Reader) (packages []Package, err error) {
	seen := make(map[string]bool)
	paragraphs := textproto.NewReader(bufio.NewReader(r))
	for number := 1; err == nil; number++ {
		var header textproto.MIMEHeader
		if header, err = paragraphs.ReadMIMEHeader(); err != nil && err != io.EOF {
			return nil, fmt.Errorf("paragraph %d: %w", number, err)
		}
		if status := header.Get("Status"); len(header) == 0 || status != "" && !strings.HasSuffix(status, " installed") {
			continue
		}
		p, failed := parsePackage(header)
		if seen[p.Name] { // A library may be installed for two architectures.
			p.Name += ":" + header.Get("Architecture")
		}
		if failed == nil && (p.Name == "" || seen[p.Name]) {
			failed = fmt.Errorf("package %q has no name or is there twice", p.Name)
		}
		if failed != nil {
			return nil, fmt.Errorf("paragraph %d: %w", number, failed)
		}
		seen[p.Name] = true
		packages = append(packages, p)
	}
	return packages, nil
}

// need is the name at the beginning of each alternative: a, b and c in "b:any (>= 1) | c, a".
var need = regexp.MustCompile(`(?:^|[,|])\s*([^\s,|:(\[<]+)`)

func parsePackage(header textproto.MIMEHeader) (p Package, err error) {
	p = Package{Name: header.Get("Package"), Fields: make(map[string]string)}
	for name := range header {
		p.Fields[name] = header.Get(name)
	}
	if size := header.Get("Installed-Size"); size != "" {
		if p.Size, err = strconv.ParseInt(size, 10, 64); err != nil || p.Size < 0 {
			return p, fmt.Errorf("Installed-Size %.40q is not a number of KiB", size)
		}
	}
	for _, match := range need.FindAllStringSubmatch(header.Get("Pre-Depends")+","+header.Get("Depends"), -1) {
		p.Needs = append(p.Needs, match[1])
	}
	p.Needs = slices.Compact(slices.Sorted(slices.Values(p.Needs)))
	return p, nil
}

// sets are the keys of the sets that a package is a member of.
func (p Package) sets() []string {
	keys := []string{sectionKey + p.Fields["Section"]}
	for _, name := range p.Needs {
		keys = append(keys, neededKey+name)
	}
	return keys
}

// add stores all facts about one package. Within an Update they are one commit: no reader sees a package that is in its
// section and not yet in the order by size, and an error rolls all of it back.
func add(tx *db.Tx, p Package) error {
	var errs []error
	did := func(_ any, err error) { errs = append(errs, err) }
	for name, value := range p.Fields {
		did(tx.Hash(pkgKey+p.Name).Put(name, []byte(value)))
	}
	for _, key := range p.sets() {
		did(tx.Set(key).Add(p.Name))
	}
	did(tx.SortedSet(sizeKey).Add(db.Scored{Member: p.Name, Score: float64(p.Size)}))
	did(tx.List(loadedKey).PushBack([]byte(p.Name)))
	return errors.Join(errs...)
}

// remove deletes everything that add stored.
func remove(tx *db.Tx, p Package) error {
	var errs []error
	did := func(_ any, err error) { errs = append(errs, err) }
	did(tx.Key(pkgKey + p.Name).Delete())
	for _, key := range p.sets() {
		did(tx.Set(key).Remove(p.Name))
	}
	did(tx.SortedSet(sizeKey).Remove(p.Name))
	did(tx.List(loadedKey).Remove(1, []byte(p.Name)))
	return errors.Join(errs...)
}

// Question is what the user may choose: whose packages, who depends on it, where it stands by size.
type Question struct{ Section, Needs, Rank string }

// Answers are what the store says about all packages. The lists of names are sorted.
type Answers struct {
	Largest        []db.Scored
	Section, Needs []string
	Above, Count   int // how many packages are larger than the one, of how many
}

// ask asks the store. The answers are those of one moment: what tx sees does not change.
func ask(tx *db.Tx, q Question) (a Answers, err error) {
	var errs [5]error
	a.Count, errs[0] = tx.List(loadedKey).Len()
	a.Largest, errs[1] = tx.SortedSet(sizeKey).Range(db.Top(10))
	a.Section, errs[2] = tx.Set(sectionKey + q.Section).Members()
	a.Needs, errs[3] = tx.Set(neededKey + q.Needs).Members()
	a.Above, errs[4] = tx.SortedSet(sizeKey).RevRank(q.Rank)
	slices.Sort(a.Section)
	slices.Sort(a.Needs)
	return a, errors.Join(errs[:]...)
}

// text is for people.
func (a Answers) text(q Question) string {
	text := fmt.Sprintf("%d packages\nsection %s: %d packages\n      %s\n", a.Count, q.Section, len(a.Section), strings.Join(a.Section, " "))
	text += fmt.Sprintf("%d packages depend on %s\n      %s\n", len(a.Needs), q.Needs, strings.Join(a.Needs, " "))
	text += fmt.Sprintf("%s is number %d of %d by size\nthe %d largest:\n", q.Rank, a.Above+1, a.Count, len(a.Largest))
	for i, p := range a.Largest {
		text += fmt.Sprintf("%4d  %-32s %8.0f KiB\n", i+1, p.Member, p.Score)
	}
	return text
}
