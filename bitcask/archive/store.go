package archive

import (
	"context"
	"fmt"
	"io"
)

// A Store holds the objects of archives: a directory, a bucket. Objects are written once and never changed. Names are of
// letters, digits, '-', '.' and one '/'. Methods may be called by several goroutines at a time.
type Store interface {
	// Put stores what r has under a name, durably, all of it or nothing. It replaces an object of that name: that is
	// the same one, from a Put whose outcome was not known. If r fails, so does Put, with its error.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get opens an object. The error is an fs.ErrNotExist if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the objects whose names begin with prefix, in order of name.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete deletes an object; one that is not there is fine.
	Delete(ctx context.Context, name string) error
}

// An Object is what List says of one.
type Object struct {
	Name string
	Size int64
}

// guarded is a Store whose panics are errors: the archiver tries again, and the store that it archives goes on.
type guarded struct{ Store }

// recovered makes an error of a panic.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the archive's Store has panicked: %v", p)
	}
}

func (g guarded) Put(ctx context.Context, name string, r io.Reader) (err error) {
	defer recovered(&err)
	return g.Store.Put(ctx, name, r)
}

func (g guarded) Get(ctx context.Context, name string) (r io.ReadCloser, err error) {
	defer recovered(&err)
	return g.Store.Get(ctx, name)
}

func (g guarded) List(ctx context.Context, prefix string) (list []Object, err error) {
	defer recovered(&err)
	return g.Store.List(ctx, prefix)
}

func (g guarded) Delete(ctx context.Context, name string) (err error) {
	defer recovered(&err)
	return g.Store.Delete(ctx, name)
}
