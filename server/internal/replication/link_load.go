package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/keyimport"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/serverside"
)

// closable is a reader that can be closed: what is read after that is at its end.
type closable struct {
	r      io.Reader
	closed bool
}

func (g *closable) Read(p []byte) (int, error) {
	if g.closed {
		return 0, io.EOF
	}
	return g.r.Read(p)
}

// Load reads the file that a master sends: rest, which Feed has returned, and then r. It returns when the replica has it; then
// the stream begins. What has been read of that is applied.
func (l *Link) Load(rest []byte, r io.Reader) error {
	if l.phase != Loading {
		return errors.New("BUG: replication: a link loads twice")
	}
	first := bytes.NewReader(rest)
	r = io.MultiReader(first, r)
	var after []byte // the file, of what has been read of r
	var err error
	if l.marker != nil {
		after, err = l.loadMarked(r)
	} else {
		err = l.loadCounted(r)
	}
	if err != nil {
		return err
	}
	l.begin()
	for _, in := range [][]byte{after, rest[len(rest)-first.Len():]} {
		if len(in) > 0 {
			if err := l.stream(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadMarked reads a file that ends with a marker. The replica must not have it before that has been seen.
func (l *Link) loadMarked(r io.Reader) (rest []byte, err error) {
	g := &closable{r: r}
	l.at.Database, err = l.replica.Load(g, l.at, func(after io.Reader) error {
		marker := make([]byte, len(l.marker))
		if _, err := io.ReadFull(after, marker); err != nil {
			return fmt.Errorf("reading the end of the master's file: %w", err)
		}
		if !bytes.Equal(marker, l.marker) {
			return errors.New("the master's file does not end with its marker")
		}
		g.closed = true // what has been read beyond it is not much
		rest, err = io.ReadAll(after)
		return err
	})
	return rest, err
}

// loadCounted reads a file of a known length.
func (l *Link) loadCounted(r io.Reader) (err error) {
	l.at.Database, err = l.replica.Load(io.LimitReader(r, l.length), l.at, func(after io.Reader) error {
		n, err := io.Copy(io.Discard, after)
		if err == nil && n > 0 {
			err = fmt.Errorf("the master announced a file that is %d bytes longer than it is", n)
		}
		return err
	})
	return err
}

// LoadFile is Replica.Load for a store: it loads the file that r begins with into the shadows of the store's namespaces, and
// puts these in their place in the commit that notes the position, where the stream goes on. If it fails the store is what it
// was. progress gets the bytes that have been loaded.
func LoadFile(store *db.Store, stream *Stream, r io.Reader, at Origin, ended func(after io.Reader) error, progress func(bytes int64)) (database int, err error) {
	if err := serverside.DB.BeginLoading(store); err != nil {
		return 0, err
	}
	installed := false
	defer func() {
		if !installed {
			err = errors.Join(err, serverside.DB.EndLoading(store))
		}
	}()
	file := rdb.NewFileReader(r)
	libraries := map[string]string{}
	im := keyimport.New(store, keyimport.Options{
		Shadows: true,
		Refused: func(it *keyimport.Item, reason error) error {
			return &RefusedKeyError{Key: string(it.Name), Database: it.Database, Err: reason}
		},
		Failed: func(_ []keyimport.Item, err error) error { return err },
	})
	file.Library = func(text []byte, _ int64) error {
		name := rdb.LibraryName(string(text))
		if name == "" {
			return errors.New("the master has a library of functions without a name")
		}
		libraries[name] = string(text)
		return nil
	}
	file.Aux = func(name, value string) {
		if n, err := strconv.Atoi(value); err == nil && name == streamDatabase && n >= 0 { // as the replicas of a replica are told
			at.Database = n
		}
	}
	err = file.Visit(func(e *rdb.Entry) error {
		progress(file.Offset())
		return im.Add(keyimport.Item{Entry: *e})
	})
	if err == nil {
		err = leftOut(file.LeftOut())
	}
	if err == nil {
		err = im.Flush()
	}
	if err == nil {
		err = ended(file.Rest())
	}
	if err == nil {
		err = stream.Install(at, func() (_ bool, err error) {
			installed, err = Done(store, at, serverside.DB.Install(store, libraries, at))
			return installed, err
		})
	}
	return at.Database, err
}

// RefusedKeyError is a key of the master's file that the store refuses.
type RefusedKeyError struct {
	Key      string
	Database uint64
	Err      error
}

func (e *RefusedKeyError) Error() string {
	return fmt.Sprintf("the master's key %.100q of database %d: %v", e.Key, e.Database, e.Err)
}

func (e *RefusedKeyError) Unwrap() error { return e.Err }

// LogValue is what the log has of it: not the key.
func (e *RefusedKeyError) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("a key of %d bytes in database %d of the master: %v", len(e.Key), e.Database, e.Err))
}

// leftOut refuses a file with keys that a store cannot hold: the replica would not be one.
func leftOut(names map[string]int64) error {
	for name, n := range names {
		if strings.HasPrefix(name, "keys") {
			return fmt.Errorf("the master has %s (%d), which Stave cannot hold", name, n)
		}
	}
	return nil
}
