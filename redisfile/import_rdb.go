package redisfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/keyimport"
	"github.com/stavedb/stave/internal/rdb"
)

// ImportOptions configure an import. The zero value works.
type ImportOptions struct {
	// BadKey is called with each key that the store refuses, or whose value cannot be decoded (the Err is a *FileError),
	// after all keys before it have been stored. If it returns nil, the key is skipped; otherwise the import ends with what
	// it returns. Default: the import ends with the *KeyError, or with the *FileError.
	BadKey func(*KeyError) error
	// Library is called with the text of each library of functions, after all keys before it have been stored. An error
	// means that it is refused, as a key can be. Default: it is stored under the name that its first line states, and
	// is not compiled: a server that opens the store reports what it cannot load.
	Library func(text string) error
	// Warn is called with what is noteworthy and no error, one sentence at a time. Default: nothing.
	Warn func(text string)
	// Progress is called after each key with the bytes read and the keys stored so far. It must be quick. Default:
	// nothing.
	Progress func(bytes, keys int64)
}

// An ImportResult is what an import did.
type ImportResult struct {
	Keys      int64 // stored
	Libraries int64 // of functions, stored
	Expired   int64 // keys whose deadline had passed
	Skipped   int64 // keys and libraries that BadKey let pass
	Bytes     int64 // read
	// LeftOut counts what a store cannot hold, by names such as "keys of the module ReJSON-RL".
	LeftOut map[string]int64
}

// Left lists LeftOut as "keys of the module ReJSON-RL (2)", in order.
func (r ImportResult) Left() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(r.LeftOut)) {
		list = append(list, fmt.Sprintf("%s (%d)", name, r.LeftOut[name]))
	}
	return list
}

// A KeyError is a key that the store refused, or a library of functions.
type KeyError struct {
	Namespace uint64
	Key       string // or the name of the library; "" if it has none
	Library   bool
	Offset    int64 // where it begins in the file
	Err       error
}

func (e *KeyError) Error() string {
	if e.Library {
		return fmt.Sprintf("byte %d, library %q: %v", e.Offset, e.Key, e.Err)
	}
	return fmt.Sprintf("byte %d, db %d, key %q: %v", e.Offset, e.Namespace, e.Key[:min(len(e.Key), 100)], e.Err)
}
func (e *KeyError) Unwrap() error { return e.Err }

// A FileError says where a file is not what it should be.
type FileError = rdb.FileError

// ErrChecksum says that a file was read and stored to its end, and that the checksum there does not fit: any of it may
// be wrong.
var ErrChecksum = rdb.ErrChecksum

// ErrTruncated says that a file ends before its end.
var ErrTruncated = rdb.ErrTruncated

// ImportRDB stores the keys and the libraries of functions of an RDB file. r is read up to the end that the file
// declares, and a little ahead of it.
//
// Whatever the error, every key before the one it names is stored. It is a *KeyError if the store refuses a key; it
// names the byte if the file is not what it should be, and wraps ErrTruncated or ErrChecksum in those cases. An import
// whose context ends stores the keys it has read and returns the context's error. An r that blocks is not interrupted.
func ImportRDB(ctx context.Context, store *db.Store, r io.Reader, o ImportOptions) (ImportResult, error) {
	result, _, err := importRDB(ctx, store, r, o)
	return result, err
}

// ImportPreamble is ImportRDB for a file that goes on after its end, which rest reads.
func ImportPreamble(ctx context.Context, store *db.Store, r io.Reader, o ImportOptions) (result ImportResult, rest io.Reader, err error) {
	return importRDB(ctx, store, r, o)
}

func importRDB(ctx context.Context, store *db.Store, r io.Reader, o ImportOptions) (result ImportResult, rest io.Reader, err error) {
	file := rdb.NewFileReader(r)
	im := keyimport.New(store, o.engine())
	add := func(it keyimport.Item) error {
		err := im.Add(it)
		if o.Progress != nil {
			o.Progress(file.Offset(), im.Result().Keys)
		}
		return err
	}
	file.Library = func(text []byte, offset int64) error {
		it := keyimport.Item{Library: true, Entry: rdb.Entry{Offset: offset, First: true, Last: true}}
		it.Name, it.Value.Elements = []byte(rdb.LibraryName(string(text))), [][]byte{text}
		if len(it.Name) == 0 && o.Library == nil {
			return im.Refuse(it, errLibraryName)
		}
		return add(it)
	}
	if o.BadKey != nil {
		file.Bad = func(e *rdb.Entry, why *rdb.FileError) error { return im.Refuse(keyimport.Item{Entry: *e}, why) }
	}
	var recounted int64
	var odd string // the first of them
	err = file.Visit(func(e *rdb.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Last && e.Value.Stream != nil && e.Value.Stream.Recounted {
			if recounted++; recounted == 1 {
				odd = string(e.Name[:min(len(e.Name), 100)])
			}
		}
		return add(keyimport.Item{Entry: *e})
	})
	if recounted > 0 && o.Warn != nil {
		o.Warn(fmt.Sprintf("streams whose length, last id or number of added entries is not what their entries say, as early releases of Redis 5 wrote them: %d, the first is %q; they were counted anew", recounted, odd))
	}
	if flushErr := im.Flush(); err == nil { // the file may have failed within a value
		err = flushErr
	} else if flushErr != nil {
		err = errors.Join(err, flushErr)
	}
	if newest, later := file.Later(); later && o.Warn != nil {
		o.Warn(fmt.Sprintf("the file has version %d of the format, which is later than %d; all of it was understood up to here", file.Version(), newest))
	}
	sum := im.Result()
	result = ImportResult{Keys: sum.Keys, Libraries: sum.Libraries, Expired: sum.Expired, Skipped: sum.Skipped}
	result.Bytes, result.LeftOut = file.Offset(), maps.Clone(file.LeftOut())
	return result, file.Rest(), err
}

var errLibraryName = errors.New(`the text of a library begins with a line such as "#!lua name=mylib"`)

// engine is what the options ask of the import.
func (o *ImportOptions) engine() keyimport.Options {
	e := keyimport.Options{
		Refused: func(it *keyimport.Item, reason error) error {
			bad := &KeyError{Namespace: it.Database, Key: string(it.Name), Library: it.Library, Offset: it.Offset, Err: reason}
			if o.BadKey == nil {
				return bad
			}
			return o.BadKey(bad)
		},
		Failed: func(items []keyimport.Item, err error) error {
			return fmt.Errorf("byte %d: storing the keys from there on: %w", items[0].Offset, err)
		},
	}
	if o.Library != nil {
		e.Library = func(_, text string) error { return o.Library(text) }
	}
	return e
}
