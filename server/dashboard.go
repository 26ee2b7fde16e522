package server

import (
	"context"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/internal/dashboard"
)

// maxShownReply is the longest reply to a request of the dashboard, which asks for beginnings only: their elements may be long.
const maxShownReply = 4 << 20

// dashboardClient is a client whose commands come from the dashboard's page.
type dashboardClient struct{ session *Session }

// dashboardBackend is this server as the dashboard sees it.
func (v *Server) dashboardBackend() dashboard.Backend {
	return dashboard.Backend{
		Connect: func(address string) dashboard.Client {
			s := v.NewSession()
			s.client.remote, s.mostReply = address, maxShownReply
			s.startUnknown(false)
			return dashboardClient{s}
		},
		Segments: func() []dashboard.Segment {
			var list []dashboard.Segment
			for _, sg := range v.store.Segments() {
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

// May reports whether the user may execute a command.
func (c dashboardClient) May(args ...string) bool {
	allowed, err := c.session.scriptAllows(argumentsOf(args))
	return allowed && err == nil
}

func argumentsOf(args []string) [][]byte {
	list := make([][]byte, len(args))
	for i, arg := range args {
		list[i] = []byte(arg)
	}
	return list
}
