package shared

import (
	"slices"
	"strconv"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// EndLost ends what a change of rules does not allow any more: the connections of a user that is gone, and those that
// listen to channels which the user has lost, as in Redis. It reports whether that of self, whose command makes the
// change, is one: it ends once its reply is sent. self is nil for a change that no client makes.
func (v *State) EndLost(change acl.Change, self *clients.Client) (endsSelf bool) {
	var lost func(name string, isPattern bool) bool // nil: the user is gone
	switch {
	case change.After == nil:
	case change.Before == nil:
		return false
	default:
		if lost = acl.LostChannels(change.Before, change.After); lost == nil {
			return false
		}
	}
	list := v.Clients.All()
	if self != nil && !slices.Contains(list, self) { // one that no transport drives
		list = append(list, self)
	}
	known := make(map[string]bool) // what lost has said, by kind and name
	for _, c := range list {
		switch {
		case c.User.Load() != change.User || lost != nil && !v.listensTo(c, lost, known):
		case c == self:
			endsSelf = true
		default:
			c.Kill()
		}
	}
	return endsSelf
}

// listensTo reports whether a client listens to something of which lost is true. It is asked without a mutex, for patterns
// take time to match; who subscribes meanwhile is checked by the new rules.
func (v *State) listensTo(c *clients.Client, lost func(name string, isPattern bool) bool, known map[string]bool) bool {
	for _, kind := range []pubsub.Kind{pubsub.Channel, pubsub.Pattern, pubsub.Shard} {
		isPattern := kind == pubsub.Pattern
		if slices.ContainsFunc(v.Hub.NamesOf(c.Tracking.Mail, kind), func(name string) bool {
			id := strconv.FormatBool(isPattern) + name
			is, asked := known[id]
			if !asked {
				is = lost(name, isPattern)
				known[id] = is
			}
			return is
		}) {
			return true
		}
	}
	return false
}

// NoteDenied writes a refusal into ACL LOG. username is whom the client claims to be, which for AUTH is not the session's
// user. The log counts equal entries as one, so a client that repeats itself does not push out the others.
func (v *State) NoteDenied(c *clients.Client, d acl.Denial, in acl.Context, username string) {
	e := acl.Entry{Verdict: d.Verdict, Context: in, Object: d.Object, Username: username, Updated: time.Now()}
	e.Client = c.ListLine(e.Updated)
	v.ACLLog.Add(e, int(v.Tunables.ACLLogMaxLen.Load()))
}

// Allows reports whether a user may make a request. It fails for a request that cannot be resolved.
func (v *State) Allows(u *acl.User, args [][]byte) (bool, error) {
	cmd, err := v.Table.Resolve(args)
	if err != nil {
		return false, err
	}
	return u.Rules().Check(cmd, args).Verdict == acl.Allowed, nil
}
