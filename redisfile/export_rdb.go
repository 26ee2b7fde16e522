package redisfile

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/keypages"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/rdbgroup"
)

// The versions of RDB files that are written.
const (
	OldestVersion  = rdb.OldestFile // Redis 5 and later load it
	NewestVersion  = rdb.NewestFile // Redis 7.4 and later load it
	DefaultVersion = OldestVersion
	LibraryVersion = rdb.LibraryVersion // Redis 7.0 and later load it; the first that has libraries of functions
	ValkeyVersion  = rdb.FirstOfValkey  // Valkey 9 and later load it, and no Redis
)

// ExportOptions say what an export writes. The zero value is everything.
type ExportOptions struct {
	// Version is that of the format, OldestVersion to NewestVersion or ValkeyVersion. Default: DefaultVersion, or LibraryVersion if
	// there are libraries of functions to be exported.
	Version int
	// Namespaces are those to be exported, in this order, without libraries of functions, which are in none. Default:
	// all that hold keys, and the libraries.
	Namespaces []int
	// Match is a glob pattern for keys; libraries are not exported then. Default: every key.
	Match string
	// Sort puts the keys of a namespace in order, for which all their names are held in memory. Default: the order of
	// the store's hash, and memory for one page of names.
	Sort bool
	// Progress is called before each key with the bytes and keys written so far. It must be quick. Default: none.
	Progress func(bytes, keys int64)
	// Aux are further records of the file's making, by name, such as repl-stream-db. Default: none.
	Aux map[string]string
}

// An ExportResult is what an export wrote.
type ExportResult struct {
	Keys      int64
	Libraries int64 // of functions
	Bytes     int64
	// FieldDeadlines is how many deadlines of fields were left out, which a version below 12 cannot hold.
	FieldDeadlines int64
	// LibrariesLeftOut is how many libraries of functions were left out, which a version below LibraryVersion cannot
	// hold.
	LibrariesLeftOut int64
	// Broken is db.ErrLibrary with the names of libraries that damage has left incomplete, which are left out; nil if
	// there are none.
	Broken error
}

// ExportRDB writes the keys and the libraries of functions of a store to w as an RDB file. w gets large writes; an
// error of it ends the export. A value is written as it is read, and a string is held whole.
//
// A version below 10 does not have the greatest deleted id of a stream, nor how many entries were ever added: a Redis
// that loads it begins to count anew.
//
// An export whose context ends returns the context's error; what it wrote is no file that a Redis loads.
func ExportRDB(ctx context.Context, store *db.Store, w io.Writer, o ExportOptions) (ExportResult, error) {
	pages := keypages.Options{Namespaces: o.Namespaces, Match: o.Match, Sort: o.Sort}
	libraries, broken := pages.Libraries(store)
	if o.Version == 0 {
		if o.Version = DefaultVersion; len(libraries) > 0 {
			o.Version = LibraryVersion
		}
	}
	if (o.Version < OldestVersion || o.Version > NewestVersion) && o.Version != ValkeyVersion {
		return ExportResult{}, fmt.Errorf("redisfile: version %d of RDB cannot be written, only %d to %d and %d", o.Version, OldestVersion, NewestVersion, ValkeyVersion)
	}
	e := &exporter{file: rdb.NewFileWriter(w, o.Version), o: o}
	e.result.Broken = broken
	e.file.Aux("redis-bits", "64")
	for _, name := range slices.Sorted(maps.Keys(o.Aux)) {
		e.file.Aux(name, o.Aux[name])
	}
	e.libraries(libraries)
	pages.Begin = func(store *db.Store) error {
		e.file.Database(store.Namespace(), store.Len())
		return nil
	}
	err := keypages.Visit(ctx, store, pages, e.key)
	if err == nil {
		err = e.file.End()
	}
	e.result.Bytes = e.file.Written()
	return e.result, err
}

// An exporter writes one file.
type exporter struct {
	o      ExportOptions
	file   *rdb.FileWriter
	value  []byte // scratch
	result ExportResult
}

// libraries writes them, if the version has them.
func (e *exporter) libraries(list []keypages.Library) {
	if e.o.Version < LibraryVersion {
		e.result.LibrariesLeftOut = int64(len(list))
		return
	}
	for _, library := range list {
		e.file.Library(library.Text)
		e.result.Libraries++
	}
}

// key writes one key.
func (e *exporter) key(tx *db.Tx, key keypages.Key) error {
	if e.o.Progress != nil {
		e.o.Progress(e.file.Written(), e.result.Keys)
	}
	e.result.Keys++
	if err := e.content(tx, key.Type, key.Name, key.Deadline); err != nil {
		return err
	}
	return e.file.Err()
}

// content writes the key and its value.
func (e *exporter) content(tx *db.Tx, kind db.Type, key string, deadline int64) (err error) {
	name := []byte(key)
	begin := func(kind rdb.Kind) func(int) {
		return func(n int) { e.file.Begin(name, deadline, kind, n) }
	}
	switch kind {
	case db.TypeString:
		if e.value, err = tx.String(key).AppendTo(e.value[:0]); err != nil {
			return err
		}
		e.file.Begin(name, deadline, rdb.String, 1)
		e.file.Bytes(e.value)
		return nil
	case db.TypeList:
		return tx.List(key).Visit(0, -1, begin(rdb.List), e.file.Bytes)
	case db.TypeSet:
		return tx.Set(key).Visit(begin(rdb.Set), e.file.Bytes)
	case db.TypeSortedSet:
		return tx.SortedSet(key).Visit(db.RankRange{Stop: -1}, begin(rdb.SortedSet), func(member []byte, score float64) bool {
			ok := e.file.Bytes(member)
			e.file.Score(score)
			return ok
		})
	case db.TypeHash:
		return e.hash(tx.Hash(key), name, deadline)
	case db.TypeStream:
		return e.stream(tx.Stream(key), name, deadline)
	}
	return fmt.Errorf("type %s is not one that an RDB file knows", kind)
}

// hash writes a hash, in the form that has room for deadlines of fields if one has one and the version has that form.
func (e *exporter) hash(h db.Hash, name []byte, deadline int64) error {
	timed := false
	start := func(n int, first int64) {
		if timed = first != 0 && e.file.Timed(); timed {
			e.file.BeginTimed(name, deadline, n, first)
		} else {
			e.file.Begin(name, deadline, rdb.Hash, n)
		}
	}
	return h.VisitTimed(start, func(field, value []byte, ms int64) bool {
		if timed {
			return e.file.TimedField(field, value, ms)
		}
		if ms != 0 {
			e.result.FieldDeadlines++
		}
		return e.file.Bytes(field) && e.file.Bytes(value)
	})
}

// stream writes a stream, whose nodes are counted first.
func (e *exporter) stream(s db.Stream, name []byte, deadline int64) error {
	info, err := s.Info()
	if err != nil {
		return err
	}
	var counted, w rdb.StreamWriter
	err = s.Visit(db.StreamID{}, db.MaxStreamID, func(id db.StreamID, fields [][]byte) bool {
		counted.Add(rdb.StreamID(id), fields)
		counted.Take()
		return true
	})
	if err != nil {
		return err
	}
	counted.Flush()
	e.file.BeginStream(name, deadline, counted.Nodes())
	err = s.Visit(db.StreamID{}, db.MaxStreamID, func(id db.StreamID, fields [][]byte) bool {
		w.Add(rdb.StreamID(id), fields)
		return e.file.Nodes(w.Take())
	})
	if err != nil {
		return err
	}
	w.Flush()
	e.file.Nodes(w.Take())
	groups, err := groupStates(s)
	if err != nil {
		return err
	}
	all := rdb.Stream{Last: rdb.StreamID(info.Last), Delete: rdb.StreamID(info.Deleted), Added: info.Added}
	for _, state := range groups {
		all.Groups = append(all.Groups, rdbgroup.Encode(state))
	}
	e.file.EndStream(&w, all)
	return nil
}

// groupStates are the groups of a stream.
func groupStates(s db.Stream) (list []db.StreamGroupState, err error) {
	infos, err := s.Groups()
	for _, info := range infos {
		state, err := s.Group(info.Name).State()
		if err != nil {
			return nil, err
		}
		list = append(list, state)
	}
	return list, err
}
