package terminal

import "strings"

// A Format is how replies are written out.
type Format int

const (
	Typed  Format = iota // redis-cli's form for people: (integer) 1, "quoted", 1) 2) 3)
	Raw                  // the bytes alone, one element a line
	JSON                 // JSON, one reply a line
	Pretty               // JSON with a line for each value, indented
	JSONL                // JSON, one element a line
	CSV                  // one element a row (RFC 4180)
	Table                // columns for people, one element a row
)

// formatNames are the names of the formats, as --output and :set take them.
var formatNames = []string{Typed: "typed", Raw: "raw", JSON: "json", Pretty: "pretty", JSONL: "jsonl", CSV: "csv", Table: "table"}

// ParseFormat returns the format of a name.
func ParseFormat(name string) (f Format, ok bool) {
	for i, known := range formatNames {
		if name == known {
			return Format(i), true
		}
	}
	return 0, false
}

// FormatNames lists the names of the formats: typed, raw, ... and table.
func FormatNames() string {
	last := len(formatNames) - 1
	return strings.Join(formatNames[:last], ", ") + " and " + formatNames[last]
}

// DefaultFormat is for people on a terminal and for programs elsewhere. It is decided by the output
// alone: "stave exec ... | less" is for a program as far as one can know.
func DefaultFormat(t *Streams) Format {
	if t.OutTTY {
		return Typed
	}
	return Raw
}
