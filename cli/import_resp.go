package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// Commands as clients send them: the AOF of a Redis, or what redis-cli --pipe takes. A session runs them one at a time. An AOF may begin
// with an RDB file, have lines with times between its commands, and be in several parts that a manifest lists.

// respLimits are those of a file, which is trusted with more than a client: an AOF has whatever a Redis took.
var respLimits = resp.Limits{Args: 1 << 26, Bulk: 512 << 20, Command: 1 << 30, Inline: 64 << 10}

// importCommands runs the commands of rest, which begins at a byte of the file.
func importCommands(ctx context.Context, t *terminal.Streams, store *db.Store, in *source, rest io.Reader, base int64, keepGoing bool) (r importResult, err error) {
	session, err := server.NewSession(store, nil)
	if err != nil {
		return r, failed(exitCommand, err)
	}
	defer session.Close()
	r.unit = "bad command"
	parser, buf := resp.NewParser(respLimits), make([]byte, 256<<10)
	began := base // where the open transaction begins
	for {
		n, readErr := rest.Read(buf)
		parser.Feed(buf[:n])
		r.Bytes += int64(n)
		for {
			args, err := parser.Next()
			at := base + r.Bytes - int64(parser.Buffered())
			if err != nil {
				return r, failed(exitCommand, fmt.Errorf("%s: byte %d: %w; %s run before it", in.name, at, err, humanize.Plural(r.Commands, "command")))
			}
			if args == nil {
				break
			}
			if len(args) == 0 || len(args[0]) > 0 && args[0][0] == '#' { // a time
				continue
			}
			if !session.InTransaction() {
				began = at
			}
			if err := runCommand(session, args); err != nil {
				err = fmt.Errorf("%s: byte %d: %s: %w", in.name, at, clipped(args), err)
				if !keepGoing {
					return r, failed(exitCommand, fmt.Errorf("%w; %s run before it; --keep-going skips such commands", err, humanize.Plural(r.Commands, "command")))
				}
				in.skip(t, &r, err)
				continue
			}
			r.Commands++
		}
		in.bar.Update(base+r.Bytes, base+r.Bytes, r.Commands)
		switch {
		case ctx.Err() != nil:
			in.bar.Clear()
			t.Complain(fmt.Errorf("interrupted at byte %d of %s; %s run before it", base+r.Bytes-int64(parser.Buffered()), in.name, humanize.Plural(r.Commands, "command")))
			return r, ctx.Err()
		case errors.Is(readErr, io.EOF):
			if session.InTransaction() {
				in.cut(t, &r, "between MULTI and EXEC", began)
			} else if parser.Partial() {
				in.cut(t, &r, "in the middle of a command", base+r.Bytes-int64(parser.Buffered()))
			}
			return r, nil
		case readErr != nil:
			return r, failed(exitCommand, fmt.Errorf("%s: %w", in.name, readErr))
		}
	}
}

// runCommand runs one command and returns its error reply, if there is one. An EXEC that contains an error
// reply counts as one that failed.
func runCommand(session *server.Session, args [][]byte) error {
	rest := session.Do(args)
	for len(rest) > 0 {
		var r resp.Reply
		var err error
		if r, rest, err = resp.Decode(rest); err != nil {
			return err
		}
		if err := errors.Join(r.Err(), nestedError(args, r)); err != nil {
			return err
		}
	}
	if session.Closed() {
		return errors.New("the command ended the session")
	}
	return nil
}

// skip counts a bad command, and describes the first of them.
func (in *source) skip(t *terminal.Streams, r *importResult, err error) {
	r.Skipped++
	in.bar.Clear()
	switch {
	case r.Skipped <= maxComplaints:
		t.Complain(err)
	case r.Skipped == maxComplaints+1:
		t.Complain(errors.New("more bad commands follow; they are counted, not named"))
	}
}

// cut says that the end is missing, which is what a crash leaves of an AOF. A Redis starts with such a file too.
func (in *source) cut(t *terminal.Streams, r *importResult, where string, at int64) {
	in.bar.Clear()
	t.Complain(fmt.Errorf("%s: the file ends %s, as after a crash; what is there from byte %d on was not run", in.name, where, at))
	r.Skipped++
}

// clipped is the beginning of a command, for messages.
func clipped(args [][]byte) string {
	text := string(bytes.Join(args[:min(len(args), 2)], []byte(" ")))
	return fmt.Sprintf("%q", text[:min(len(text), 60)])
}

// maxManifest is the length of a manifest in bytes; Redis's own has a line for each part.
const maxManifest = 1 << 20

// manifestParts are the paths of the parts of an AOF, in order: the base, and what came after it. Parts that Redis has replaced and not
// yet removed are left out.
func (in *source) manifestParts(manifest string) (parts []string, err error) {
	text, err := io.ReadAll(io.LimitReader(in.in, maxManifest))
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		part := map[string]string{}
		for j := 0; j+1 < len(words); j += 2 {
			part[words[j]] = words[j+1]
		}
		name := strings.Trim(part["file"], `"`)
		if name == "" || name != filepath.Base(name) || part["type"] == "" {
			return nil, fmt.Errorf("line %d is not one of a manifest: file NAME seq N type T", i+1)
		}
		if part["type"] != "h" {
			parts = append(parts, filepath.Join(filepath.Dir(manifest), name))
		}
	}
	if len(parts) == 0 {
		err = errors.New("the manifest lists no files")
	}
	return parts, err
}

// manifestIn returns the path of the manifest in a directory of an AOF, and any other path as it is.
func manifestIn(path string) string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path
	}
	if found, err := filepath.Glob(filepath.Join(path, "*.manifest")); err == nil && len(found) == 1 {
		return found[0]
	}
	return path
}
