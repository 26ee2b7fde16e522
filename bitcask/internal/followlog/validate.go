package followlog

import (
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Validate finds what applying an entry would find wrong with it.
func Validate(sg *segment.Segment, e *format.Entry) error {
	var f format.Fact
	row := e.Row()
	bad := f.Read(row, e.Elem, e.Inline)
	if row.Home == format.HomeNamespaces && !namespace.Parses(e.Inline) {
		bad = "namespace map"
	}
	if bad != "" {
		return &failure.CorruptError{File: sg.Name, Offset: int64(e.At), Reason: bad}
	}
	return nil
}
