package server_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// Random arguments made from the usage of a command in the command table: every option that there is, in any order.

// comparable are the commands of the table that a Redis 7.0 has, with the same replies.
var comparable = sync.OnceValue(func() (list []*command.Command) {
	for _, c := range server.Commands {
		if !c.IsOwn() && c.Since < "7.1" && uncompared[c.Name] == "" && len(c.Subcommands) == 0 {
			list = append(list, c)
		}
	}
	return list
})

func init() {
	rare["command"] = func(g *generator) []string {
		if g.chance(4) {
			return pick(g, []string{"getkeys", "mset", "a", "1", "b", "2"}, []string{"getkeys", "get", "a", "b"}, []string{"getkeys"}, []string{"nope"})
		}
		return join("getkeys", g.command())
	}
}

// fromSyntax makes the arguments of a command. Sometimes it breaks a rule of the usage.
func (g *generator) fromSyntax(c *command.Command) (args []string) {
	w := &writer{generator: g, command: c, keys: -1}
	var options [][]string
	for _, a := range c.Arguments() {
		words := w.argument(a)
		if !a.Optional {
			args = append(args, words...)
		} else if len(words) > 0 {
			options = append(options, words)
		}
	}
	if g.chance(2) {
		g.r.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	}
	if len(options) > 0 && g.chance(20) {
		options = append(options, pick(g, options...))
	}
	return join(args, slices.Concat(options...))
}

// writer writes one command.
type writer struct {
	*generator
	command *command.Command
	keys    int // how many keys the number before them has announced; -1: none has
}

func (w *writer) argument(a command.Argument) (args []string) {
	if a.Optional && !w.chance(3) {
		return nil
	}
	n := 1
	switch {
	case a.Multiple && a.Type == "key" && w.keys >= 0:
		n = w.keys
	case a.Multiple:
		n = 1 + w.r.IntN(3)
	}
	for i := range n {
		if a.Token != "" && a.Type != "pure-token" && (i == 0 || a.Token == "GET") {
			args = append(args, w.word(a.Token))
		}
		switch a.Type {
		case "pure-token":
			args = append(args, w.word(a.Token))
		case "oneof":
			args = append(args, w.argument(mandatory(pick(w.generator, a.Choices...)))...)
			if w.chance(40) {
				args = append(args, w.argument(mandatory(pick(w.generator, a.Choices...)))...)
			}
		case "block":
			for _, part := range a.Choices {
				args = append(args, w.argument(part)...)
			}
		default:
			args = append(args, w.value(a))
		}
	}
	return args
}

func mandatory(a command.Argument) command.Argument {
	a.Optional = false
	return a
}

// word writes a token in some case.
func (w *writer) word(token string) string {
	if w.chance(2) {
		return strings.ToLower(token)
	}
	return token
}

// value makes a value by its name and the command it is for.
func (w *writer) value(a command.Argument) string {
	g := w.generator
	bits := w.command.Group == command.GroupBitmap
	switch a.Name {
	case "source", "destination", "storekey", "storedistkey", "sourcekey", "destkey", "newkey":
		return g.key()
	case "numkeys":
		w.keys = 1 + g.r.IntN(3)
		if g.chance(30) {
			return g.count()
		}
		return strconv.Itoa(w.keys)
	case "cursor":
		return "0"
	case "timeout":
		return g.timeout()
	case "seconds", "ttl":
		return g.seconds()
	case "milliseconds":
		return g.milliseconds()
	case "unix-time-seconds":
		return g.unix(1)
	case "unix-time-milliseconds":
		return g.unix(1000)
	case "min", "max", "start", "stop":
		return w.bound()
	case "score", "weight":
		return g.float()
	case "increment", "decrement":
		if strings.HasSuffix(w.command.Name, "float") || w.command.Name == "zincrby" {
			return g.float()
		}
		return g.integer()
	case "longitude":
		return g.degrees(15.08, 180)
	case "latitude":
		return g.degrees(37.5, 85.05112878)
	case "radius", "width", "height":
		return g.length()
	case "encoding":
		return g.bitfieldType()
	case "bit":
		return pick(g, "0", "1")
	case "db", "destination-db", "index1", "index2":
		return g.database()
	case "type":
		return pick(g, "string", "list", "set", "zset", "hash")
	case "serialized-value":
		return g.payload()
	case "count":
		return g.count()
	case "value":
		if w.command.Name == "setbit" {
			return pick(g, "0", "1")
		}
	case "offset":
		if bits {
			return g.bitOffset()
		}
	case "pattern":
		if strings.HasPrefix(w.command.Name, "sort") {
			return g.sortPattern()
		}
		return g.pattern()
	}
	switch a.Type {
	case "key":
		return g.key()
	case "integer", "unix-time":
		return g.integer()
	case "double":
		return g.float()
	}
	return g.element()
}

// bound is an end of a range: of positions, of scores or of names.
func (w *writer) bound() string {
	switch name := w.command.Name; {
	case strings.Contains(name, "lex"):
		return w.lexBound()
	case strings.Contains(name, "score") || name == "zcount":
		return w.scoreBound()
	case name == "zrange" || name == "zrangestore":
		return pick(w.generator, w.integer, w.scoreBound, w.lexBound)()
	}
	return w.integer()
}
