package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
)

// clientFilter says which connections CLIENT LIST shows and CLIENT KILL ends: those for which each test holds. The words
// are those of Valkey 9.
type clientFilter struct {
	tests  map[string]func(*clients.Client) bool // by their words: one that comes twice holds as it came last
	skipMe bool
}

// is adds a test.
func (f *clientFilter) is(word string, test func(*clients.Client) bool) {
	if f.tests == nil {
		f.tests = make(map[string]func(*clients.Client) bool)
	}
	f.tests[word] = test
}

// matches says whether the filter means a client. It is asked for sessions of other goroutines, and its tests read only
// what is constant or atomic.
func (f *clientFilter) matches(c, me *clients.Client) bool {
	for _, test := range f.tests {
		if !test(c) {
			return false
		}
	}
	return !f.skipMe || c != me
}

// parse reads words and values from argument 2 on.
func (f *clientFilter) parse(c *command.Call, users *acl.Users) error {
	for i := 2; i < len(c.Args); {
		if i+1 == len(c.Args) {
			return command.ErrSyntax
		}
		word := strings.ToLower(c.Key(i))
		name, negated := strings.CutPrefix(word, "not-")
		switch {
		case name == "id":
			ids, err := clientIDs(c, i+1)
			if err != nil {
				return err
			}
			i += len(ids) - 1
			f.is(word, func(c *clients.Client) bool { return isOneOf(ids, c.ID()) != negated })
		case word == "skipme" && c.Args.Is(i+1, "yes"):
			f.skipMe = true
		case word == "skipme" && c.Args.Is(i+1, "no"):
			f.skipMe = false
		default:
			test, err := clientTest(c, name, i+1, users)
			if err != nil {
				return err
			}
			if negated && (name == "maxage" || name == "idle") {
				return command.ErrSyntax
			}
			f.is(word, func(c *clients.Client) bool { return test(c) != negated })
		}
		i += 2
	}
	return nil
}

// isOneOf reports whether sorted ids have one.
func isOneOf(ids []int64, id int64) bool {
	_, found := slices.BinarySearch(ids, id)
	return found
}

// clientIDs reads ids from argument i on, up to a word, and sorts them.
func clientIDs(c *command.Call, i int) (ids []int64, err error) {
	for _, arg := range c.Args[i:] {
		id, ok := number.ParseInt(arg)
		switch {
		case ok && id > 0:
			ids = append(ids, id)
			continue
		case len(ids) > 0 && isFilterWord(string(arg)):
			slices.Sort(ids)
			return ids, nil
		case c.Command.Name == "client|kill":
			return nil, command.Error("ERR client-id should be greater than 0")
		}
		return nil, command.Error("ERR Invalid client ID")
	}
	slices.Sort(ids)
	return ids, nil
}

// filterWords are all words of filters, without NOT-.
var filterWords = []string{"id", "type", "user", "addr", "laddr", "ip", "name", "lib-name", "lib-ver", "capa", "db", "flags", "maxage", "idle", "skipme"}

func isFilterWord(arg string) bool {
	return slices.Contains(filterWords, strings.TrimPrefix(strings.ToLower(arg), "not-"))
}

// clientTest is the test of a word whose value is argument i. A user that does not exist is an error and not a filter that
// matches nobody, as in Redis. An age that is too long for a time.Duration is cut to 272 years, which matches nobody either.
func clientTest(c *command.Call, name string, i int, users *acl.Users) (func(*clients.Client) bool, error) {
	value := c.Key(i)
	switch name {
	case "type":
		kind, known := clientType(value)
		if !known {
			return nil, command.Errorf("ERR Unknown client type '%s'", command.Quoted(c.Arg(i)))
		}
		return func(c *clients.Client) bool { return c.Kind() == kind }, nil
	case "user":
		if users.Get(value) == nil {
			return nil, command.Errorf("ERR No such user '%s'", command.Quoted(c.Arg(i)))
		}
		return func(c *clients.Client) bool { return c.User.Load().Name() == value }, nil
	case "maxage":
		age, err := clientSeconds(c, name, i)
		return func(c *clients.Client) bool { return time.Since(c.Born) >= age }, err
	case "idle":
		idle, err := clientSeconds(c, name, i)
		return func(c *clients.Client) bool { return c.Idle(time.Now()) >= idle }, err
	case "db":
		n, err := c.Args.ParseInt(i)
		if err == nil && (n < 0 || n >= int64(c.Host.Databases)) {
			err = command.ErrDBIndex
		}
		return func(c *clients.Client) bool { return c.Database() == n }, err
	case "flags":
		if strings.Trim(value, "AbBcdeEiIMNOPrRStTuUx") != "" || value == "" {
			return nil, command.Errorf("ERR Unknown flags found in the provided filter: %s", command.Quoted(c.Arg(i)))
		}
		return func(c *clients.Client) bool { return hasFlags(c, value) }, nil
	case "addr":
		return func(c *clients.Client) bool { return c.Remote == value }, nil
	case "laddr":
		return func(c *clients.Client) bool { return c.Local == value }, nil
	case "ip":
		return func(c *clients.Client) bool { return addressOf(c.Remote) == value }, nil
	case "name":
		return func(c *clients.Client) bool { return *c.Name.Load() == value }, nil
	case "lib-name":
		return func(c *clients.Client) bool { return *c.Library.Load() == value }, nil
	case "capa":
		if strings.Trim(value, "r") != "" || value == "" {
			return nil, command.Errorf("ERR Unknown capa found in the provided filter: %s", command.Quoted(c.Arg(i)))
		}
		return func(c *clients.Client) bool { return c.Redirect.Load() }, nil
	case "lib-ver":
		return func(c *clients.Client) bool { return *c.Version.Load() == value }, nil
	}
	return nil, command.ErrSyntax
}

// clientSeconds reads a number of seconds that is greater than 0.
func clientSeconds(c *command.Call, name string, i int) (time.Duration, error) {
	n, ok := number.ParseInt(c.Arg(i))
	switch {
	case !ok:
		return 0, command.Errorf("ERR %s is not an integer or out of range", name)
	case n < 1:
		return 0, command.Errorf("ERR %s should be greater than 0", name)
	}
	return time.Duration(min(n, int64(1<<33))) * time.Second, nil
}

// hasFlags says whether a client has all of some flags.
func hasFlags(c *clients.Client, flags string) bool {
	has := c.Flags()
	return !strings.ContainsFunc(flags, func(flag rune) bool { return !strings.ContainsRune(has, flag) })
}

// addressOf is an address without its port, and without the brackets around one of IPv6.
func addressOf(remote string) string {
	if i := strings.LastIndexByte(remote, ':'); i >= 0 {
		remote = remote[:i]
	}
	return strings.Trim(remote, "[]")
}

// clientTypes are the types of connections. A master is taken and matches nothing.
var clientTypes = []string{"normal", "master", "replica", "pubsub"}

// clientType returns a type as clients have it, and whether it is one of Redis's. slave and primary are other names.
func clientType(text string) (kind string, known bool) {
	switch kind = strings.ToLower(text); kind {
	case "slave":
		kind = "replica"
	case "primary":
		kind = "master"
	}
	return kind, slices.Contains(clientTypes, kind)
}
