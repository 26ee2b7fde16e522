package fileimport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/rdb"
)

// A Format is what a file holds.
type Format string

// The formats of files.
const (
	Lines    Format = "lines" // of JSON, of commands as in the shell, or of a table
	RDB      Format = "rdb"
	Commands Format = "commands" // in RESP
	Manifest Format = "manifest" // of an AOF, which lists the parts
)

// A Source is the file that is imported. It is read once, from its beginning to its end, so it may be a pipe.
type Source struct {
	Name   string
	Format Format
	in     *bufio.Reader
}

// otherFormats are what people try by mistake, by their first bytes, and what to do with it.
var otherFormats = []struct{ magic, text string }{
	{"\x1f\x8b", "it is compressed: gunzip -c FILE | stave import DIR -"},
	{"\x28\xb5\x2f\xfd", "it is compressed: zstd -dc FILE | stave import DIR -"},
	{"BZh", "it is compressed: bunzip2 -c FILE | stave import DIR -"},
	{"\xfd7zXZ\x00", "it is compressed: xz -dc FILE | stave import DIR -"},
	{"PK\x03\x04", "it is a zip archive: unzip -p FILE | stave import DIR -"},
}

// Open recognises the format of a file, whose name is for messages and for the parts that a manifest names. It takes
// nothing from r that Import does not see.
func Open(name string, r io.Reader) (*Source, error) {
	s := &Source{Name: name, in: bufio.NewReaderSize(r, 64<<10)}
	head, err := s.in.Peek(16)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.named(err)
	}
	for _, other := range otherFormats {
		if bytes.HasPrefix(head, []byte(other.magic)) {
			return nil, s.named(errors.New(other.text))
		}
	}
	s.Format = Lines
	switch {
	case rdb.IsFile(head):
		s.Format = RDB
	case bytes.HasPrefix(head, []byte("*")), bytes.HasPrefix(head, []byte("#TS:")):
		s.Format = Commands
	case bytes.HasPrefix(head, []byte("file ")):
		s.Format = Manifest
	}
	return s, nil
}

// named gives an error the name of the file.
func (s *Source) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}

// Import stores what the file holds. However it ends, what comes before the place that an error names is stored, and
// the result says how much it was. It ends with ctx, after a warning that says where. A manifest is for [Source.Parts].
func (s *Source) Import(ctx context.Context, store *db.Store, o Options) (Result, error) {
	switch s.Format {
	case RDB:
		return s.rdb(ctx, store, o)
	case Commands:
		return s.commands(ctx, store, s.in, 0, o)
	}
	return s.lines(ctx, store, o)
}
