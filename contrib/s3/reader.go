package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

// maxResumes is how often in turn an object is asked for again that brings no more bytes.
const maxResumes = 5

// errStalled is the error of a service that sends nothing more.
var errStalled = errors.New("the service sends nothing more")

// reader reads an object. Where a connection breaks it asks for the rest: a base may be many gigabytes.
type reader struct {
	ctx  context.Context
	s    *Store
	name string

	body  io.ReadCloser
	stop  context.CancelFunc // of the request of body
	timer *time.Timer        // calls stop if nothing comes

	etag    string
	at      int64 // read so far
	size    int64 // -1: not known
	resumes int   // since the last byte
}

// Get opens an object.
func (s *Store) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r := &reader{ctx: ctx, s: s, name: name}
	if err := r.open(); err != nil {
		return nil, s.failed(name, err)
	}
	return r, nil
}

// open asks for the object, from where the reader is.
func (r *reader) open() error {
	ctx, stop := context.WithCancel(r.ctx)
	timer := time.AfterFunc(r.s.patience, stop)
	var o minio.GetObjectOptions
	if r.at > 0 {
		if err := errors.Join(o.SetRange(r.at, 0), o.SetMatchETag(r.etag)); err != nil {
			stop()
			return err
		}
	}
	body, info, _, err := r.s.core.GetObject(ctx, r.s.bucket, r.s.prefix+r.name, o)
	if stopped := !timer.Stop(); err != nil || stopped {
		stop()
		if body != nil {
			err = errors.Join(err, body.Close())
		}
		return r.why(err)
	}
	if r.at == 0 {
		r.etag, r.size = info.ETag, info.Size
	}
	r.body, r.stop, r.timer = body, stop, timer
	return nil
}

// why is the error of a request: one that the reader has stopped is not one that was canceled.
func (r *reader) why(err error) error {
	if r.ctx.Err() == nil && (err == nil || errors.Is(err, context.Canceled)) {
		return fmt.Errorf("%w for %v", errStalled, r.s.patience)
	}
	return err
}

// Read reads.
func (r *reader) Read(p []byte) (int, error) {
	for {
		r.timer.Reset(r.s.patience)
		n, err := r.body.Read(p)
		r.timer.Stop()
		if r.at += int64(n); n > 0 {
			r.resumes = 0
			return n, nil // an error comes again
		}
		switch {
		case err == nil:
			return 0, nil
		case err == io.EOF && (r.size < 0 || r.at >= r.size) || r.at == r.size:
			return 0, io.EOF
		case r.ctx.Err() != nil:
			return 0, r.ctx.Err()
		case r.resumes == maxResumes:
			return 0, r.s.failed(r.name, r.why(err))
		}
		r.resumes++
		_ = r.Close() // it is broken
		if err := r.open(); err != nil {
			return 0, r.s.failed(r.name, err)
		}
	}
}

// Close ends the request.
func (r *reader) Close() error {
	r.stop()
	return r.body.Close()
}
