package server

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/server/internal/certificates"
)

// ReloadTLS makes Reload read the files of t again, and say in the log what has come of it. /metrics has the end of the
// certificate. It is called before the server serves.
func (v *Server) ReloadTLS(t *TLS) {
	v.secure.Store(t)
	v.state.Settings.OnReload(func() (changed bool, err error) {
		before := t.current.Load()
		if err := t.Reload(); err != nil {
			return false, fmt.Errorf("%w; the certificate of before stays, valid to %s", err, certificates.Leaf(before).NotAfter.UTC().Format(time.RFC3339))
		}
		if now := t.current.Load(); !certificates.Same(before, now) {
			changed = true
			leaf := certificates.Leaf(now)
			v.options.Logger.Info("certificate reloaded", "file", t.options.CertFile, "name", certificates.Name(leaf), "valid to", leaf.NotAfter.UTC())
		}
		return changed, nil
	})
}
