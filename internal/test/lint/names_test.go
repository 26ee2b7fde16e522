package lint

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// testsOfTheWhole are first words of names of test files that are about a package, not about one of its sources.
var testsOfTheWhole = map[string]string{
	"bench":   "compares parts of the package with each other",
	"budget":  "says how long the long tests of the package take",
	"example": "is what go doc shows",
	"export":  "opens the inside of the package to its tests",
	"fuzz":    "has the fuzz targets",
	"helpers": "is used by the other tests",
	"leak":    "has TestMain",
	"race":    "says whether the race detector is on",
}

// namedBySource are the directories whose tests are found by the source that they are about. What no source alone
// answers for is in a directory of its own, by theme: db/test, bitcask/test.
var namedBySource = []string{"keydir", "bitcask", "structures", "db", "cli"}

// TestTestsAreNamedAfterSources: the name of a test file begins with that of a source in its directory, or with the
// noun that sources there begin with.
func TestTestsAreNamedAfterSources(t *testing.T) {
	nouns := map[string]bool{}
	all := sources(t)
	for _, s := range all {
		if !s.test() {
			nouns[noun(s.name)] = true
		}
	}
	for _, s := range all {
		if !s.test() || !slices.Contains(namedBySource, s.dir) || nouns[noun(s.name)] {
			continue
		}
		if testsOfTheWhole[path.Base(noun(s.name))] == "" {
			t.Errorf("%s is named after no source of %s", s.name, s.dir)
		}
	}
}

// noun is the directory of a source and the first word of its name.
func noun(name string) string {
	word, _, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".go"), "_")
	return path.Join(path.Dir(name), word)
}
