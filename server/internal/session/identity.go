package session

import (
	"context"
	"errors"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/shared"
)

// Each request is checked when it is dispatched, and again by EXEC. A session whose user may do everything pays one
// comparison and one load for that (isRestricted). Package acl knows the rules; here are the places that ask.

// errNoAuth answers a request that comes before authentication.
const errNoAuth command.Error = "NOAUTH Authentication required."

// identity is who the client of a session is, and what it may do and take before that is known. Only the session's
// driver and its commands use it; others see the user in client.user.
type identity struct {
	server *shared.State
	client *clients.Client
	parser *resp.Parser

	user             *acl.User
	authenticated    bool      // as user, or the default user needs no password
	login            *login    // of the request that EXEC is executing; nil for others
	hasSlot          bool      // it takes one of the places for those that have not authenticated
	outputBeforeAuth int       // bytes
	unknownSince     time.Time // when the session began, or RESET made it forget who it is
}

// isRestricted reports whether there is anything that the session must not do.
func (i *identity) isRestricted() bool { return !i.authenticated || i.user.IsLimited() }

// permit says whether the session may make a request. A client that has not authenticated gets NOAUTH for every command
// that there is, so it learns nothing of users, keys or rules. What it may send all the same (NoAuth) is checked by the
// rules of the default user.
func (i *identity) permit(cmd *command.Command, args [][]byte) error {
	if !i.authenticated && !i.becomeDefault() && cmd.Flags&command.NoAuth == 0 {
		return errNoAuth
	}
	if d := i.user.Rules().Check(cmd, args); d.Verdict != acl.Allowed {
		return &shared.DeniedError{Denial: d}
	}
	return nil
}

// context is where a request is refused, as ACL LOG shows it. q is nil outside of MULTI.
func (q *queue) context() acl.Context {
	if q != nil {
		return acl.InMulti
	}
	return acl.TopLevel
}

// whyDenied are the reasons that EXEC gives.
var whyDenied = map[acl.Verdict]string{
	acl.DeniedCommand: "no permission to execute the command or subcommand",
	acl.DeniedKey:     "no permission to touch the specified keys",
	acl.DeniedChannel: "no permission to access one of the channels used as arguments to the command",
}

// permit checks a request of a transaction when EXEC executes it, because the rules may have changed.
func (m *transaction) permit(r *queued) error {
	s := m.session
	d := s.who.user.Rules().Check(r.command, r.args)
	if d.Verdict == acl.Allowed {
		return nil
	}
	s.server.NoteDenied(&s.client, d, acl.InMulti, s.who.user.Name())
	return command.Errorf("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "+
		"This command is no longer allowed for the following reason: %s", whyDenied[d.Verdict])
}

// mayReadAllKeys is command.Host.MayReadAllKeys.
func (i *identity) mayReadAllKeys(c *command.Call) bool {
	return !i.user.IsLimited() || i.user.Rules().MayReadAllKeys(c.Command, c.Args)
}

// setUser makes the session that of a user. Only the session's own goroutine calls it; others read client.user. The
// parser's limits grow with authentication and never shrink here: what has been read under the larger ones stays.
func (i *identity) setUser(u *acl.User, authenticated bool) {
	i.user = u
	i.client.User.Store(u)
	i.authenticated = authenticated
	if authenticated {
		i.parser.SetLimits(i.server.FullLimits())
		i.releaseSlot()
	}
}

// startUnknown makes a session that of a client about which nothing is known: of the default user, if that needs no
// password. Before a handshake it keeps its slot all the same.
func (i *identity) startUnknown(handshake bool) {
	i.setUser(i.server.Users.Default(), false)
	i.unknownSince = time.Now()
	switch {
	case i.server.Users.Default().Rules().NeedsPassword():
		i.parser.SetLimits(limitsBeforeAuth)
	case handshake:
		i.authenticated = true
	default:
		i.setUser(i.user, true)
	}
}

// forget is RESET: nothing is known of the client any more. One that had authenticated may take its time to do so again, as
// in Redis: pools reset the connections that they keep. For another one the time runs on.
func (i *identity) forget() {
	since := i.unknownSince
	if i.authenticated {
		since = time.Time{}
	}
	i.startUnknown(false)
	i.unknownSince = since
}

// becomeDefault makes a session that has not authenticated that of the default user, if that needs no password by now,
// and reports whether it did.
func (i *identity) becomeDefault() bool {
	if i.server.Users.Default().Rules().NeedsPassword() {
		return false
	}
	i.setUser(i.server.Users.Default(), true)
	return true
}

// login is what came of a name and a password.
type login struct {
	user *acl.User
	err  error
}

// verify verifies a password. It may take long.
func (i *identity) verify(ctx context.Context, name, password string) *login {
	u, err := i.server.Users.Authenticate(ctx, name, password, i.client.Remote)
	return &login{u, err}
}

// verify verifies the passwords among the requests of a transaction before EXEC locks keys.
func (m *transaction) verify(q *queue) {
	s := m.session
	for r := range q.requests.All() {
		if !dispatch.VerifiesPassword(r.command, r.args) {
			continue
		}
		c := &command.Call{Host: &s.host, Command: r.command, Args: r.args}
		if name, password, ok := credentials(c); ok {
			r.login = s.who.verify(c.Host.Context, name, password)
		}
	}
}

// authenticate makes the session that of a user, if the password is right. verb is the command that asks, for ACL LOG.
// It may take long: the event loop does not execute it.
func (s *Session) authenticate(ctx context.Context, verb, name, password string) error {
	login := s.who.login
	if login == nil {
		login = s.who.verify(ctx, name, password)
	}
	u, err := login.user, login.err
	switch {
	case errors.Is(err, acl.ErrWrongPassword):
		s.server.NoteDenied(&s.client, acl.Denial{Verdict: acl.DeniedAuth, Object: verb}, s.multi.queue.context(), name)
		return command.Error("WRONGPASS invalid username-password pair or user is disabled.")
	case err != nil:
		return command.Errorf("ERR %v", err)
	}
	s.who.setUser(u, true)
	return nil
}

// What a client may do and take before it has authenticated. The inline commands are those of health checks; no request
// of a browser begins with one of them.
var limitsBeforeAuth = resp.Limits{Args: 8, Bulk: 1 << 10, Command: 8 << 10, Inline: 1 << 10, Inlines: "AUTH HELLO PING QUIT "}

// maxOutputBeforeAuth is how many bytes of replies a client gets before it has authenticated; then the connection is closed.
const maxOutputBeforeAuth = 4 << 10

// takesTooMuch reports whether a session that has not authenticated ends, because it makes the server reply much. bytes
// is how long the output was after a request, less how long it was before.
func (i *identity) takesTooMuch(bytes int) bool {
	i.outputBeforeAuth += max(0, bytes)
	return i.outputBeforeAuth > maxOutputBeforeAuth
}

// releaseSlot gives the session's place back, if it has one.
func (i *identity) releaseSlot() {
	if i.hasSlot {
		i.hasSlot = false
		i.server.Unauthenticated.Add(-1)
	}
}

// authenticateBy is when the connection is closed unless it has authenticated; zero for never.
func (i *identity) authenticateBy() time.Time {
	if i.authenticated || i.unknownSince.IsZero() || !i.server.Users.Default().Rules().NeedsPassword() {
		return time.Time{}
	}
	return i.unknownSince.Add(i.server.TimeToAuth)
}
