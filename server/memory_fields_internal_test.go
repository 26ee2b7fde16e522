package server

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/transport"
)

// outliving says of each field that can hold a text, in any type that a server or a session reaches, why no client can
// make it hold much that nothing counts. A field that is missing here fails TestWhatOutlivesACommand. The classes:
//
//	held      Session.Held counts it, or a figure of its holder does: the table of tracked keys, the cache of scripts
//	bounded   a constant bounds the length of its texts, and their number
//	brief     it is empty, or holds no text, once the command has ended
//	shared    the same text as that of a field that is held or bounded
//	operator  only an operator can change it, or it is data: settings, users, libraries of functions
//	ours      no client's text: a table, a function of our own, an address, the store
//
// Nothing below what is the operator's, ours or brief is looked at. That what is held counts, and what is brief is empty,
// TestNoTextIsKeptUncounted and TestWaysToKeepMuch measure.
const outliving = `
scripting.Session      operator pending
scripting.Session      ours     Host Lent
scripting.execution       brief    keys declared inner shortage
scripting.execution       shared   program function
scripting.execution       ours     tx host
server.Server          ours     bound address serving refused
shared.State           ours     Store RunID Table Options Server Gate Member
server.Server          operator options
shared.State           operator Users Settings
replication.Feeders       ours     snapshots Gate
replication.commits       ours     gate
replication.sharedSnapshot ours     cancel opened store err
replication.sharedSnapshot shared   waiting
replication.cutPoint       ours     id
shared.Following          operator configured
shared.Following          ours     changed idle
shared.Failover           ours     requested
shared.Master             operator Host
shared.LinkStatus         bounded  State ReplID Err
server.whileServing       ours     stop
group.Member              bounded  ID
replication.Membership    bounded  Address
replication.Feeder        bounded  groupAck
member.Options            operator Group
member.Options            ours     Records Refused Clock Boot
group.Options             operator Address Slots
group.Ack                 bounded  Address
member.Member             ours     wake others records
member.identity           ours     boot
group.Noted               operator Group
backoff.Backoff           ours     text
group.Driver              ours     service now asks
group.Hooks               ours     Send Changed Offset Refused
group.Record              ours     Primary InSync Addresses Slots
group.Ping                ours     Known
group.Node                ours     backups do
session.transaction       ours     after
pubsub.Subscriber         ours     Kept
clients.List       held     byID
transport.conn            held     buf
transport.conn            ours     Conn transport shrink
clients.Client          bounded  Name Library Version
clients.Client          ours     Remote Local lastCommand driver
clients.Client          operator User
clients.Client          shared   Wait
clients.Figures         ours     TooMuch
session.Session         brief    call
session.Session         ours     server permitFunc interrupt askRoom stopMatching host
session.unit            brief    keys
session.unit            ours     runInCallTx runCallFunc
session.transaction     held     watch
session.replyRoom       brief    asking
dispatch.Multi          held     Keys
dispatch.Situation      ours     Store Permit NoWrites Known
session.identity        operator user server
session.identity        shared   parser
session.login           ours     err user
session.presence        ours     giveUp abandoned
session.blocked         held     reply args
session.blocked         ours     command late
clients.Wait            held     Waiter
clients.Wait            ours     Ended
server.TLS             ours     current
server.TLSOptions      operator CertFile KeyFile CACertFile AuthClients Protocols
session.Batch           brief    requests args keys
session.Batch           ours     transactFunc
session.queued          held     args
session.queued          ours     command
pubsub.Unsent          brief    list
session.sessionStats    ours     command
shared.notifier        ours     stop
shared.replyBudget     shared   waiting
arena.Args             held     heads bytes
arena.Blocks           held     blocks
resp.Limits            ours     Inlines
resp.Parser            held     buf spans
resp.Parser            shared   args
resp.Parser            ours     err
resp.Writer            held     buf own
resp.parts             held     list
resp.account           ours     budget
resp.Budget            ours     Given Lend
pubsub.Hub             shared   subs patternNames
pubsub.Subscriber      held     names messages
pubsub.Subscriber      ours     Wake Flooded
pubsub.Message         held     Channel Payload Keys
pubsub.Message         shared   Pattern
tracking.Client        held     mode
tracking.Mode          held     Prefixes added
tracking.Table         held     readers
tracking.Table         shared   prefixes
tracking.prefixIndex   shared   byHash ofLen lengths
tracking.followed      shared   prefix clients
tracking.Table         ours     store find stop clients
tracking.readers       held     few many
acl.Log                bounded  entries
acl.Entry              bounded  Object Username Client
acl.Entry              ours     Context
slowlog.Log            bounded  entries
slowlog.Entry          bounded  Args Name
slowlog.Entry          ours     From
latency.Spikes         ours     events
stats.Counters         bounded  errors
stats.Counters         ours     Commands
stats.Attempt          brief    calls
scripting.Shared         ours     Engine
scripting.Run            brief    Call
script.Run             brief    Name Keys Args
script.Run             ours     Host
script.control         ours     reason
script.Program         held     Source SHA Words proto
scripting.Cache          ours     writes
scripting.Cache          held     bySHA bySource evaluated
scripting.Script         held     Program element
scripting.Libraries      ours     store engine logger
scripting.Libraries      operator loaded
scripting.Libraries      bounded  offered
script.Function        bounded  Name Description
script.Library         bounded  Name Source Functions proto
scripting.Runs           shared   runs
scripting.Turns          ours     waiting
replication.Peer         bounded  Address
replication.Stream       ours     id former
replication.Stream       bounded  blocks
replication.Stream       shared   feeders
replication.block        bounded  data
replication.Ask          ours     Remote
replication.Ask          bounded  ReplID
replication.Feeder       ours     mark more over limits out err
replication.Feeders      ours     store stop idle GroupAcked
replication.Feeders      shared   waiters
replication.waiter       ours     is end isOver
`

// TestWhatOutlivesACommand: each field in which a text can stay is listed in outliving, and nothing else is.
func TestWhatOutlivesACommand(t *testing.T) {
	class := map[string]string{}
	for line := range strings.Lines(outliving) {
		if words := strings.Fields(line); len(words) > 2 {
			for _, field := range words[2:] {
				class[words[0]+"."+field] = words[1]
			}
		}
	}
	unused := maps.Clone(class)
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for _, part := range partsOf(typ) {
			walk(part)
		}
		if typ.Kind() != reflect.Struct || seen[typ] || !isOurs(typ) {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := nameOf(typ) + "." + f.Name
			delete(unused, name)
			switch c := class[name]; {
			case c == "ours" || c == "operator" || c == "brief":
				continue
			case c == "" && holdsText(f.Type):
				t.Errorf("%s (%v) is not in the list of what outlives a command", name, f.Type)
			case !slices.Contains([]string{"", "held", "bounded", "shared"}, c):
				t.Errorf("%s is of no class: %s", name, c)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[session.Session]())
	walk(reflect.TypeFor[Server]())
	conns, _ := reflect.TypeFor[transport.Connections]().FieldByName("conns")
	walk(conns.Type.Key()) // the connections that goroutines serve
	for name := range unused {
		t.Errorf("%s is in the list of what outlives a command, and nowhere else", name)
	}
}

// nameOf is the name of a type without its parameters.
func nameOf(typ reflect.Type) string {
	name, _, _ := strings.Cut(typ.String(), "[")
	return name
}

// isOurs reports whether a type is of this module, apart from the store, which counts what it holds itself.
func isOurs(typ reflect.Type) bool {
	path, ours := strings.CutPrefix(typ.PkgPath(), "github.com/stavedb/stave/")
	return ours && (strings.HasPrefix(path, "server") || strings.HasPrefix(path, "internal"))
}

// partsOf are the types that a value of a type leads to, apart from its fields.
func partsOf(typ reflect.Type) []reflect.Type {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
		return []reflect.Type{typ.Elem()}
	case reflect.Map:
		return []reflect.Type{typ.Key(), typ.Elem()}
	}
	if to, ok := pointedTo(typ); ok {
		return []reflect.Type{to}
	}
	return nil
}

// pointedTo is the T of atomic.Pointer[T].
func pointedTo(typ reflect.Type) (reflect.Type, bool) {
	if load, ok := reflect.PointerTo(typ).MethodByName("Load"); ok && nameOf(typ) == "atomic.Pointer" {
		return load.Type.Out(0).Elem(), true
	}
	return nil, false
}

// holdsText reports whether a field of a type may hold a text, or any number of things, without a type of ours in
// between, whose fields would be listed.
func holdsText(typ reflect.Type) bool {
	switch typ.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		return true
	case reflect.Array:
		return holdsText(typ.Elem())
	case reflect.Pointer:
		return !isOurs(typ.Elem())
	case reflect.Struct:
		to, isPointer := pointedTo(typ)
		return isPointer && !isOurs(to) || nameOf(typ) == "list.List"
	}
	return false
}
