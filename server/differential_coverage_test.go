package server_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// uncompared are the commands that random comparison with Redis 7.0 leaves out, and why.
var uncompared = map[string]string{
	"acl|cat":              "TestCategoriesAgreeWithRedis",
	"acl|deluser":          "TestDifferentialACL",
	"acl|dryrun":           "TestDifferentialACL",
	"acl|genpass":          "random",
	"acl|getuser":          "TestDifferentialACL",
	"acl|list":             "the texts of rules are those of Redis 7.2",
	"acl|load":             "TestACLFile",
	"acl|log":              "TestACLLog",
	"acl|save":             "TestACLFile",
	"acl|setuser":          "TestDifferentialACL",
	"acl|users":            "TestAuthentication",
	"acl|whoami":           "TestAuthentication",
	"acl|help":             "every server has its own",
	"client|id":            "numbers of connections differ",
	"client|info":          "addresses, ages and memory differ",
	"client|list":          "addresses, ages and memory differ",
	"client|kill":          "ends the connection: TestClientKill",
	"client|unblock":       "needs a client that waits: TestDifferentialClients",
	"client|help":          "every server has its own",
	"xinfo|help":           "every server has its own",
	"xgroup|help":          "every server has its own",
	"client|setinfo":       "since 7.2",
	"command|count":        "every server has its own",
	"command|info":         "TestTableAgreesWithRedis",
	"command|docs":         "every server has its own",
	"command|list":         "every server has its own",
	"command|help":         "every server has its own",
	"config|get":           "settings differ",
	"config|resetstat":     "replies OK and nothing else",
	"slowlog|get":          "TestOperatorCommandsAgreeWithRedis",
	"slowlog|len":          "TestOperatorCommandsAgreeWithRedis",
	"slowlog|reset":        "TestOperatorCommandsAgreeWithRedis",
	"latency|latest":       "TestOperatorCommandsAgreeWithRedis",
	"latency|history":      "TestOperatorCommandsAgreeWithRedis",
	"latency|reset":        "TestOperatorCommandsAgreeWithRedis",
	"latency|graph":        "TestOperatorCommandsAgreeWithRedis",
	"latency|doctor":       "every server has its own",
	"debug":                "TestOperatorCommandsAgreeWithRedis and TestDebug",
	"role":                 "TestOperatorCommandsAgreeWithRedis",
	"monitor":              "TestOperatorCommandsAgreeWithRedis",
	"lolwut":               "every server has its own",
	"latency|help":         "every server has its own",
	"slowlog|help":         "every server has its own",
	"config|help":          "every server has its own",
	"config|set":           "TestPubSubAgreesWithRedis",
	"config|rewrite":       "TestPubSubAgreesWithRedis",
	"subscribe":            "TestPubSubAgreesWithRedis",
	"psubscribe":           "TestPubSubAgreesWithRedis",
	"ssubscribe":           "TestPubSubAgreesWithRedis",
	"unsubscribe":          "TestPubSubAgreesWithRedis",
	"punsubscribe":         "TestPubSubAgreesWithRedis",
	"sunsubscribe":         "TestPubSubAgreesWithRedis",
	"publish":              "TestPubSubAgreesWithRedis",
	"spublish":             "TestPubSubAgreesWithRedis",
	"pubsub|channels":      "TestPubSubAgreesWithRedis",
	"pubsub|numsub":        "TestPubSubAgreesWithRedis",
	"pubsub|numpat":        "TestPubSubAgreesWithRedis",
	"pubsub|shardchannels": "TestPubSubAgreesWithRedis",
	"pubsub|shardnumsub":   "TestPubSubAgreesWithRedis",
	"pubsub|help":          "every server has its own",
	"object|encoding":      "that of Redis 7.4: TestObject",
	"object|help":          "every server has its own",
	"object|idletime":      "access times are not kept: TestObject",
	"object|freq":          "TestObject",
	"object|refcount":      "Redis shares small integers: TestObject",
	"memory|usage":         "sizes differ: TestMemoryUsage",
	"memory|stats":         "every server has its own",
	"memory|doctor":        "every server has its own",
	"memory|help":          "every server has its own",
	"info":                 "every server has its own",
	"quit":                 "ends the connection",
	"time":                 "clocks differ",

	"command|getkeysandflags": "TestStandInsAgreeWithRedis",
	"client|reply":            "TestStandInsAgreeWithRedis",
	"client|pause":            "TestStandInsAgreeWithRedis",
	"client|unpause":          "TestStandInsAgreeWithRedis",
	"client|no-evict":         "TestStandInsAgreeWithRedis",
	"client|getredir":         "TestTrackingAgreesWithRedis",
	"client|tracking":         "TestTrackingAgreesWithRedis",
	"client|caching":          "TestTrackingAgreesWithRedis",
	"client|trackinginfo":     "TestTrackingAgreesWithRedis",
	"wait":                    "TestStandInsAgreeWithRedis",
	"psync":                   "internal/test/replication",
	"sync":                    "internal/test/replication",
	"replconf":                "internal/test/replication",
	"replicaof":               "TestStandInsAgreeWithRedis",
	"slaveof":                 "TestStandInsAgreeWithRedis",
	"failover":                "TestStandInsAgreeWithRedis",
	"save":                    "TestStandInsAgreeWithRedis",
	"bgsave":                  "TestStandInsAgreeWithRedis",
	"lastsave":                "TestStandInsAgreeWithRedis",
	"bgrewriteaof":            "TestBackgroundMergeOnRequest",
	"shutdown":                "TestShutdownCommand",
	"readonly":                "TestClusterAgreesWithRedis",
	"readwrite":               "TestClusterAgreesWithRedis",
	"asking":                  "TestClusterAgreesWithRedis",
	"memory|purge":            "TestStandInsAgreeWithRedis",
	"memory|malloc-stats":     "every server has its own",
	"module|list":             "TestStandInsAgreeWithRedis",
	"module|load":             "TestStandInsAgreeWithRedis",
	"module|loadex":           "TestStandInsAgreeWithRedis",
	"module|unload":           "TestStandInsAgreeWithRedis",
	"module|help":             "every server has its own",
	"latency|histogram":       "TestLatencyHistogram",
	"eval":                    "TestLuaAgreesWithRedis",
	"eval_ro":                 "TestLuaAgreesWithRedis",
	"evalsha":                 "TestLuaAgreesWithRedis",
	"evalsha_ro":              "TestLuaAgreesWithRedis",
	"script|load":             "TestLuaAgreesWithRedis",
	"script|exists":           "TestLuaAgreesWithRedis",
	"script|flush":            "TestLuaAgreesWithRedis",
	"script|kill":             "TestLuaAgreesWithRedis",
	"script|debug":            "TestLuaAgreesWithRedis",
	"script|help":             "every server has its own",
	"fcall":                   "TestFunctionsAgreeWithRedis",
	"fcall_ro":                "TestFunctionsAgreeWithRedis",
	"function|load":           "TestFunctionsAgreeWithRedis",
	"function|delete":         "TestFunctionsAgreeWithRedis",
	"function|flush":          "TestFunctionsAgreeWithRedis",
	"function|list":           "TestFunctionsAgreeWithRedis",
	"function|dump":           "TestFunctionsAgreeWithRedis",
	"function|restore":        "TestFunctionsAgreeWithRedis",
	"function|stats":          "TestFunctionsAgreeWithRedis",
	"function|kill":           "TestFunctionsAgreeWithRedis",
	"function|help":           "every server has its own",
}

// later are the words of commands that Redis 7.0 does not know with them; each has a test of its own.
var later = map[string][]string{
	"set":   {"IFEQ", "IFNE", "IFDEQ", "IFDNE"},
	"bitop": {"DIFF", "DIFF1", "ANDOR", "ONE"}, "zscan": {"NOSCORES"},
	"zunion": {"COUNT"}, "zinter": {"COUNT"}, "zunionstore": {"COUNT"}, "zinterstore": {"COUNT"},
	"xadd": {"KEEPREF", "DELREF", "ACKED"}, "xtrim": {"KEEPREF", "DELREF", "ACKED"},
}

// count notes the outcome of a command.
func (p *pair) count(args []string, reply resp.Reply) {
	name := strings.ToLower(args[0])
	c := server.Lookup(name)
	if c != nil && len(c.Subcommands) > 0 && len(args) > 1 {
		if sub := server.Lookup(name + "|" + args[1]); sub != nil {
			c = sub
		}
	}
	p.compared++
	if c == nil {
		return
	}
	o := p.outcomes[c.Name]
	if o == nil {
		o = &outcome{}
		p.outcomes[c.Name] = o
	}
	if reply.IsError() {
		o.refused++
	} else {
		o.done++
	}
}

// covered fails the test if a command of the table was not compared often enough, carried out and refused.
func (p *pair) covered() {
	p.t.Helper()
	for _, c := range all() {
		if c.IsOwn() || c.Since >= "7.1" || uncompared[c.Name] != "" || len(c.Subcommands) > 0 || c.Group == command.GroupCluster {
			continue
		}
		o := p.outcomes[c.Name]
		if o == nil {
			o = &outcome{}
		}
		never := slices.Contains(unrefused, c.Name)
		if o.done < 20 || o.refused == 0 && !never {
			p.t.Errorf("%s: compared %d times when carried out, %d when refused", c.Name, o.done, o.refused)
		}
	}
}

// unrefused are the commands that are right whatever comes with them, or nearly so.
var unrefused = []string{"reset", "unwatch", "object|refcount", "touch", "exists", "mget", "client|getname", "client|setname", "multi", "hello", "discard", "randomkey"}

// TestGeneratorKnowsTheTable fails when a command or a word of its usage is never generated and not left out for a
// reason.
func TestGeneratorKnowsTheTable(t *testing.T) {
	g := &generator{r: chance.Rand(t)}
	words := map[string]map[string]bool{}
	for range 60_000 {
		args := g.command()
		name := strings.ToLower(args[0])
		if c := server.Lookup(name); c != nil && len(c.Subcommands) > 0 && len(args) > 1 {
			name += "|" + strings.ToLower(args[1])
		}
		if words[name] == nil {
			words[name] = map[string]bool{}
		}
		for _, arg := range args[1:] {
			if len(arg) <= 32 {
				words[name][strings.ToUpper(arg)] = true
			}
		}
	}
	var check func(name string, list []command.Argument)
	check = func(name string, list []command.Argument) {
		for _, a := range list {
			if a.Token != "" && !words[name][a.Token] && !slices.Contains(later[name], a.Token) {
				t.Errorf("%s: %s is never generated", name, a.Token)
			}
			check(name, a.Choices)
		}
	}
	for _, c := range all() {
		if c.IsOwn() || c.Since >= "7.1" || len(c.Subcommands) > 0 {
			continue // TestLikeRedis74 and the tests of each have those
		}
		reason, left := uncompared[c.Name]
		if c.Container != nil && c.Container.Name == "cluster" {
			continue // TestClusterAgreesWithRedis, and without a cluster TestStandInsAgreeWithRedis
		}
		switch {
		case left && reason == "":
			t.Errorf("%s: left out without a reason", c.Name)
		case !left && words[c.Name] == nil:
			t.Errorf("%s: never generated; add its grammar, or the reason why not to uncompared", c.Name)
		case !left:
			check(c.Name, c.Arguments())
		}
	}
	for name := range uncompared {
		if server.Lookup(name) == nil {
			t.Errorf("%s: left out, but not in the table", name)
		}
	}
}
