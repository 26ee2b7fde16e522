package tracking

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// Mode is what CLIENT TRACKING has chosen for a client. It does not change; another choice makes another.
type Mode struct {
	OptIn, OptOut bool     // reads are tracked if CLIENT CACHING has said so, or unless it has
	Broadcast     bool     // changes of all keys with the prefixes are reported, whatever has been read
	NoLoop        bool     // what the client itself changes is not reported
	Redirect      int64    // the client that gets the messages; 0: the client itself
	Prefixes      []string // sorted

	added []string // of the prefixes, that the mode before did not have
	size  int      // memory that the prefixes take
}

// Size is the memory that the prefixes take.
func (m *Mode) Size() int {
	if m == nil {
		return 0
	}
	return m.size
}

// Tracks reports whether a read is noted, if CLIENT CACHING has been called for it or has not.
func (m *Mode) Tracks(caching bool) bool {
	return !m.Broadcast && !(m.OptIn && !caching || m.OptOut && caching)
}

// Client is one that may track. Its zero value does not; the fields are set before it is used, and do not change.
type Client struct {
	ID   int64
	Mail *pubsub.Subscriber

	mode   atomic.Pointer[Mode] // written with Table.mu held
	broken atomic.Bool
}

// Mode is what the client has chosen; nil: it does not track. Any goroutine may ask.
func (c *Client) Mode() *Mode { return c.mode.Load() }

// Broken reports whether there is no client any more to redirect to.
func (c *Client) Broken() bool { return c.broken.Load() }

// Redirect is the client that gets the messages of this one: 0 if that is itself, -1 if nothing is tracked.
func (c *Client) Redirect() int64 {
	if mode := c.Mode(); mode != nil {
		return mode.Redirect
	}
	return -1
}

// invalidateChannel is the channel from which clients of RESP2 get invalidations.
const invalidateChannel = "__redis__:invalidate"

// Write writes a message of the table. A client of RESP2 cannot be sent what it has not asked for, unless it has
// subscribed to something, and gets the message instead of another client.
func (c *Client) Write(out *resp.Writer, m *pubsub.Message) {
	switch {
	case m.Kind == pubsub.ToOrphan:
		if out.Version() == 3 && c.Redirect() > 0 {
			out.Push(2)
			out.BulkString("tracking-redir-broken")
			out.Int(c.Redirect())
		}
		return
	case out.Version() == 3:
		out.Push(2)
		out.BulkString("invalidate")
	case m.Kind == pubsub.ToRedirected && c.Mail.Listens():
		out.Push(3)
		out.BulkString("message")
		out.BulkString(invalidateChannel)
	default:
		return
	}
	if m.Keys == nil {
		out.Null()
		return
	}
	out.Array(len(m.Keys))
	for _, key := range m.Keys {
		out.BulkString(key)
	}
}

// The refusals of CLIENT TRACKING, in Redis's words.
const (
	errTwoRedirects     command.Error = "ERR A client can only redirect to a single other client"
	errNoRedirect       command.Error = "ERR The client ID you want redirect to does not exist"
	errPrefixNoBcast    command.Error = "ERR PREFIX option requires BCAST mode to be enabled"
	errSwitchBcast      command.Error = "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	errOptBcast         command.Error = "ERR OPTIN and OPTOUT are not compatible with BCAST"
	errOptInAndOut      command.Error = "ERR You can't specify both OPTIN mode and OPTOUT mode"
	errSwitchOpt        command.Error = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	errPrefixOfExisting               = "ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client must not overlap."
	errPrefixOfOther                  = "ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single client must not overlap."
)

// Parse reads the options of CLIENT TRACKING. They are read, and their words checked, also with OFF. exists reports
// whether a client is connected.
func Parse(c *command.Call, exists func(id int64) bool) (*Mode, error) {
	mode := new(Mode)
	for i := 3; i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch {
		case c.Args.Is(i, "redirect") && more:
			i++
			if mode.Redirect != 0 {
				return nil, errTwoRedirects
			}
			id, err := c.Args.ParseInt(i)
			if err != nil {
				return nil, err
			}
			if !exists(id) {
				return nil, errNoRedirect
			}
			mode.Redirect = id
		case c.Args.Is(i, "bcast"):
			mode.Broadcast = true
		case c.Args.Is(i, "optin"):
			mode.OptIn = true
		case c.Args.Is(i, "optout"):
			mode.OptOut = true
		case c.Args.Is(i, "noloop"):
			mode.NoLoop = true
		case c.Args.Is(i, "prefix") && more:
			i++
			mode.Prefixes = append(mode.Prefixes, c.Key(i))
		default:
			return nil, command.ErrSyntax
		}
	}
	return mode, nil
}

// Follow checks the mode, and that it may come after another one; nil: nothing is tracked. In broadcast mode the
// prefixes add up.
func (m *Mode) Follow(before *Mode) error {
	switch {
	case !m.Broadcast && len(m.Prefixes) > 0:
		return errPrefixNoBcast
	case before != nil && before.Broadcast != m.Broadcast:
		return errSwitchBcast
	case m.Broadcast && (m.OptIn || m.OptOut):
		return errOptBcast
	case m.OptIn && m.OptOut:
		return errOptInAndOut
	case before != nil && (m.OptIn && before.OptOut || m.OptOut && before.OptIn):
		return errSwitchOpt
	case !m.Broadcast:
		return nil
	}
	if before == nil {
		before = new(Mode)
	}
	if i := firstOverlapping(m.Prefixes, before.Prefixes); i < len(m.Prefixes) {
		prefix := m.Prefixes[i]
		overlaps := func(other string) bool { return overlap(prefix, other) }
		if j := slices.IndexFunc(before.Prefixes, overlaps); j >= 0 {
			return command.Errorf(errPrefixOfExisting, shown(prefix), shown(before.Prefixes[j]))
		}
		j := slices.IndexFunc(m.Prefixes[i+1:], overlaps)
		return command.Errorf(errPrefixOfOther, shown(prefix), shown(m.Prefixes[i+1+j]))
	}
	if len(m.Prefixes) == 0 {
		m.Prefixes = []string{""}
	}
	m.addTo(before)
	return nil
}

// prefixOverhead is what a prefix takes besides its bytes: here, and in the table that finds who follows it.
const prefixOverhead = 280

// addTo adds the prefixes to those of before, which are sorted. Clients may add hundreds of thousands, one after another:
// those that are there are copied, and not looked at.
func (m *Mode) addTo(before *Mode) {
	fresh, rest := m.Prefixes, before.Prefixes
	slices.Sort(fresh)
	m.Prefixes, m.size = make([]string, 0, len(rest)+len(fresh)), before.size
	for _, prefix := range fresh {
		at, known := slices.BinarySearch(rest, prefix)
		m.Prefixes, rest = append(m.Prefixes, rest[:at]...), rest[at:]
		if !known { // "" may come again
			m.Prefixes, m.added = append(m.Prefixes, prefix), append(m.added, prefix)
			m.size += len(prefix) + prefixOverhead
		}
	}
	m.Prefixes = append(m.Prefixes, rest...)
}

// firstOverlapping returns which of the prefixes is the first that overlaps with another one, or with one of before; their
// number if none does. Clients may send hundreds of thousands: they are sorted instead of compared with each other. Then what
// begins with a prefix comes directly after it.
func firstOverlapping(prefixes, before []string) int {
	order := make([]int, len(prefixes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(prefixes[a], prefixes[b]) })
	first := len(prefixes)
	for shortest, i := 0, 1; i < len(order); i++ { // shortest: where in order the prefix is that others may begin with
		if strings.HasPrefix(prefixes[order[i]], prefixes[order[shortest]]) {
			first = min(first, order[i], order[shortest])
		} else {
			shortest = i
		}
	}
	if i := slices.IndexFunc(prefixes[:first], func(prefix string) bool { return overlapsOne(prefix, before) }); i >= 0 {
		return i
	}
	return first
}

// overlapsOne reports whether a prefix overlaps with one of a sorted list, of which only "" may be the beginning of others.
func overlapsOne(prefix string, list []string) bool {
	at, _ := slices.BinarySearch(list, prefix)
	return at < len(list) && strings.HasPrefix(list[at], prefix) || at > 0 && (strings.HasPrefix(prefix, list[at-1]) || list[0] == "")
}

// overlap reports whether a key can have both prefixes.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// shown is a prefix as an error shows it.
func shown(prefix string) string { return command.Clip([]byte(prefix), len(prefix)) }
