package server_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
)

// The requests of the sweep are made from the syntax of each command, as COMMAND DOCS tells it: one for each argument
// that may come again, which comes very often, and some for each value, which is very long.

// sweepCount is how often an argument comes.
const sweepCount = 100_000

// sweepSizes are how long values are: bytes.
var sweepSizes = []int{1 << 20, 4 << 20, 32 << 20}

// sweepRequest is one of them. Its words are made when they are needed: all of them take gigabytes.
type sweepRequest struct {
	name  string
	words func() []string
	long  bool // the value is of the greatest length
}

// sweepBuilder makes one request. The target is the argument, by its path in the syntax, that is repeated or long.
type sweepBuilder struct {
	command *command.Command
	target  string
	times   int  // how often it comes; 0: once
	apart   bool // each time with another value
	size    int  // bytes of its value; 0: a short one
	words   []string
}

// sweepWords are values that a command takes seriously, by its name and that of the argument.
var sweepWords = map[string]string{
	"acl|setuser rule": "~key$", "acl|setuser username": "sweeper", "acl|deluser username": "sweeper", "acl|dryrun username": "default", "acl|getuser username": "default",
	"acl|dryrun command": "get", "command|docs command-name": "config", "command|info command-name": "get", "latency|histogram command": "ping",
	"command|getkeys command": "mget", "command|getkeysandflags command": "mget", "config|get parameter": "*$", "config|set parameter": "maxmemory", "config|set value": "0",
	"client|kill filter": "ID", "client|list filter": "ID", "function|load function-code": "#!lua name=sweep\nredis.register_function('f', function() return 1 end)", "bitfield encoding": "u8",
	"bitfield_ro encoding": "u8", "bitop operation": "AND", "cluster|addslots slot": "$",
}

// sweepValues are values by the name of the argument.
var sweepValues = map[string]string{
	"script": "return 1", "longitude": "13.5", "latitude": "52.5", "radius": "1", "width": "1", "height": "1", "id": "1-1", "start": "0", "end": "-1", "min": "0", "max": "9", "cursor": "0",
	"group": "group", "consumer": "consumer", "threshold": "1", "timeout": "0.01", "weight": "1", "score": "$", "serialized-value": "x", "host": "127.0.0.1", "protover": "3",
	"password": "x", "milliseconds": "1", "unit": "m", "ttl": "0", "min-idle-time": "0", "start-slot": "1", "end-slot": "2",
}

// sweepKeys are keys that there are, by the group of the command.
var sweepKeys = map[command.Group]string{
	command.GroupHash: "hash", command.GroupList: "list", command.GroupSet: "set", command.GroupSortedSet: "zset", command.GroupStream: "stream", command.GroupGeo: "zset",
	command.GroupHyperLogLog: "hll", command.GroupGeneric: "list",
}

// value is the i-th value of an argument.
func (b *sweepBuilder) value(a *command.Argument, path string, i int) string {
	own, known := sweepWords[b.command.Name+" "+a.Name]
	if !known {
		own, known = sweepValues[a.Name]
	}
	switch {
	case b.target == path && b.size > 0:
		return sweepText(a.Name, b.size)
	case known:
		return strings.ReplaceAll(own, "$", fmt.Sprintf("%07d", i))
	case a.Type == "key" && !b.apart:
		if key := sweepKeys[b.command.Group]; key != "" {
			return key
		}
		return "string"
	case a.Type == "integer" || a.Type == "double" || strings.HasPrefix(a.Name, "num"):
		return "1"
	case a.Type == "unix-time":
		return "4000000000"
	case a.Type == "pattern":
		return fmt.Sprintf("*%07d*", i)
	}
	return fmt.Sprintf("v%07d", i)
}

// sweepText is a long value: of a script one that compilers take long for.
func sweepText(name string, size int) string {
	if name != "script" && name != "function-code" {
		return strings.Repeat("x", size)
	}
	var b strings.Builder
	if name == "function-code" {
		b.WriteString("#!lua name=sweep\n")
	}
	for i := 0; b.Len() < size-20; i++ {
		fmt.Fprintf(&b, "x=%d.5\n", i)
	}
	return b.String()
}

// holds says whether the target is an argument, or within it.
func (b *sweepBuilder) holds(path string) bool {
	return b.target == path || strings.HasPrefix(b.target, path+".")
}

// add adds arguments.
func (b *sweepBuilder) add(list []command.Argument, prefix string, i int) {
	for at := range list {
		a := &list[at]
		path := fmt.Sprintf("%s.%d", prefix, at)
		wanted := b.holds(path) || b.command.Name == "client|tracking" && a.Name == "bcast"
		if a.Optional && !wanted {
			continue
		}
		times := 1
		if b.target == path && b.times > 0 {
			times = b.times
		}
		if strings.HasPrefix(a.Name, "num") && at+1 < len(list) && b.times > 0 && b.target == fmt.Sprintf("%s.%d", prefix, at+1) {
			b.words = append(b.words, slices.DeleteFunc([]string{a.Token}, func(s string) bool { return s == "" })...)
			b.words = append(b.words, fmt.Sprint(b.times))
			continue
		}
		for n := range times {
			if a.Token != "" && (n == 0 || a.MultipleToken || a.Name == "prefix") {
				b.words = append(b.words, a.Token)
			}
			if !b.apart {
				n = 0
			}
			b.one(a, path, max(i, n))
		}
	}
}

// one adds an argument once.
func (b *sweepBuilder) one(a *command.Argument, path string, i int) {
	switch a.Type {
	case "pure-token":
	case "block":
		b.add(a.Choices, path, i)
	case "oneof":
		chosen := 0
		for at := range a.Choices {
			if b.holds(fmt.Sprintf("%s.%d", path, at)) {
				chosen = at
			}
		}
		choice := a.Choices[chosen]
		choice.Optional = false
		if choice.Token != "" {
			b.words = append(b.words, choice.Token)
		}
		b.one(&choice, fmt.Sprintf("%s.%d", path, chosen), i)
	default:
		if a.Type == "string" && (a.Name == "*" || a.Name == "$" || a.Name == "=" || a.Name == "~") {
			b.words = append(b.words, a.Name)
			return
		}
		b.words = append(b.words, b.value(a, path, i))
	}
}

// sweepRequests are the requests of a command.
func sweepRequests(cmd *command.Command) (list []sweepRequest) {
	arguments := cmd.Arguments()
	request := func(name string, b sweepBuilder) {
		words := func() []string {
			b := b // the words are garbage when they have been sent
			b.command, b.words = cmd, strings.Split(cmd.Name, "|")
			b.add(arguments, "", 0)
			return b.words
		}
		list = append(list, sweepRequest{cmd.Name + ": " + name, words, b.size == sweepSizes[len(sweepSizes)-1]})
	}
	var walk func(args []command.Argument, prefix string)
	walk = func(args []command.Argument, prefix string) {
		for at := range args {
			a := &args[at]
			path := fmt.Sprintf("%s.%d", prefix, at)
			if a.Multiple {
				request(a.Name+" often", sweepBuilder{target: path, times: sweepCount})
				request(a.Name+" often, each another", sweepBuilder{target: path, times: sweepCount, apart: true})
			}
			switch a.Type {
			case "oneof", "block":
				walk(a.Choices, path)
			case "pure-token":
			default:
				for _, size := range sweepSizes {
					if size > 1<<20 && (a.Name == "script" || a.Name == "function-code") {
						break // what is longer is refused
					}
					request(fmt.Sprintf("%s of %d bytes", a.Name, size), sweepBuilder{target: path, size: size})
				}
			}
		}
	}
	walk(arguments, "")
	if len(list) == 0 {
		request("as it is", sweepBuilder{})
	}
	return list
}
