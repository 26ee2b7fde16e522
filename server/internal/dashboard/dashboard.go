package dashboard

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/internal/redact"
)

// Client executes commands as a client of the server would.
type Client interface {
	// Do executes one command. It may give up when ctx ends.
	Do(ctx context.Context, args ...string) (resp.Reply, error)
	// May reports whether the user may execute a command, without a trace in ACL LOG.
	May(args ...string) bool
	// MayReadAllKeys reports whether the user may execute a command and read any key by it.
	MayReadAllKeys(args ...string) bool
}

// Backend is the server whose page it is.
type Backend struct {
	// Connect returns a new client, which has the rights of one at the address that has not authenticated.
	Connect func(address string) Client
	// Segments lists the files of the log. It is asked for those who may execute INFO.
	Segments func() []Segment
	// BackupTo writes the store as of one moment as a tar archive. It is asked for those who may execute SAVE and read all keys.
	BackupTo func(ctx context.Context, w io.Writer) error
}

// Segment is one file of the log.
type Segment struct {
	Name    string    `json:"name"`
	Bytes   int64     `json:"bytes"`
	Live    int64     `json:"live"` // bytes that a merge would keep, an estimate
	Records uint64    `json:"records"`
	Sealed  bool      `json:"sealed"`
	Merged  bool      `json:"merged"` // written by a merge
	Time    time.Time `json:"time,omitzero"`
}

// requestTime is how long a request may take: a command waits for keys that a long one has locked.
const requestTime = 8 * time.Second

// policy allows the page its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed assets
var assets embed.FS

// Handler serves the page at /, its files, /api, and /backup.
func Handler(b Backend) http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // no such directory: it is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", b.authenticated(func(w http.ResponseWriter, r *http.Request, c Client) error {
		if _, err := do(r.Context(), c, "PING"); err != nil {
			return err
		}
		http.ServeFileFS(w, r, files, "index.html")
		return nil
	}))
	mux.Handle("GET /backup", b.backup())
	mux.Handle("GET /dashboard.css", http.FileServerFS(files))
	mux.Handle("GET /dashboard.js", http.FileServerFS(files))
	mux.Handle("GET /favicon.svg", http.FileServerFS(files))
	for path, answer := range map[string]func(context.Context, Client, *http.Request) (any, error){
		"segments": b.segments, "types": types, "slowlog": slowLog, "clients": clients, "replication": replication, "keys": keys, "key": key,
	} {
		mux.Handle("GET /api/"+path, b.authenticated(func(w http.ResponseWriter, r *http.Request, c Client) error {
			v, err := answer(r.Context(), c, r)
			if err != nil {
				return err
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // whoever asked has gone if it fails
			return nil
		}))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		// Pages of other origins can make a browser ask, with the password that it knows. They could not read the reply; they do not even get one.
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && (strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/backup") {
			http.Error(w, "this is for the page at / only", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// authenticated gives a request a client, with the rights of the user whom the request names; without a name those of the default user.
func (b Backend) authenticated(answer func(http.ResponseWriter, *http.Request, Client) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTime)
		defer cancel()
		c, err := b.login(ctx, r)
		if err == nil {
			err = answer(w, r.WithContext(ctx), c)
		}
		if err != nil {
			fail(w, err)
		}
	})
}

// login returns a client with the rights of the user whom a request names.
func (b Backend) login(ctx context.Context, r *http.Request) (Client, error) {
	c := b.Connect(r.RemoteAddr)
	user, password, given := r.BasicAuth()
	if !given {
		return c, nil
	}
	_, err := do(ctx, c, "AUTH", cmp.Or(user, "default"), password)
	return c, err
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var bad badRequest
	var e resp.ServerError
	switch {
	case errors.As(err, &bad):
		status = http.StatusBadRequest
	case errors.As(err, &e) && (e.Code() == "NOAUTH" || e.Code() == "WRONGPASS"):
		w.Header().Set("WWW-Authenticate", `Basic realm="stave", charset="UTF-8"`)
		status = http.StatusUnauthorized
	case isForbidden(err):
		status = http.StatusForbidden
	case errors.As(err, &e) && strings.Contains(string(e), acl.ErrTooManyFailures.Error()):
		status = http.StatusTooManyRequests
	case errors.As(err, &e):
		status = http.StatusConflict
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": redact.Error(err, "")})
}

// badRequest is what a request lacks.
type badRequest string

func (e badRequest) Error() string { return string(e) }

// do executes a command; an error reply is an error.
func do(ctx context.Context, c Client, args ...string) (resp.Reply, error) {
	r, err := c.Do(ctx, args...)
	if err == nil {
		err = r.Err()
	}
	return r, err
}
