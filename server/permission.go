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

// isRestricted reports whether there is anything that the session must not do.
func (s *Session) isRestricted() bool { return !s.authenticated || s.user.IsLimited() }

// permit says whether the session may make a request. A client that has not authenticated gets NOAUTH before anything
// about its arguments, so it learns nothing of users, keys or rules. What it may send all the same (NoAuth) is checked
// by the rules of the default user.
func (s *Session) permit(cmd *command.Command, args [][]byte) error {
	if !s.authenticated && s.mustAuthenticate() && cmd.Flags&command.NoAuth == 0 {
		return errNoAuth
	}
	if d := s.user.Rules().Check(cmd, args); d.Verdict != acl.Allowed {
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
func (s *Session) noteDenied(d acl.Denial, username string) {
	e := acl.Entry{Verdict: d.Verdict, Context: acl.TopLevel, Object: d.Object, Username: username, Updated: time.Now()}
	if s.queue != nil {
		e.Context = acl.InMulti
	}
	e.Client = s.listLine(e.Updated)
	s.server.aclLog.Add(e, int(s.server.tunables.aclLogMaxLen.Load()))
}

// whyDenied are the reasons that EXEC gives.
var whyDenied = map[acl.Verdict]string{
	acl.DeniedCommand: "no permission to execute the command or subcommand",
	acl.DeniedKey:     "no permission to touch the specified keys",
	acl.DeniedChannel: "no permission to access one of the channels used as arguments to the command",
}

// permitQueued checks a request of a transaction when EXEC executes it, because the rules may have changed.
func (s *Session) permitQueued(r *queued) error {
	d := s.user.Rules().Check(r.command, r.args)
	if d.Verdict == acl.Allowed {
		return nil
	}
	e := acl.Entry{Verdict: d.Verdict, Context: acl.InMulti, Object: d.Object, Username: s.user.Name(), Updated: time.Now()}
	e.Client = s.listLine(e.Updated)
	s.server.aclLog.Add(e, int(s.server.tunables.aclLogMaxLen.Load()))
	return command.Errorf("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "+
		"This command is no longer allowed for the following reason: %s", whyDenied[d.Verdict])
}

// mayReadAllKeys is command.Host.MayReadAllKeys.
func (s *Session) mayReadAllKeys(c *command.Call) bool {
	return !s.user.IsLimited() || s.user.Rules().MayReadAllKeys(c.Command, c.Args)
}

// aclAdmin is what ACL works with.
func aclAdmin(c *command.Call) acl.Admin {
	s := sessionOf(c)
	v := s.server
	return acl.Admin{Users: v.users, Log: &v.aclLog, File: v.options.ACLFile, Logger: v.options.Logger, User: s.user, Apply: s.applyChange}
}

// setUser makes the session that of a user. Only the session's own goroutine calls it; others read client.user. The
// parser's limits grow with authentication and never shrink here: what has been read under the larger ones stays.
func (s *Session) setUser(u *acl.User, authenticated bool) {
	s.user = u
	s.client.user.Store(u)
	s.authenticated = authenticated
	if authenticated {
		s.parser.SetLimits(s.server.fullLimits())
		s.releaseSlot()
	}
}

// startUnknown makes a session that of a client about which nothing is known: of the default user, if that needs no
// password. Before a handshake it keeps its slot all the same.
func (s *Session) startUnknown(handshake bool) {
	s.setUser(s.server.users.Default(), false)
	s.unknownSince = time.Now()
	switch {
	case s.server.users.Default().Rules().NeedsPassword():
		s.parser.SetLimits(limitsBeforeAuth)
	case handshake:
		s.authenticated = true
	default:
		s.setUser(s.user, true)
	}
}

// mustAuthenticate says whether the session is still to authenticate. Once the default user needs no password, it need
// not.
func (s *Session) mustAuthenticate() bool {
	if s.server.users.Default().Rules().NeedsPassword() {
		return true
	}
	s.setUser(s.server.users.Default(), true)
	return false
}

// login is what came of a name and a password.
type login struct {
	user *acl.User
	err  error
}

// verify verifies a password. It may take long.
func (s *Session) verify(ctx context.Context, name, password string) *login {
	u, err := s.server.users.Authenticate(ctx, name, password, s.client.remote)
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
			r.login = s.verify(c.Host.Context, name, password)
		}
	}
}

// authenticate makes the session that of a user, if the password is right. verb is the command that asks, for ACL LOG.
// It may take long: the event loop does not execute it.
func (s *Session) authenticate(ctx context.Context, verb, name, password string) error {
	login := s.login
	if login == nil {
		login = s.verify(ctx, name, password)
	}
	u, err := login.user, login.err
	switch {
	case errors.Is(err, acl.ErrWrongPassword):
		s.noteDenied(acl.Denial{Verdict: acl.DeniedAuth, Object: verb}, name)
		return command.Error("WRONGPASS invalid username-password pair or user is disabled.")
	case err != nil:
		return command.Errorf("ERR %v", err)
	}
	s.setUser(u, true)
	return nil
}

// What a client may do and take before it has authenticated.
var limitsBeforeAuth = resp.Limits{Args: 8, Bulk: 1 << 10, Command: 8 << 10, Inline: 1 << 10, NoInline: true}

const (
	outputBeforeAuth  = 4 << 10 // bytes of replies; then the connection is closed
	defaultTimeToAuth = 10 * time.Second
	slotsBeforeAuth   = 10 // one of so many connections may be one that has not authenticated
)

// fullLimits are the parser's limits for a client that has authenticated.
func (v *Server) fullLimits() resp.Limits { return resp.Limits{Bulk: v.options.MaxArgument} }

// countUnauthenticated ends a session that makes the server reply much before it authenticates. before is how long the
// output was before a request.
func (s *Session) countUnauthenticated(before int) {
	if s.outputBeforeAuth += max(0, s.out.Len()-before); s.outputBeforeAuth > outputBeforeAuth {
		s.closed = true
	}
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
func (s *Session) releaseSlot() {
	if s.hasSlot {
		s.hasSlot = false
		s.server.unauthenticated.Add(-1)
	}
}

// authenticateBy is when the connection is closed unless it has authenticated; zero for never.
func (s *Session) authenticateBy() time.Time {
	if s.authenticated || !s.server.users.Default().Rules().NeedsPassword() {
		return time.Time{}
	}
	return s.unknownSince.Add(s.server.timeToAuth)
}

// dropUser ends the connections of a user that is gone, and reports whether the session's own is one.
func (s *Session) dropUser(u *acl.User) {
	for _, other := range s.server.sessions() {
		if other.client.user.Load() != u {
			continue
		}
		if other == s {
			s.setUser(s.server.users.Default(), false)
			s.closed = true // once the reply is sent
		} else if other.client.kill != nil {
			other.client.kill()
		}
	}
	if s.user == u { // a session that no transport drives
		s.setUser(s.server.users.Default(), false)
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
