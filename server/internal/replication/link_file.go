package replication

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/keyimport"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/serverside"
)

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
			return fmt.Errorf("the master's key %.100q of database %d: %w", it.Name, it.Database, reason)
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
		err = stream.Install(at, func() error { return serverside.DB.Install(store, libraries, at) })
	}
	installed = err == nil
	return at.Database, err
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
