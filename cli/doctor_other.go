//go:build !linux && !darwin

package cli

import "github.com/stavedb/stave/cli/internal/humanize"

// examineLimits knows no limits of this system.
func examineLimits() []diagnosis { return nil }

// examineDisk knows only the size of the store here.
func examineDisk(dir string) []diagnosis {
	return []diagnosis{{"room", stateOK, humanize.Size(bytesIn(dir)) + " in the directory; free space is not known on this system", "keep twice a segment (256 MiB) free"}}
}
