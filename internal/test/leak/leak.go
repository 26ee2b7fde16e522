// Package leak checks, when the tests of a package have ended, for what a store must not leave: goroutines, and open
// descriptors and mappings of its files. It is for TestMain only.
package leak

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// VerifyTestMain runs the tests and ends the process: with an error also if all of them passed and something is left.
func VerifyTestMain(m *testing.M) {
	goleak.VerifyTestMain(patient{m}, goleak.Cleanup(func(code int) {
		left, err := OpenFiles("")
		if code == 0 && (err != nil || len(left) > 0) {
			fmt.Fprintf(os.Stderr, "files of stores are still open: %q %v\n", left, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// patient are tests that end when their goroutines have, or 10 s later: beside load, Linux takes longer to close what watches
// files than goleak waits.
type patient struct{ goleak.TestingM }

func (p patient) Run() int {
	code := p.TestingM.Run()
	for end := time.Now().Add(10 * time.Second); code == 0 && goleak.Find() != nil && time.Now().Before(end); {
	}
	return code
}

// OpenFiles returns what this process has open of the stores below dir, "" standing for anywhere: a name for each
// descriptor, also of their directories, and each mapping, also of files that have been removed. It knows on Linux
// only, and returns nothing elsewhere.
func OpenFiles(dir string) (names []string, err error) {
	const descriptors = "/proc/self/fd"
	links, err := os.ReadDir(descriptors)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		descriptor := filepath.Join(descriptors, link.Name())
		name, err := os.Readlink(descriptor)
		if err != nil {
			continue // The one by which the directory was read is gone.
		}
		if ofStore(dir, name) || strings.HasPrefix(name, dir) && isStore(descriptor) {
			names = append(names, name)
		}
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if _, name, found := strings.Cut(lines.Text(), "/"); found && ofStore(dir, "/"+name) {
			names = append(names, "mapping of /"+name)
		}
	}
	return names, lines.Err()
}

// isStore says whether a descriptor is of a directory in which there is a store, or of one that is gone.
func isStore(descriptor string) bool {
	info, err := os.Stat(descriptor)
	if err != nil || !info.IsDir() {
		return false
	}
	name, _ := os.Readlink(descriptor)
	if strings.HasSuffix(name, " (deleted)") {
		return true
	}
	_, err = os.Lstat(filepath.Join(descriptor, "LOCK"))
	return err == nil
}

// ofStore says whether the kernel's name for a file is that of a store's.
func ofStore(dir, name string) bool {
	name = strings.TrimSuffix(name, " (deleted)")
	if !strings.HasPrefix(name, dir) {
		return false
	}
	switch base := filepath.Base(name); base {
	case "MANIFEST", "LOCK", "TTL", "INDEX":
		return true
	default:
		return strings.HasSuffix(base, ".data") || strings.HasSuffix(base, ".hint")
	}
}
