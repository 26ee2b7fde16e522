package dashboard

import (
	"context"
	"net/http"
	"time"
)

// backupStall is how long whoever reads a backup may take none of it: segments that a merge has replaced keep their
// files meanwhile.
var backupStall = 30 * time.Second

// backup sends all of the store as of one moment, a tar archive that "stave restore -" takes, to one reader at a time.
// It is for users who may execute SAVE and read every key. A backup that fails on its way breaks the connection off, so
// that half an archive is no reply.
func (b Backend) backup() http.Handler {
	free := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.mayBackup(r); err != nil {
			fail(w, err)
			return
		}
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
		default:
			http.Error(w, "another backup is being read", http.StatusServiceUnavailable)
			return
		}
		out := &archiveWriter{w: w, control: http.NewResponseController(w)}
		err := out.control.SetReadDeadline(time.Time{}) // that of the request, which would end its context
		if err == nil {
			err = b.BackupTo(r.Context(), out)
		}
		switch {
		case err == nil:
		case out.begun:
			panic(http.ErrAbortHandler) // the only way to say so
		default:
			fail(w, err)
		}
	})
}

// mayBackup syncs the log as the user whom a request names, and checks what else that user may do.
func (b Backend) mayBackup(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	c, err := b.login(ctx, r)
	if err == nil {
		_, err = do(ctx, c, "SAVE")
	}
	if err == nil && !c.MayReadAllKeys("SAVE") {
		err = errNotAllKeys
	}
	return err
}

// archiveWriter is a reply that goes on for as long as somebody reads it.
type archiveWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (a *archiveWriter) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/x-tar")
		a.w.Header().Set("Content-Disposition", `attachment; filename="stave.tar"`)
	}
	if err := a.control.SetWriteDeadline(time.Now().Add(backupStall)); err != nil {
		return 0, err
	}
	return a.w.Write(b)
}
