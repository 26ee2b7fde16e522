package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/internal/dashboard"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/socket"
	"github.com/stavedb/stave/server/internal/web"
)

// ErrHTTPExposed is returned by ServeHTTP for a listener that other machines can reach: whoever can connect reads
// the figures.
var ErrHTTPExposed = errors.New("server: refusing to serve /metrics on an address that other machines can reach: it has no authentication; " +
	"bind 127.0.0.1 or ::1, and put a proxy in front")

// ServeHTTP answers GET / (a dashboard), /backup (the store as a tar archive), /metrics (all figures, in the text
// format of Prometheus), /healthz (200 while the process answers) and /readyz (200 while the store takes writes, or
// follows the process that does, 503 otherwise) until ctx ends. It closes ln. Like Serve it refuses an address that
// other machines can reach: only the dashboard and /backup ask for a password, and that in the clear. A request for
// another host name than that of this machine is refused, so that no web page can read the figures through a browser.
// It has a few connections at a time, whose descriptors clients may not take: maxclients is lowered by as many if the
// limit of open files is near.
func (v *Server) ServeHTTP(ctx context.Context, ln net.Listener) error {
	if !socket.IsLocal(ln.Addr()) {
		return errors.Join(fmt.Errorf("http: %s: %w", ln.Addr(), ErrHTTPExposed), ln.Close())
	}
	v.state.Settings.LimitClients()
	e := web.Endpoint{Store: v.state.Store, Metrics: v.Metrics, Dashboard: dashboard.Handler(v.dashboardBackend()), Logger: v.options.Logger}
	return e.Serve(ctx, ln)
}

// maxShownReply is the longest reply to a request of the dashboard, which asks for beginnings only: their elements may
// be long.
const maxShownReply = 4 << 20

// dashboardClient is a client whose commands come from the dashboard's page. Each request of HTTP has one of its own,
// which is in no CLIENT LIST and counts for no limit of clients. What it executes is in no counter, SLOWLOG or LATENCY: the
// page shows what others do. It has the rights of the user whom the request names;
// before it has authenticated, those of the default user, if that needs no password.
type dashboardClient struct {
	session *session.Session
	state   *shared.State
}

// dashboardBackend is this server as the dashboard sees it. Its functions may be called by several requests at a time.
func (v *Server) dashboardBackend() dashboard.Backend {
	return dashboard.Backend{
		BackupTo: func(ctx context.Context, w io.Writer) error {
			_, err := v.state.Store.BackupTo(ctx, w)
			return err
		},
		Connect: func(address string) dashboard.Client {
			s := v.newSession()
			s.ServeDashboard(address, maxShownReply)
			return dashboardClient{s, v.state}
		},
		Segments: func() []dashboard.Segment {
			var list []dashboard.Segment
			for _, sg := range v.state.Store.Segments() {
				list = append(list, dashboard.Segment{Name: sg.File, Bytes: sg.Bytes, Live: sg.LiveBytes, Records: sg.Records, Sealed: sg.Sealed, Merged: sg.Merged, Time: sg.Time})
			}
			return list
		},
	}
}

// Do executes one command as the client that the request is.
func (c dashboardClient) Do(ctx context.Context, args ...string) (resp.Reply, error) {
	r, _, err := resp.Decode(c.session.DoContext(ctx, argumentsOf(args)))
	return r, err
}

// May reports whether the user may execute a command, so that the page does not offer what would be refused. An unknown
// command may not be executed.
func (c dashboardClient) May(args ...string) bool {
	allowed, err := c.state.Allows(c.session.Lend().User, argumentsOf(args))
	return allowed && err == nil
}

// MayReadAllKeys reports whether the user may read any key by a command.
func (c dashboardClient) MayReadAllKeys(args ...string) bool {
	list := argumentsOf(args)
	cmd, err := table.Resolve(list)
	user := c.session.Lend().User
	return err == nil && (!user.IsLimited() || user.Rules().MayReadAllKeys(cmd, list))
}

func argumentsOf(args []string) [][]byte {
	list := make([][]byte, len(args))
	for i, arg := range args {
		list[i] = []byte(arg)
	}
	return list
}
