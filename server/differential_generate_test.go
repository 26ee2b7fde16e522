package server_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// generator makes random commands over few keys, so that they collide.
type generator struct {
	r    *rand.Rand
	wide bool          // large collections instead of small ones that collide
	kind command.Group // of the command that is being made
	next [][]string    // commands that come next
	left int           // commands until EXEC or DISCARD; 0: none is due
}

func pick[T any](g *generator, from ...T) T { return from[g.r.IntN(len(from))] }

// chance is true once in n.
func (g *generator) chance(n int) bool { return g.r.IntN(n) == 0 }

// keyPool are the keys of the test.
var keyPool = []string{"a", "b", "c", "d", "e", "f", "g", "h", "a:b", "", "\x00\r\n\xff", "s:x", "x"}

// favourites are the keys that half of the commands of a group take, so that most of them find the right type.
var favourites = map[command.Group][]string{
	command.GroupString: {"a", "a:b"}, command.GroupBitmap: {"a"}, command.GroupHash: {"b", "\x00\r\n\xff"}, command.GroupList: {"c", "s:x"},
	command.GroupSet: {"d", ""}, command.GroupSortedSet: {"e", "f"}, command.GroupGeo: {"f"}, command.GroupStream: {"x"},
}

func (g *generator) key() string {
	if list := favourites[g.kind]; list != nil && g.chance(2) {
		return pick(g, list...)
	}
	if g.wide {
		return pick(g, keyPool[:6]...)
	}
	return pick(g, keyPool...)
}

func (g *generator) element() string {
	if g.wide && !g.chance(8) {
		return "element:" + strconv.Itoa(g.r.IntN(700))
	}
	switch g.r.IntN(12) {
	case 0:
		return pick(g, "", "\x00", "\r\n", "\xff\xfe", "__len__", "s:x", "a:b", " ")
	case 1:
		return g.integer()
	case 2:
		return strings.Repeat("long", g.r.IntN(60))
	case 3:
		if g.chance(2) {
			return g.float()
		}
	}
	return string(rune('a'+g.r.IntN(8))) + pick(g, "", "", "1", "2")
}

func (g *generator) integer() string {
	if g.chance(8) {
		return pick(g, "9223372036854775807", "-9223372036854775808", "-9223372036854775807", "9223372036854775808", "4611686018427387904",
			"1e3", "01", "-0", "+1", " 1", "1 ", "", "x", "1.5", "0x10", "99999999999999999999999", "2147483648", "-2147483649")
	}
	if g.wide {
		return strconv.Itoa(g.r.IntN(600) - 200)
	}
	return strconv.Itoa(g.r.IntN(24) - 8)
}

func (g *generator) count() string {
	return pick(g, g.integer(), strconv.Itoa(g.r.IntN(6)), strconv.Itoa(g.r.IntN(6)))
}

func (g *generator) float() string {
	switch g.r.IntN(10) {
	case 0:
		return pick(g, "nan", "-nan", "inf", "-inf", "+inf", "Infinity", "-0", "0", "1e400", "-1e400", "1e-400", "1e308", "-1e308", "x", "", " 1",
			"1 ", "0x10", "0x1p3", "1_0", "1e", "1.", ".5", "5e-324", "9007199254740993", "1e17", "1e21", "123456789012345678901234567890", "infx", "--1")
	case 1, 2, 3:
		return strconv.FormatFloat(float64(g.r.IntN(2000)-1000)/pick(g, 1.0, 2, 8, 10, 1000), 'g', -1, 64)
	default:
		return strconv.Itoa(g.r.IntN(12) - 4)
	}
}

func (g *generator) scoreBound() string {
	switch g.r.IntN(6) {
	case 0:
		return pick(g, "-inf", "+inf", "inf", "(-inf", "(+inf", "(", "((1", "[1", "nan", "(nan", "")
	case 1:
		return "(" + g.float()
	default:
		return g.float()
	}
}

func (g *generator) lexBound() string {
	switch g.r.IntN(6) {
	case 0:
		return pick(g, "-", "+", "[", "(", "", "x", "+x")
	case 1:
		return "(" + g.element()
	default:
		return "[" + g.element()
	}
}

func (g *generator) pattern() string {
	return pick(g, "*", "?", "a*", "[a-c]*", "[^a]*", "*:*", "\\a", "", "a?", "*[", "**b**", "[a", "[]a]", "k*")
}

func (g *generator) several(least, most int, one func() string) []string {
	if g.wide && most > 2 {
		most *= 15
	}
	list := make([]string, least+g.r.IntN(most-least+1))
	for i := range list {
		list[i] = one()
	}
	return list
}

func join(parts ...any) []string {
	var args []string
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			args = append(args, part)
		case []string:
			args = append(args, part...)
		}
	}
	return args
}

// maybe is the words once in n, otherwise nothing.
func (g *generator) maybe(n int, words ...string) []string {
	if g.chance(n) {
		return words
	}
	return nil
}

// seconds is a time to live that is either long over or far away when the next command comes.
func (g *generator) seconds() string {
	if g.chance(3) {
		return pick(g, "0", "-1", "-100000", "9223372036854775807", "9223372036854775", "-9223372036854775808", "x", "9223372036854776", "1.5")
	}
	return strconv.Itoa(1000 + g.r.IntN(100000))
}

func (g *generator) milliseconds() string {
	if g.chance(3) {
		return pick(g, "0", "-1", "1", "-100000", "9223372036854775807", "-9223372036854775808", "x", "9223372036854775000")
	}
	return strconv.Itoa(1000000 + g.r.IntN(100000000))
}

// unix is a moment: the past, or the far future.
func (g *generator) unix(scale int) string {
	if g.chance(3) {
		return pick(g, "0", "1", "-1", "x", "9223372036854775807", "1000000000000")
	}
	return strconv.Itoa((4000000000 + g.r.IntN(1000000)) * scale)
}

func (g *generator) keyAnd(args ...any) []string { return join(append([]any{g.key()}, args...)...) }

// commands makes the arguments after the name, for each command of the table that a real server can be compared on.
var commands = map[string]func(g *generator) []string{
	"get":      func(g *generator) []string { return g.keyAnd() },
	"set":      (*generator).set,
	"setnx":    func(g *generator) []string { return g.keyAnd(g.element()) },
	"setex":    func(g *generator) []string { return g.keyAnd(g.seconds(), g.element()) },
	"psetex":   func(g *generator) []string { return g.keyAnd(g.milliseconds(), g.element()) },
	"mget":     func(g *generator) []string { return g.several(1, 5, g.key) },
	"mset":     func(g *generator) []string { return g.pairs(g.key) },
	"msetnx":   func(g *generator) []string { return g.pairs(g.key) },
	"incr":     func(g *generator) []string { return g.keyAnd() },
	"decr":     func(g *generator) []string { return g.keyAnd() },
	"incrby":   func(g *generator) []string { return g.keyAnd(g.integer()) },
	"decrby":   func(g *generator) []string { return g.keyAnd(g.integer()) },
	"append":   func(g *generator) []string { return g.keyAnd(g.element()) },
	"strlen":   func(g *generator) []string { return g.keyAnd() },
	"getrange": func(g *generator) []string { return g.keyAnd(g.integer(), g.integer()) },
	"substr":   func(g *generator) []string { return g.keyAnd(g.integer(), g.integer()) },

	"hset":    func(g *generator) []string { return g.keyAnd(g.pairs(g.element)) },
	"hmset":   func(g *generator) []string { return g.keyAnd(g.pairs(g.element)) },
	"hsetnx":  func(g *generator) []string { return g.keyAnd(g.element(), g.element()) },
	"hget":    func(g *generator) []string { return g.keyAnd(g.element()) },
	"hmget":   func(g *generator) []string { return g.keyAnd(g.several(1, 4, g.element)) },
	"hgetall": func(g *generator) []string { return g.keyAnd() },
	"hkeys":   func(g *generator) []string { return g.keyAnd() },
	"hvals":   func(g *generator) []string { return g.keyAnd() },
	"hdel":    func(g *generator) []string { return g.keyAnd(g.several(1, 4, g.element)) },
	"hlen":    func(g *generator) []string { return g.keyAnd() },
	"hexists": func(g *generator) []string { return g.keyAnd(g.element()) },
	"hincrby": func(g *generator) []string { return g.keyAnd(g.element(), g.integer()) },
	"hscan":   func(g *generator) []string { return g.keyAnd(g.scan()) },

	"lpush":  func(g *generator) []string { return g.keyAnd(g.several(1, 4, g.element)) },
	"rpush":  func(g *generator) []string { return g.keyAnd(g.several(1, 4, g.element)) },
	"lpushx": func(g *generator) []string { return g.keyAnd(g.several(1, 3, g.element)) },
	"rpushx": func(g *generator) []string { return g.keyAnd(g.several(1, 3, g.element)) },
	"lpop":   func(g *generator) []string { return g.keyAnd(g.maybe(2, g.count())) },
	"rpop":   func(g *generator) []string { return g.keyAnd(g.maybe(2, g.count())) },
	"llen":   func(g *generator) []string { return g.keyAnd() },
	"lrange": func(g *generator) []string { return g.keyAnd(g.integer(), g.integer()) },
	"lindex": func(g *generator) []string { return g.keyAnd(g.integer()) },
	"lset":   func(g *generator) []string { return g.keyAnd(pick(g, "0", "-1", g.integer()), g.element()) },
	"ltrim":  func(g *generator) []string { return g.keyAnd(g.integer(), g.integer()) },
	"linsert": func(g *generator) []string {
		return g.keyAnd(pick(g, "before", "AFTER", "after", "x"), g.element(), g.element())
	},
	"lrem": func(g *generator) []string { return g.keyAnd(g.integer(), g.element()) },

	"lpos": func(g *generator) []string {
		return g.keyAnd(g.element(), g.maybe(3, "rank", g.integer()), g.maybe(3, "COUNT", g.count()), g.maybe(4, "maxlen", g.count()),
			g.maybe(30, pick(g, "rank", "nope")))
	},
	"lmove": func(g *generator) []string {
		return g.keyAnd(g.key(), pick(g, "left", "RIGHT", "right", "x"), pick(g, "LEFT", "right"))
	},
	"rpoplpush": func(g *generator) []string { return g.keyAnd(g.key()) },
	"lmpop":     func(g *generator) []string { return g.multiPop("left", "RIGHT") },

	"blpop":      func(g *generator) []string { return join(g.several(1, 3, g.key), g.timeout()) },
	"brpop":      func(g *generator) []string { return join(g.several(1, 3, g.key), g.timeout()) },
	"brpoplpush": func(g *generator) []string { return g.keyAnd(g.key(), g.timeout()) },
	"blmove": func(g *generator) []string {
		return g.keyAnd(g.key(), pick(g, "left", "RIGHT", "right", "x"), pick(g, "LEFT", "right"), g.timeout())
	},
	"blmpop": func(g *generator) []string { return join(g.timeout(), g.multiPop("left", "RIGHT")) },

	"sadd":       func(g *generator) []string { return g.keyAnd(g.several(1, 6, g.element)) },
	"srem":       func(g *generator) []string { return g.keyAnd(g.several(1, 3, g.element)) },
	"scard":      func(g *generator) []string { return g.keyAnd() },
	"sismember":  func(g *generator) []string { return g.keyAnd(g.element()) },
	"smismember": func(g *generator) []string { return g.keyAnd(g.several(1, 3, g.element)) },
	"smembers":   func(g *generator) []string { return g.keyAnd() },
	"spop":       func(g *generator) []string { return g.keyAnd(g.maybe(2, g.count())) },
	"srandmember": func(g *generator) []string {
		return g.keyAnd(g.maybe(2, pick(g, "0", "1", "3", "-5", "100", "x", "-9223372036854775808")))
	},
	"sunion": func(g *generator) []string { return g.several(1, 4, g.key) },
	"sinter": func(g *generator) []string { return g.several(1, 3, g.key) },
	"sdiff":  func(g *generator) []string { return g.several(1, 3, g.key) },
	"sscan":  func(g *generator) []string { return g.keyAnd(g.scan()) },
	"smove":  func(g *generator) []string { return g.keyAnd(g.key(), g.element()) },

	"sunionstore": func(g *generator) []string { return g.several(1, 4, g.key) },
	"sinterstore": func(g *generator) []string { return g.several(2, 3, g.key) },
	"sdiffstore":  func(g *generator) []string { return g.several(2, 3, g.key) },
	"sintercard":  func(g *generator) []string { return join(g.counted(), g.maybe(2, "LIMIT", g.count())) },

	"zadd":     (*generator).zadd,
	"zincrby":  func(g *generator) []string { return g.keyAnd(g.float(), g.element()) },
	"zrem":     func(g *generator) []string { return g.keyAnd(g.several(1, 3, g.element)) },
	"zcard":    func(g *generator) []string { return g.keyAnd() },
	"zscore":   func(g *generator) []string { return g.keyAnd(g.element()) },
	"zmscore":  func(g *generator) []string { return g.keyAnd(g.several(1, 3, g.element)) },
	"zrank":    func(g *generator) []string { return g.keyAnd(g.element()) },
	"zrevrank": func(g *generator) []string { return g.keyAnd(g.element()) },
	"zpopmin":  func(g *generator) []string { return g.keyAnd(g.maybe(2, g.count())) },
	"zpopmax":  func(g *generator) []string { return g.keyAnd(g.maybe(2, g.count())) },
	"zscan":    func(g *generator) []string { return g.keyAnd(g.scan()) },
	"zrange":   (*generator).zrange,
	"zrevrange": func(g *generator) []string {
		return g.keyAnd(g.integer(), g.integer(), g.maybe(2, "withscores"), g.maybe(9, "limit", "0", "1"))
	},
	"zrangebyscore":    func(g *generator) []string { return g.keyAnd(g.scoreBound(), g.scoreBound(), g.rangeWords()) },
	"zrevrangebyscore": func(g *generator) []string { return g.keyAnd(g.scoreBound(), g.scoreBound(), g.rangeWords()) },
	"zrangebylex": func(g *generator) []string {
		return join(pick(g, "g", "h"), g.lexBound(), g.lexBound(), g.rangeWords())
	},
	"zrevrangebylex": func(g *generator) []string {
		return join(pick(g, "g", "h"), g.lexBound(), g.lexBound(), g.rangeWords())
	},
	"zcount":           func(g *generator) []string { return g.keyAnd(g.scoreBound(), g.scoreBound()) },
	"zlexcount":        func(g *generator) []string { return join(pick(g, "g", "h"), g.lexBound(), g.lexBound()) },
	"zremrangebyrank":  func(g *generator) []string { return g.keyAnd(g.integer(), g.integer()) },
	"zremrangebyscore": func(g *generator) []string { return g.keyAnd(g.scoreBound(), g.scoreBound()) },
	"zremrangebylex":   func(g *generator) []string { return g.keyAnd(g.lexBound(), g.lexBound()) },

	"zunion": func(g *generator) []string { return join(g.counted(), g.combination(), g.maybe(2, "withscores")) },
	"zinter": func(g *generator) []string { return join(g.counted(), g.combination(), g.maybe(2, "WITHSCORES")) },
	"zdiff": func(g *generator) []string {
		return join(g.counted(), g.maybe(2, "withscores"), g.maybe(20, g.combination()...))
	},
	"zunionstore": func(g *generator) []string { return g.keyAnd(g.counted(), g.combination(), g.maybe(30, "withscores")) },
	"zinterstore": func(g *generator) []string { return g.keyAnd(g.counted(), g.combination()) },
	"zdiffstore":  func(g *generator) []string { return g.keyAnd(g.counted()) },
	"zintercard":  func(g *generator) []string { return join(g.counted(), g.maybe(2, "limit", g.count())) },
	"zrangestore": func(g *generator) []string { return g.keyAnd(g.zrange()) },
	"zmpop":       func(g *generator) []string { return g.multiPop("min", "MAX") },
	"zrandmember": func(g *generator) []string {
		return g.keyAnd(g.maybe(2, join(pick(g, "0", "1", "3", "-5", "100", "x", "-9223372036854775808", "9223372036854775807"),
			g.maybe(2, pick(g, "withscores", "withscores", "x")))...))
	},

	"bzpopmin": func(g *generator) []string { return join(g.several(1, 3, g.key), g.timeout()) },
	"bzpopmax": func(g *generator) []string { return join(g.several(1, 3, g.key), g.timeout()) },
	"bzmpop":   func(g *generator) []string { return join(g.timeout(), g.multiPop("min", "MAX")) },

	"xadd":      (*generator).xadd,
	"xlen":      func(g *generator) []string { return g.keyAnd() },
	"xrange":    func(g *generator) []string { return g.keyAnd(g.streamBound(), g.streamBound(), g.streamCount()) },
	"xrevrange": func(g *generator) []string { return g.keyAnd(g.streamBound(), g.streamBound(), g.streamCount()) },
	"xread":     (*generator).xread,
	"xdel":      func(g *generator) []string { return g.keyAnd(g.several(1, 4, g.streamID)) },
	"xtrim":     func(g *generator) []string { return g.keyAnd(g.streamTrim(), g.maybe(30, "nomkstream")) },
	"xsetid":    (*generator).xsetid,
	"xinfo":     (*generator).xinfo,

	"xgroup":     (*generator).xgroup,
	"xreadgroup": (*generator).xreadgroup,
	"xack":       func(g *generator) []string { return g.keyAnd(g.group(), g.several(1, 4, g.streamID)) },
	"xpending":   (*generator).xpending,
	"xclaim":     (*generator).xclaim,
	"xautoclaim": (*generator).xautoclaim,

	"geoadd":    (*generator).geoadd,
	"geopos":    func(g *generator) []string { return g.keyAnd(g.several(0, 3, g.element)) },
	"geohash":   func(g *generator) []string { return g.keyAnd(g.several(0, 3, g.element)) },
	"geodist":   func(g *generator) []string { return g.keyAnd(g.element(), g.element(), g.maybe(2, g.unit())) },
	"geosearch": func(g *generator) []string { return g.keyAnd(g.geoShape(), g.geoWords()) },
	"geosearchstore": func(g *generator) []string {
		return g.keyAnd(g.key(), g.geoShape(), g.geoWords(), g.maybe(3, "STOREDIST"))
	},
	"georadius": func(g *generator) []string {
		return g.keyAnd(g.point(), g.length(), g.unit(), g.geoWords(), g.geoStore())
	},
	"georadius_ro": func(g *generator) []string { return g.keyAnd(g.point(), g.length(), g.unit(), g.geoWords()) },
	"georadiusbymember": func(g *generator) []string {
		return g.keyAnd(g.element(), g.length(), g.unit(), g.geoWords(), g.geoStore())
	},
	"georadiusbymember_ro": func(g *generator) []string { return g.keyAnd(g.element(), g.length(), g.unit(), g.geoWords()) },

	"del":    func(g *generator) []string { return g.several(1, 2, g.key) },
	"unlink": func(g *generator) []string { return g.several(1, 2, g.key) },
	"exists": func(g *generator) []string { return g.several(1, 4, g.key) },
	"touch":  func(g *generator) []string { return g.several(1, 4, g.key) },
	"type":   func(g *generator) []string { return g.keyAnd() },
	"keys":   func(g *generator) []string { return []string{g.pattern()} },
	"scan": func(g *generator) []string {
		return join(g.scan(), g.maybe(3, "type", pick(g, "string", "LIST", "zset", "hash", "set", "nope")))
	},
	"dbsize":      func(*generator) []string { return nil },
	"rename":      func(g *generator) []string { return g.keyAnd(g.key()) },
	"renamenx":    func(g *generator) []string { return g.keyAnd(g.key()) },
	"expire":      func(g *generator) []string { return g.keyAnd(g.seconds(), g.conditions()) },
	"pexpire":     func(g *generator) []string { return g.keyAnd(g.milliseconds(), g.conditions()) },
	"expireat":    func(g *generator) []string { return g.keyAnd(g.unix(1), g.conditions()) },
	"pexpireat":   func(g *generator) []string { return g.keyAnd(g.unix(1000), g.conditions()) },
	"ttl":         func(g *generator) []string { return g.keyAnd() },
	"pttl":        func(g *generator) []string { return g.keyAnd() },
	"expiretime":  func(g *generator) []string { return g.keyAnd() },
	"pexpiretime": func(g *generator) []string { return g.keyAnd() },
	"persist":     func(g *generator) []string { return g.keyAnd() },

	"ping": func(g *generator) []string { return g.maybe(2, g.element()) },
	"echo": func(g *generator) []string { return []string{g.element()} },
	"select": func(g *generator) []string {
		return []string{pick(g, "0", "0", "0", "1", "15", "16", "-1", "x", "99999999999999999999")}
	},
}

// rare are commands that would dominate the run if they came as often as others.
var rare = map[string]func(g *generator) []string{
	"flushdb":  func(g *generator) []string { return g.maybe(2, pick(g, "async", "SYNC", "x")) },
	"flushall": func(g *generator) []string { return g.maybe(2, pick(g, "async", "SYNC", "x")) },
	"multi":    func(*generator) []string { return nil },
	"exec":     func(*generator) []string { return nil },
	"discard":  func(*generator) []string { return nil },
	"watch":    func(g *generator) []string { return g.several(1, 3, g.key) },
	"unwatch":  func(*generator) []string { return nil },
	"reset":    func(*generator) []string { return nil },
	"swapdb":   func(g *generator) []string { return []string{pick(g, g.database(), "0", "1"), g.database()} },
	"hello": func(g *generator) []string {
		return pick(g, []string{"3"}, []string{"2"}, []string{"4"}, []string{"x"}, []string{"3", "x"}, []string{"2", "auth", "default", "any"},
			[]string{"3", "SETNAME", "n", "AUTH", "default", "any"}, []string{"2", "setname", "a b"}, []string{"3", "AUTH", "nobody", "any"})
	},
	"auth": func(g *generator) []string {
		return pick(g, []string{"default", "any"}, []string{"default", "any"}, []string{"any"}, []string{"nobody", "any"}, []string{"x", "y", "z"})
	},
	"nope": func(g *generator) []string { return g.several(0, 4, g.element) },
	"client": func(g *generator) []string {
		return pick(g, []string{"setname", "n"}, []string{"getname"}, []string{"nope"}, []string{"setname", "a b"})
	},
	"config": func(g *generator) []string {
		return pick(g, []string{"get", "save"}, []string{"nope", "x"}, []string{"get"})
	},
}

// commandNames are known once every file has added its commands.
var commandNames = sync.OnceValue(func() []string { return names(commands) })

var rareNames = sync.OnceValue(func() []string { return names(rare) })

func (g *generator) pairs(one func() string) []string {
	var args []string
	most := 3
	if g.wide {
		most = 40
	}
	for range 1 + g.r.IntN(most) {
		args = append(args, one(), g.element())
	}
	return args
}

func (g *generator) scan() []string {
	return join(pick(g, "0", "0", "0", "0", "0", "x", "-1x", ""), g.maybe(3, "match", g.pattern()), g.maybe(3, "COUNT", pick(g, "1", "3", "100", "0", "-1", "x")),
		g.maybe(20, pick(g, "match", "count", "nope")))
}

func (g *generator) conditions() []string {
	return join(g.maybe(5, "nx"), g.maybe(5, "XX"), g.maybe(5, "gt"), g.maybe(5, "LT"), g.maybe(30, "nope"))
}

func (g *generator) set() []string {
	words := join(g.maybe(5, "nx"), g.maybe(5, "XX"), g.maybe(4, "get"), g.maybe(6, "keepttl"), g.maybe(6, "ex", g.seconds()), g.maybe(8, "PX", g.milliseconds()),
		g.maybe(12, "exat", g.unix(1)), g.maybe(12, "pxat", g.unix(1000)), g.maybe(40, pick(g, "nope", "ex", "")))
	return g.keyAnd(g.element(), words)
}

func (g *generator) zadd() []string {
	words := join(g.maybe(5, "nx"), g.maybe(5, "XX"), g.maybe(5, "gt"), g.maybe(5, "LT"), g.maybe(4, "ch"), g.maybe(6, "incr"))
	var members []string
	most := 4
	if g.wide {
		most = 60
	}
	for range 1 + g.r.IntN(most) {
		members = append(members, g.float(), g.element())
	}
	if g.chance(4) {
		members = members[:2]
	}
	if g.chance(2) {
		// Sorted sets with equal scores, for the ranges by name.
		for i := 0; i < len(members); i += 2 {
			members[i] = "0"
		}
		return join(pick(g, "g", "h"), members)
	}
	return g.keyAnd(words, members)
}

func (g *generator) rangeWords() []string {
	return join(g.maybe(3, "withscores"), g.maybe(3, "LIMIT", g.integer(), g.integer()), g.maybe(30, pick(g, "rev", "limit", "nope")))
}

func (g *generator) zrange() []string {
	switch g.r.IntN(3) {
	case 0:
		return g.keyAnd(g.integer(), g.integer(), g.maybe(3, "rev"), g.maybe(2, "withscores"), g.maybe(12, "limit", "0", "2"))
	case 1:
		return g.keyAnd(g.scoreBound(), g.scoreBound(), "byscore", g.maybe(3, "REV"), g.rangeWords())
	default:
		return join(pick(g, "g", "h"), g.lexBound(), g.lexBound(), "BYLEX", g.maybe(3, "REV"), g.rangeWords())
	}
}

// command is the next random command. Sometimes an argument is missing, wrong or too many.
func (g *generator) command() []string {
	name, args := g.words()
	switch g.r.IntN(60) {
	case 0:
		if len(args) > 0 {
			args = args[:len(args)-1]
		}
	case 1:
		args = append(args, g.element())
	case 2:
		if len(args) > 0 {
			args[g.r.IntN(len(args))] = g.element()
		}
	}
	for i, arg := range args {
		if name == "xadd" && arg == "*" { // an id by the clock
			args[i] = "1-*"
		}
	}
	if g.chance(4) {
		name = strings.ToUpper(name)
	}
	return append([]string{name}, args...)
}

// words are a command's name and arguments. Most transactions end after a few commands.
func (g *generator) words() (name string, args []string) {
	if g.left > 0 {
		if g.left--; g.left == 0 {
			return pick(g, "exec", "exec", "exec", "discard"), nil
		}
	}
	if len(g.next) > 0 {
		words := g.next[0]
		g.next = g.next[1:]
		return words[0], words[1:]
	}
	if g.chance(200) {
		g.next = g.groupScene()
	}
	if g.chance(40) {
		name = pick(g, rareNames()...)
		if name == "multi" && !g.chance(4) {
			g.left = 1 + g.r.IntN(8)
		}
		return name, rare[name](g)
	}
	if g.chance(5) {
		if c := pick(g, comparable()...); rare[c.Name] == nil {
			g.kind = c.Group
			return c.Name, g.fromSyntax(c)
		}
	}
	if g.chance(20) {
		name = "xadd" // which most others of its group need
	} else {
		name = pick(g, commandNames()...)
	}
	if c := server.Lookup(name); c != nil {
		g.kind = c.Group
	}
	return name, commands[name](g)
}
