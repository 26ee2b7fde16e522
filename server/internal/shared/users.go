package shared

import (
	"slices"
	"strconv"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// loss is what a change of rules does not allow a user any more.
type loss struct {
	change   *acl.Change
	channels func(name string, isPattern bool) bool // nil: the user is gone
	known    map[string]bool                        // what channels has said, by kind and name
}

// EndLost ends what changes of rules, one of each user, do not allow any more: the connections of a user that is gone, and those
// that listen to channels which the user has lost, as in Redis. It returns the change that ends that of self, whose command makes
// the changes, once its reply is sent; nil: none. self is nil for changes that no client makes.
func (v *State) EndLost(changes []acl.Change, self *clients.Client) (endsSelf *acl.Change) {
	lost := map[*acl.User]loss{}
	for i := range changes {
		c := &changes[i]
		if c.After == nil {
			lost[c.User] = loss{change: c}
		} else if c.Before != nil {
			if channels := acl.LostChannels(c.Before, c.After); channels != nil {
				lost[c.User] = loss{c, channels, map[string]bool{}}
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	list := v.Clients.All()
	if self != nil && !slices.Contains(list, self) { // one that no transport drives
		list = append(list, self)
	}
	for _, c := range list {
		l, is := lost[c.User.Load()]
		switch {
		case !is || l.channels != nil && !v.listensTo(c, l.channels, l.known):
		case c == self:
			endsSelf = l.change
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
