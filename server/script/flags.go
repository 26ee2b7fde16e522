package script

import (
	"slices"
	"strings"
)

// The first line of a script may begin with "#!lua" and name flags, such as no-writes.

// Flags are what the first line of a script says about it.
type Flags uint8

// The flags, by their names in "#!lua flags=...".
const (
	NoWrites           Flags = 1 << iota // no-writes: the script calls no command that writes
	AllowOOM                             // allow-oom: it may run when memory is short
	AllowStale                           // allow-stale: it may run on a stale replica
	NoCluster                            // no-cluster: it does not run in a cluster
	AllowCrossSlotKeys                   // allow-cross-slot-keys: its keys may be in several slots of a cluster
	flagsEnd
)

var flagNames = []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// ParseFlag returns the flag of a name.
func ParseFlag(name string) (Flags, bool) {
	i := slices.Index(flagNames, name)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// Names are the names of the flags.
func (f Flags) Names() (names []string) {
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Shebang is the first line of a script, if it begins with "#!".
type Shebang struct {
	Engine string
	Fields []string // name=value
	Length int      // of the line, without its end; 0 if there is none
}

// ErrShebang is returned for a first line without an end.
const ErrShebang Error = "Invalid script shebang"

// ParseShebang reads the first line.
func ParseShebang(source string) (b Shebang, err error) {
	if !strings.HasPrefix(source, "#!") {
		return b, nil
	}
	line, _, ended := strings.Cut(source, "\n")
	if !ended {
		return b, ErrShebang
	}
	fields := strings.Fields(line)
	b.Engine, b.Fields, b.Length = strings.TrimPrefix(fields[0], "#!"), fields[1:], len(line)
	return b, nil
}
