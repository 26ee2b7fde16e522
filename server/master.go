package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"

	"github.com/stavedb/stave/server/internal/certificates"
	"github.com/stavedb/stave/server/internal/transport"
)

// whileServing runs something while the server serves anything.
type whileServing struct {
	mu    sync.Mutex // guards the rest
	users int        // calls of Serve and ServeBound
	stop  func()     // ends it, and waits for it
}

// begin lets it run until end is called, or while somebody else wants it.
func (w *whileServing) begin(run func(ctx context.Context)) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users++; w.users == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { run(ctx) })
		w.stop = func() { cancel(); work.Wait() }
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.users--; w.users == 0 {
			w.stop()
		}
	}
}

// follow is the link to a master.
func (v *Server) follow() (end func()) {
	return v.following.begin(transport.NewMasterLink(v.state, v.newSession, transport.MasterOptions{
		Password: v.setting("masterauth"), User: v.setting("masteruser"),
		Address: v.setting("replica-announce-ip"), ListeningPort: v.announcedPort, TLS: v.masterTLS,
	}).Run)
}

// takePart is the server's part in a group. It goes on until the last reply has left.
func (v *Server) takePart() (end func()) {
	if v.member == nil {
		return func() {}
	}
	return v.takingPart.begin(v.member.Run)
}

// refusal is why the server cannot be a member of its group.
func (v *Server) refusal() error {
	if err := v.refused.Load(); err != nil {
		return fmt.Errorf("server: %w", *err)
	}
	return nil
}

// setting asks for the value of a setting.
func (v *Server) setting(name string) func() string {
	return func() string { return v.options.Config.inner.Get(name) }
}

// announcedPort is the port that the master shows of this server: the one that is set, or that with TLS if the link has it.
func (v *Server) announcedPort() string {
	if port := v.setting("replica-announce-port")(); port != "0" {
		return port
	}
	if v.setting("tls-replication")() == "yes" && v.shownTLSPort() != "0" {
		return v.shownTLSPort()
	}
	_, port := v.listenAddress()
	return port
}

// masterTLS is how the link to the master is encrypted; nil: it is not.
func (v *Server) masterTLS() (*tls.Config, error) {
	if v.setting("tls-replication")() != "yes" {
		return nil, nil
	}
	files := certificates.Files{Certificate: v.setting("tls-cert-file")(), Key: v.setting("tls-key-file")(), CA: v.setting("tls-ca-cert-file")()}
	return certificates.Client(files, v.setting("tls-protocols")())
}
