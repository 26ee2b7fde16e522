package server

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/listeners"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/settings"
)

// Each request is checked when it is dispatched, and again by EXEC. A session whose user may do everything pays one
// comparison and one load for that (isRestricted). Package acl knows the rules; here are the places that ask.

// errNoAuth answers a request that comes before authentication.
const errNoAuth command.Error = "NOAUTH Authentication required."

// deniedError is a request that the session's user may not make.
type deniedError struct{ acl.Denial }

// identity is who the client of a session is, and what it may do and take before that is known. Only the session's
// driver and its commands use it; others see the user in client.user.
type identity struct {
	server *Server
	client *client
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
		return &deniedError{d}
	}
	return nil
}

// verifiesPassword reports whether a request may take the time of a slow hash to verify a password.
func verifiesPassword(cmd *command.Command, args [][]byte) bool {
	return cmd.Name == "auth" || cmd.Name == "hello" && len(args) > 2
}

// stallsExec reports whether a request may take the time of slow hashes, of a sync, or of looking up a host. Within
// MULTI it is refused, which Redis does not do: EXEC would let all others wait for that with keys locked.
func stallsExec(cmd *command.Command, args [][]byte) bool {
	switch cmd.Name {
	case "acl|setuser", "acl|load":
		return true
	case "config|set":
		return slices.ContainsFunc(args[2:], func(arg []byte) bool {
			d := settings.Table[strings.ToLower(string(arg))] // nil for a value, most often
			return d != nil && (d.Name == "requirepass" || changers[d.Name] != nil || listeners.IsSetting(d))
		})
	}
	return false
}

// noteDenied writes a refusal into ACL LOG. username is whom the client claims to be, which for AUTH is not the session's
// user. The log counts equal entries as one, so a client that repeats itself does not push out the others.
func (s *Session) noteDenied(d acl.Denial, in acl.Context, username string) {
	e := acl.Entry{Verdict: d.Verdict, Context: in, Object: d.Object, Username: username, Updated: time.Now()}
	e.Client = s.client.listLine(e.Updated)
	s.server.aclLog.Add(e, int(s.server.tunables.aclLogMaxLen.Load()))
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

// permitQueued checks a request of a transaction when EXEC executes it, because the rules may have changed.
func (s *Session) permitQueued(r *queued) error {
	d := s.who.user.Rules().Check(r.command, r.args)
	if d.Verdict == acl.Allowed {
		return nil
	}
	s.noteDenied(d, acl.InMulti, s.who.user.Name())
	return command.Errorf("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "+
		"This command is no longer allowed for the following reason: %s", whyDenied[d.Verdict])
}

// mayReadAllKeys is command.Host.MayReadAllKeys.
func (i *identity) mayReadAllKeys(c *command.Call) bool {
	return !i.user.IsLimited() || i.user.Rules().MayReadAllKeys(c.Command, c.Args)
}

// aclAdmin is what ACL works with.
func aclAdmin(c *command.Call) acl.Admin {
	s := sessionOf(c)
	v := s.server
	return acl.Admin{Users: v.users, Log: &v.aclLog, File: v.options.ACLFile, Logger: v.options.Logger, User: s.who.user, Apply: s.applyChange}
}

// setUser makes the session that of a user. Only the session's own goroutine calls it; others read client.user. The
// parser's limits grow with authentication and never shrink here: what has been read under the larger ones stays.
func (i *identity) setUser(u *acl.User, authenticated bool) {
	i.user = u
	i.client.user.Store(u)
	i.authenticated = authenticated
	if authenticated {
		i.parser.SetLimits(i.server.fullLimits())
		i.releaseSlot()
	}
}

// startUnknown makes a session that of a client about which nothing is known: of the default user, if that needs no
// password. Before a handshake it keeps its slot all the same.
func (i *identity) startUnknown(handshake bool) {
	i.setUser(i.server.users.Default(), false)
	i.unknownSince = time.Now()
	switch {
	case i.server.users.Default().Rules().NeedsPassword():
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
	if i.server.users.Default().Rules().NeedsPassword() {
		return false
	}
	i.setUser(i.server.users.Default(), true)
	return true
}

// login is what came of a name and a password.
type login struct {
	user *acl.User
	err  error
}

// verify verifies a password. It may take long.
func (i *identity) verify(ctx context.Context, name, password string) *login {
	u, err := i.server.users.Authenticate(ctx, name, password, i.client.remote)
	return &login{u, err}
}

// verifyQueued verifies the passwords among the requests of a transaction before EXEC locks keys.
func (s *Session) verifyQueued(q *queue) {
	for r := range q.requests.All() {
		if !verifiesPassword(r.command, r.args) {
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
		s.noteDenied(acl.Denial{Verdict: acl.DeniedAuth, Object: verb}, s.queue.context(), name)
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

const (
	maxOutputBeforeAuth = 4 << 10 // bytes of replies; then the connection is closed
	defaultTimeToAuth   = 10 * time.Second
	slotsBeforeAuth     = 10 // one of so many connections may be one that has not authenticated
)

// fullLimits are the parser's limits for a client that has authenticated.
func (v *Server) fullLimits() resp.Limits { return resp.Limits{Bulk: v.options.MaxArgument} }

// takesTooMuch reports whether a session that has not authenticated ends, because it makes the server reply much. bytes
// is how long the output was after a request, less how long it was before.
func (i *identity) takesTooMuch(bytes int) bool {
	i.outputBeforeAuth += max(0, bytes)
	return i.outputBeforeAuth > maxOutputBeforeAuth
}

// takePlace counts a connection, whatever listener it came in by, or says why there is no place for it. It cannot take
// more places than there are, however many listeners accept at the same time. A limit that is lowered below the number
// of connections ends none of them.
func (v *Server) takePlace(needsSlot bool) (reason string) {
	for n := v.open.Load(); ; n = v.open.Load() {
		if n >= v.tunables.maxClients.Load() {
			return "max number of clients reached"
		}
		if v.open.CompareAndSwap(n, n+1) {
			break
		}
	}
	if needsSlot && !v.takeSlot() {
		v.open.Add(-1)
		return "max number of clients that have not authenticated reached"
	}
	return ""
}

// takeSlot takes one of the places for clients that have not authenticated, and reports whether there was one.
func (v *Server) takeSlot() bool {
	if v.unauthenticated.Add(1) > max(1, v.tunables.maxClients.Load()/slotsBeforeAuth) {
		v.unauthenticated.Add(-1)
		return false
	}
	return true
}

// releaseSlot gives the session's place back, if it has one.
func (i *identity) releaseSlot() {
	if i.hasSlot {
		i.hasSlot = false
		i.server.unauthenticated.Add(-1)
	}
}

// authenticateBy is when the connection is closed unless it has authenticated; zero for never.
func (i *identity) authenticateBy() time.Time {
	if i.authenticated || i.unknownSince.IsZero() || !i.server.users.Default().Rules().NeedsPassword() {
		return time.Time{}
	}
	return i.unknownSince.Add(i.server.timeToAuth)
}

// dropUser ends the connections of a user that is gone, and reports whether the session's own is one.
func (s *Session) dropUser(u *acl.User) {
	for _, other := range s.server.sessions() {
		if other.client.user.Load() != u {
			continue
		}
		if other == s {
			s.who.setUser(s.server.users.Default(), false)
			s.closed = true // once the reply is sent
		} else if other.client.kill != nil {
			other.client.kill()
		}
	}
	if s.who.user == u { // a session that no transport drives
		s.who.setUser(s.server.users.Default(), false)
		s.closed = true
	}
}

// applyChange ends what a change of rules does not allow any more: the connections of a user that is gone, and those
// that listen to channels which the user has lost, as in Redis.
func (s *Session) applyChange(c acl.Change) {
	if c.After == nil {
		s.dropUser(c.User)
		return
	}
	if c.Before == nil {
		return
	}
	lost := acl.LostChannels(c.Before, c.After)
	if lost == nil {
		return
	}
	for _, other := range s.listening(c.User, lost) {
		if other == s {
			s.closed = true
		} else if other.client.kill != nil {
			other.client.kill()
		}
	}
}

// listening returns the sessions of a user that listen to something of which lost is true. It is asked without a mutex,
// for patterns take time to match; who subscribes meanwhile is checked by the new rules.
func (s *Session) listening(user *acl.User, lost func(name string, isPattern bool) bool) (found []*Session) {
	known := make(map[string]bool)                         // what lost has said, by kind and name
	for _, other := range append(s.server.sessions(), s) { // twice if it is connected, which does no harm
		if other.client.user.Load() != user {
			continue
		}
		for _, kind := range []pubsub.Kind{pubsub.Channel, pubsub.Pattern, pubsub.Shard} {
			isPattern := kind == pubsub.Pattern
			if slices.ContainsFunc(s.server.hub.NamesOf(&other.subscriber, kind), func(name string) bool {
				id := strconv.FormatBool(isPattern) + name
				is, asked := known[id]
				if !asked {
					is = lost(name, isPattern)
					known[id] = is
				}
				return is
			}) {
				found = append(found, other)
				break
			}
		}
	}
	return found
}
