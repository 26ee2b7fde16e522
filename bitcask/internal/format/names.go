package format

import (
	"fmt"
	"strconv"
	"strings"
)

// Names of files. Each has one maker and one parser, here.
const (
	DataSuffix = ".data"
	hintSuffix = ".hint"
)

func DataName(id uint32) string { return fmt.Sprintf("%09d%s", id, DataSuffix) }

func HintName(id uint32) string { return fmt.Sprintf("%09d%s", id, hintSuffix) }

// ParseName is the inverse of DataName and HintName.
func ParseName(name string) (id uint32, suffix string, ok bool) {
	for _, suffix := range []string{DataSuffix, hintSuffix} {
		digits, found := strings.CutSuffix(name, suffix)
		if !found || len(digits) < 9 {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || n == 0 || n > MaxSegmentID || fmt.Sprintf("%09d", n) != digits {
			return 0, "", false
		}
		return uint32(n), suffix, true
	}
	return 0, "", false
}

// ManifestName is the file that says which segments make up the store.
const ManifestName = "MANIFEST"

const LockName = "LOCK"
