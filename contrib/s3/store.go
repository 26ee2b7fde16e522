// Package s3 is a driver for archives in a bucket of S3, or of any service that speaks its protocol: a [Store] is an
// archive.Store. The program stave-s3 next to it is stave with this driver; a program that embeds a store gives it to
// db.Options.Archive. README.md is for operators.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/stavedb/stave/bitcask/archive"
)

const (
	// partUnit is the size of the first parts of an object that is sent in parts. A smaller object is sent whole.
	partUnit = 16 << 20
	// partsAlike is how many parts in turn have the same size. S3 takes up to 10,000: 880 GB in all.
	partsAlike = 1000

	// patience is how long a request may take, and the next bytes of an object. Parts have time for their bytes besides.
	patience = 2 * time.Minute
	// slowest is how many bytes a second are sent at least, or the request is given up.
	slowest = 100 << 10
	// completing is how long the service may take to make one object of parts. Some copy them.
	completing = time.Hour
	// aborting is how long is tried to remove the parts of an object that is not to be.
	aborting = 5 * time.Second
)

// A Store keeps the objects of archives in a bucket. It implements archive.Store.
type Store struct {
	core     *minio.Core
	creds    *credentials.Credentials
	bucket   string
	prefix   string        // of the names in the bucket; "", or it ends with a slash
	patience time.Duration // of Get and List; tests have less
}

var _ archive.Store = (*Store)(nil)

// Open is the archive at s3://BUCKET or s3://BUCKET/PREFIX. It sends nothing: what is wrong with the bucket or the
// credentials is an error of the methods. The rest comes from where programs of AWS look for it: the service from
// $AWS_ENDPOINT_URL_S3 or $AWS_ENDPOINT_URL (without either it is AWS), the region from $AWS_REGION, credentials from
// $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, from ~/.aws/credentials (with $AWS_PROFILE), or from the role of the machine.
func Open(place string) (*Store, error) {
	u, err := url.Parse(place)
	// What is before an @, and behind ? or #, may be a secret, of which the error of url has a part, too.
	shown, _, _ := strings.Cut(place, "?")
	shown, _, _ = strings.Cut(shown, "#")
	if at := strings.LastIndexByte(shown, '@'); at >= 0 {
		shown = "s3://" + shown[at+1:]
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("archive %s: it is no URL; it has the form s3://BUCKET/PREFIX, without credentials", shown)
	case u.Scheme != "s3" || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("archive %s: it has the form s3://BUCKET/PREFIX", shown)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("archive %s: it has the form s3://BUCKET/PREFIX; credentials come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials", shown)
	case s3utils.CheckValidBucketNameStrict(u.Host) != nil:
		return nil, fmt.Errorf("archive %s: it has no name of a bucket: %w", shown, s3utils.CheckValidBucketNameStrict(u.Host))
	}
	service, err := url.Parse(cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com"))
	if err != nil || service.Host == "" || strings.Trim(service.Path, "/") != "" || service.Scheme != "http" && service.Scheme != "https" {
		return nil, fmt.Errorf("archive %s: $AWS_ENDPOINT_URL has the form https://HOST:PORT", place)
	}
	secure := service.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = 0 // each request has its own time
	creds := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Transport: transport, Timeout: 2 * time.Second}},
	})
	core, err := minio.NewCore(service.Host, &minio.Options{
		Creds: creds, Secure: secure, Transport: transport, MaxRetries: 4,
		Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", place, err)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Store{core: core, creds: creds, bucket: u.Host, prefix: prefix, patience: patience}, nil
}

// String is the URL.
func (s *Store) String() string { return "s3://" + s.bucket + "/" + s.prefix }

// Put sends an object in one request, or a large one in parts. S3 shows either when all of it is there. What a crash leaves
// are parts of no object, which the service removes if the bucket has a rule for that.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) error {
	var buf bytes.Buffer
	last, err := fill(ctx, &buf, r, partSize(1))
	switch {
	case err != nil:
		return err
	case last:
		err = s.putWhole(ctx, s.prefix+name, buf.Bytes())
	default:
		err = s.putParts(ctx, s.prefix+name, &buf, r)
	}
	return s.failed(name, err)
}

// fill reads n bytes, or what there is until the end.
func fill(ctx context.Context, buf *bytes.Buffer, r io.Reader, n int64) (last bool, err error) {
	buf.Reset()
	if _, err = io.CopyN(buf, r, n); err == io.EOF {
		last, err = true, nil
	}
	if err == nil {
		err = ctx.Err()
	}
	return last, err
}

// partSize is the size of part n, counted from 1.
func partSize(n int) int64 { return partUnit * int64(1+(n-1)/partsAlike) }

// within bounds a request that sends so many bytes.
func within(ctx context.Context, bytes int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience+time.Duration(bytes)*time.Second/slowest)
}

// sum is the checksum that the service compares with what it has received. It is in the signature, too.
func sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *Store) putWhole(ctx context.Context, key string, b []byte) error {
	ctx, done := within(ctx, len(b))
	defer done()
	_, err := s.core.PutObject(ctx, s.bucket, key, bytes.NewReader(b), int64(len(b)), "", sum(b), minio.PutObjectOptions{DisableContentSha256: true})
	return err
}

// putParts sends what is in buf, and then the rest of r.
func (s *Store) putParts(ctx context.Context, key string, buf *bytes.Buffer, r io.Reader) (err error) {
	begin, done := within(ctx, 0)
	upload, err := s.core.NewMultipartUpload(begin, s.bucket, key, minio.PutObjectOptions{})
	done()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ctx, done := context.WithTimeout(context.WithoutCancel(ctx), aborting)
			defer done()
			_ = s.core.AbortMultipartUpload(ctx, s.bucket, key, upload) // parts that stay are those of a crash
		}
	}()
	var parts []minio.CompletePart
	for last := false; ; {
		n := len(parts) + 1
		etag, err := s.putPart(ctx, key, upload, n, buf.Bytes())
		if err != nil {
			return err
		}
		parts = append(parts, minio.CompletePart{PartNumber: n, ETag: etag})
		if last {
			break
		}
		if last, err = fill(ctx, buf, r, partSize(n+1)); err != nil {
			return err
		}
		if buf.Len() == 0 {
			break
		}
	}
	ctx, done = context.WithTimeout(ctx, completing)
	defer done()
	_, err = s.core.CompleteMultipartUpload(ctx, s.bucket, key, upload, parts, minio.PutObjectOptions{})
	return err
}

func (s *Store) putPart(ctx context.Context, key, upload string, n int, b []byte) (etag string, err error) {
	ctx, done := within(ctx, len(b))
	defer done()
	part, err := s.core.PutObjectPart(ctx, s.bucket, key, upload, n, bytes.NewReader(b), int64(len(b)), minio.PutObjectPartOptions{Sha256Hex: sum(b), DisableContentSha256: true})
	return part.ETag, err
}

// List lists the objects of the bucket below the prefix of the URL.
func (s *Store) List(ctx context.Context, prefix string) (list []archive.Object, err error) {
	parent := ctx
	ctx, stop := context.WithCancel(ctx) // ends the listing
	defer stop()
	timer := time.AfterFunc(s.patience, stop)
	defer timer.Stop()
	for o := range s.core.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}) {
		if ctx.Err() != nil {
			break
		}
		if o.Err != nil {
			return nil, s.failed("", o.Err)
		}
		timer.Reset(s.patience)
		list = append(list, archive.Object{Name: strings.TrimPrefix(o.Key, s.prefix), Size: o.Size})
	}
	if err := parent.Err(); err != nil { // a listing that is canceled just ends
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, s.failed("", fmt.Errorf("%w for %v", errStalled, s.patience))
	}
	slices.SortFunc(list, func(a, b archive.Object) int { return strings.Compare(a.Name, b.Name) }) // buckets of one zone are not in order
	return list, nil
}

// Delete deletes an object.
func (s *Store) Delete(ctx context.Context, name string) error {
	ctx, done := within(ctx, 0)
	defer done()
	return s.failed(name, s.core.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{}))
}

// failed words an error: with the object, and what to do without credentials. nil stays nil.
func (s *Store) failed(name string, err error) error {
	if err == nil {
		return nil
	}
	response, _ := errors.AsType[minio.ErrorResponse](err)
	switch response.Code {
	case minio.NoSuchKey:
		return &fs.PathError{Op: "get", Path: s.String() + name, Err: fs.ErrNotExist}
	case minio.AccessDenied:
		if used, err := s.creds.GetWithContext(nil); err == nil && used.AccessKeyID == "" {
			return fmt.Errorf("%s%s: no credentials were found, and without any: %w; set $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials", s, name, response)
		}
	}
	return fmt.Errorf("%s%s: %w", s, name, err)
}
