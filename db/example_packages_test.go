package db_test

import (
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
)

// software is one package of an operating system.
type software struct {
	name, section string
	kib           float64
	needs         []string
}

var installed = []software{
	{"bash", "shells", 7164, []string{"libc6", "libtinfo6"}},
	{"less", "text", 322, []string{"libc6", "libtinfo6"}},
	{"libc6", "libs", 13001, []string{"libgcc-s1"}},
	{"libgcc-s1", "libs", 140, []string{"libc6"}},
	{"libtinfo6", "libs", 546, []string{"libc6"}},
}

// install stores the facts about a package in five structures.
func install(tx *db.Tx, p software) error {
	if _, err := tx.Hash("pkg:"+p.name).Put("section", []byte(p.section)); err != nil {
		return err
	}
	if _, err := tx.Set("section:" + p.section).Add(p.name); err != nil {
		return err
	}
	if _, err := tx.SortedSet("by-size").Add(db.Scored{Member: p.name, Score: p.kib}); err != nil {
		return err
	}
	for _, other := range p.needs {
		if _, err := tx.Set("needed-by:" + other).Add(p.name); err != nil {
			return err
		}
	}
	_, err := tx.List("loaded").PushBack([]byte(p.name))
	return err
}

// A package database in every data type: each package is one commit over several keys, and the questions are answered
// from one moment. The program in examples/packages does the same with all of a Debian system.
func Example_packages() {
	dir, err := os.MkdirTemp("", "packages-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := db.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	for _, p := range installed {
		if err := store.Update(func(tx *db.Tx) error { return install(tx, p) }); err != nil {
			log.Fatal(err)
		}
	}
	if err := store.String("cache:summary").Put([]byte("5 packages"), db.TTL(time.Hour)); err != nil {
		log.Fatal(err)
	}

	err = store.View(func(tx *db.Tx) error {
		fmt.Println("largest:")
		for p, err := range tx.SortedSet("by-size").All(db.Top(2)) {
			if err != nil {
				return err
			}
			fmt.Printf("  %s, %v KiB\n", p.Member, p.Score)
		}
		above, err := tx.SortedSet("by-size").RevRank("libtinfo6")
		if err != nil {
			return err
		}
		fmt.Printf("libtinfo6 is number %d\n", above+1)

		libraries, err := tx.Set("section:libs").Members()
		if err != nil {
			return err
		}
		slices.Sort(libraries)
		for _, name := range libraries {
			by, err := tx.Set("needed-by:" + name).Members()
			if err != nil {
				return err
			}
			slices.Sort(by)
			fmt.Println(name, "is needed by", by)
		}
		first, err := tx.List("loaded").At(0)
		if err != nil {
			return err
		}
		summary, err := tx.String("cache:summary").Get()
		fmt.Printf("%s was loaded first; %s\n", first, summary)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// largest:
	//   libc6, 13001 KiB
	//   bash, 7164 KiB
	// libtinfo6 is number 3
	// libc6 is needed by [bash less libgcc-s1 libtinfo6]
	// libgcc-s1 is needed by [libc6]
	// libtinfo6 is needed by [bash less]
	// bash was loaded first; 5 packages
}
