package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/rdb"
)

// What an import takes is recognised by its first bytes, and a file that it does not take is named before any of it is stored.

// The formats of files.
const (
	formatLines    = "lines"
	formatRDB      = "rdb"
	formatRESP     = "resp"
	formatManifest = "manifest"
)

// otherFormats are what people try by mistake, by their first bytes, and what to do with it.
var otherFormats = []struct{ magic, text string }{
	{"\x1f\x8b", "it is compressed: gunzip -c FILE | stave import DIR -"},
	{"\x28\xb5\x2f\xfd", "it is compressed: zstd -dc FILE | stave import DIR -"},
	{"BZh", "it is compressed: bunzip2 -c FILE | stave import DIR -"},
	{"\xfd7zXZ\x00", "it is compressed: xz -dc FILE | stave import DIR -"},
	{"PK\x03\x04", "it is a zip archive: unzip -p FILE | stave import DIR -"},
	{"VALKEY", "it is an RDB file of a version of Valkey that is not known here: save it with Redis 7.4 or Valkey 8, or older"},
}

// recognise sets the format.
func (in *source) recognise() error {
	head, err := in.in.Peek(16)
	if err != nil && !errors.Is(err, io.EOF) {
		return failed(exitCommand, fmt.Errorf("%s: %w", in.name, err))
	}
	for _, other := range otherFormats {
		if bytes.HasPrefix(head, []byte(other.magic)) {
			return failed(exitCommand, fmt.Errorf("%s: %s", in.name, other.text))
		}
	}
	in.format = formatLines
	if digits, ok := bytes.CutPrefix(head, []byte(rdb.Magic)); ok && len(digits) >= 4 && number(digits[:4]) {
		in.format = formatRDB
	}
	switch {
	case bytes.HasPrefix(head, []byte("*")), bytes.HasPrefix(head, []byte("#TS:")):
		in.format = formatRESP
	case bytes.HasPrefix(head, []byte("file ")):
		in.format = formatManifest
	}
	return nil
}

func number(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// librariesText is what a sentence that counts keys goes on with.
func librariesText(n int64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 library"
	}
	return ", " + humanize.Count(n) + " libraries"
}

// reportImport prints the result. Counts that are zero are left out of the sentence; JSON has them all.
func reportImport(t *terminal.Streams, name string, r importResult, asJSON, quiet bool) error {
	if asJSON {
		return json.NewEncoder(t.Out).Encode(r)
	}
	if quiet {
		return nil
	}
	var text strings.Builder
	text.WriteString("imported " + humanize.Plural(r.Keys, "key"))
	text.WriteString(librariesText(r.Libraries))
	if r.Commands > 0 {
		text.WriteString(" and ran " + humanize.Plural(r.Commands, "command"))
	}
	fmt.Fprintf(&text, " from %s (%s) in %s", name, humanize.Size(r.Bytes), humanize.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if r.Expired > 0 {
		fmt.Fprintf(&text, "; %s had expired", humanize.Count(r.Expired))
	}
	if r.Skipped > 0 {
		text.WriteString("; skipped " + humanize.Plural(r.Skipped, r.unit))
	}
	_, err := fmt.Fprintln(t.Out, text.String())
	return err
}
