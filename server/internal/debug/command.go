package debug

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/digest"
)

// Host is what DEBUG works with, besides the call.
type Host struct {
	Allowed bool         // as enable-debug-command has it, to this client
	Save    func() error // makes all writes durable
	Logger  *slog.Logger
	Client  int64 // who asks
}

// Setting is what a value of enable-debug-command allows: to clients of this machine, and to those of others.
func Setting(value string) (local, remote bool) { return value != "no", value == "yes" }

// Shown is the value of enable-debug-command that says what is allowed.
func Shown(local, remote bool) string {
	switch {
	case remote:
		return "yes"
	case local:
		return "local"
	}
	return "no"
}

// Command is DEBUG. host is asked at each call.
func Command(host func(*command.Call) Host) *command.Command {
	return &command.Command{
		Name: "debug", Arity: -2, Flags: command.OfOperator, Group: command.GroupServer,
		Run: func(c *command.Call) error { return run(host(c), c) },
	}
}

const errNoDebug command.Error = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a " +
	"local connection, otherwise you need to set this option in the configuration file, and then restart the server."

// subcommand is one of DEBUG's. They have no rows of their own in the table: Redis has none either.
type subcommand struct {
	name    string
	least   int // arguments after the name
	most    int // -1: any number
	usage   string
	run     func(h Host, c *command.Call) error
	inMulti bool // may run within EXEC: it touches no key, which may be locked there
}

// It is put together at run time, because HELP is in it and reads it.
var subcommands []subcommand

func init() {
	ok := func(_ Host, c *command.Call) error { return c.OK() }
	subcommands = []subcommand{
		{"change-repl-id", 0, 0, "Is accepted, and changes nothing.", ok, true},
		{"digest", 0, 0, "Returns a digest of all keys, which equals that of a Redis with the same data.", digestAll, false},
		{"digest-value", 0, -1, "key [key ...]: returns digests of values.", digestValue, false},
		{"error", 1, 1, "text: replies with an error.", func(_ Host, c *command.Call) error { return oneLine(c.Arg(2)) }, true},
		{"help", 0, 0, "Lists the subcommands.", help, true},
		{"jmap", 0, 0, "Is accepted, and does nothing.", ok, true},
		{"loadaof", 0, 0, "Makes all writes durable; memory follows the log at any time.", reload, false},
		{"log", 1, 1, "text: writes into the log.", log, true},
		{"object", 1, 1, "key: describes how a key is stored.", func(_ Host, c *command.Call) error { return object(c, c.Key(2)) }, false},
		{"pause-cron", 1, 1, "0|1: is accepted, and does nothing.", ok, true},
		{"populate", 1, 3, "count [prefix [size]]: makes strings.", populate, false},
		{"protocol", 1, 1, "type: replies with a value of a type.", protocol, true},
		{"quicklist-packed-threshold", 1, 1, "bytes: is accepted, and does nothing.", ok, true},
		{"reload", 0, -1, "[NOSAVE] [NOFLUSH] [MERGE]: makes all writes durable; memory follows the log at any time.", reload, false},
		{"set-active-expire", 1, 1, "0|1: stops or starts the cycle that deletes expired keys.", activeExpire, true},
		{"sleep", 1, 1, "seconds: waits.", sleep, true},
		{"stringmatch-len", 2, 2, "length pattern: matches as many letters A with a pattern.", match, true},
	}
}

// run is DEBUG.
func run(h Host, c *command.Call) error {
	switch {
	case !h.Allowed:
		return errNoDebug
	}
	n := len(c.Args) - 2
	for i := range subcommands {
		if sub := &subcommands[i]; c.Args.Is(1, sub.name) && n >= sub.least && (n <= sub.most || sub.most < 0) {
			if c.Queued && !sub.inMulti {
				return command.ErrInMulti
			}
			return sub.run(h, c)
		}
	}
	return command.Errorf("ERR unknown subcommand or wrong number of arguments for '%s'. Try DEBUG HELP.", command.Quoted(c.Arg(1)))
}

// help is DEBUG HELP.
func help(_ Host, c *command.Call) error {
	c.Out.Array(1 + 2*len(subcommands))
	c.Out.Simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range subcommands {
		c.Out.Simple(strings.ToUpper(sub.name))
		c.Out.Simple("    " + sub.usage)
	}
	return nil
}

// maxSleep bounds how long DEBUG SLEEP keeps its own connection waiting; others are not held up.
const maxSleep = time.Minute

// sleep is DEBUG SLEEP.
func sleep(_ Host, c *command.Call) error {
	seconds, err := c.Args.ParseFloat(2)
	if err != nil {
		return err
	}
	timer := time.NewTimer(min(time.Duration(min(max(seconds, 0), maxSleep.Seconds())*float64(time.Second)), maxSleep))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Host.Context.Done():
	}
	return c.OK()
}

// besideValue is what DUMP has besides a value: its type, the version and the checksum.
const besideValue = 11

// object describes how a key is stored, in Redis's fields: the encoding as OBJECT ENCODING has it, and the length of
// the value in a DUMP. The others are about Redis's memory, and constant.
func object(c *command.Call, key string) error {
	return c.Host.Store.ViewKeys([]string{key}, func(tx *db.Tx) error {
		encoding, err := c.EncodingOf(tx, key)
		if err != nil {
			return err
		}
		if encoding == "" {
			return command.ErrNoKey
		}
		payload, err := tx.Key(key).Dump()
		if err != nil {
			return err
		}
		c.Out.Simple(fmt.Sprintf("Value at:0x0 refcount:1 encoding:%s serializedlength:%d lru:0 lru_seconds_idle:0", encoding, len(payload)-besideValue))
		return nil
	})
}

// digestAll is DEBUG DIGEST.
func digestAll(_ Host, c *command.Call) error {
	var d digest.Digest
	if err := d.AddStore(c.Host.Store); err != nil {
		return err
	}
	c.Out.Simple(hex.EncodeToString(d[:]))
	return nil
}

// digestValue is DEBUG DIGEST-VALUE.
func digestValue(_ Host, c *command.Call) error {
	keys := c.Args.Strings(2)
	digests := make([]digest.Digest, len(keys))
	err := c.Host.Store.ViewKeys(keys, func(tx *db.Tx) error {
		for i, key := range keys {
			if err := digests[i].AddKey(tx, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.Out.Array(len(digests))
	for i := range digests {
		c.Out.Simple(hex.EncodeToString(digests[i][:]))
	}
	return nil
}

// reload is DEBUG RELOAD. In Redis it proves that the file has all of the data; here that is what Check is
// for, and the sync is what is left.
func reload(h Host, c *command.Call) error {
	for i := 2; i < len(c.Args); i++ {
		if !c.Args.Is(i, "nosave") && !c.Args.Is(i, "noflush") && !c.Args.Is(i, "merge") {
			return command.Error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
		}
	}
	return c.Done(h.Save())
}

// log is DEBUG LOG.
func log(h Host, c *command.Call) error {
	h.Logger.Warn("DEBUG LOG", "text", c.Key(2), "client", h.Client)
	return c.OK()
}

// activeExpire is DEBUG SET-ACTIVE-EXPIRE. Expired keys are never seen, whether they are deleted or not.
func activeExpire(_ Host, c *command.Call) error {
	n, _ := strconv.Atoi(c.Key(2)) // what is no number is 0, as in Redis
	serverside.DB.SetExpiryCycle(c.Host.Store, n != 0)
	return c.OK()
}

// match is DEBUG STRINGMATCH-LEN.
func match(_ Host, c *command.Call) error {
	n, ok := number.ParseInt(c.Arg(2))
	if !ok || n < 0 || n > 1<<20 {
		return command.ErrNotInteger
	}
	return c.Flag(c.Matches(c.Key(3), []byte(strings.Repeat("A", int(n)))), nil)
}

// populateBatch is how many keys DEBUG POPULATE makes in one commit.
const populateBatch = 500

// populate is DEBUG POPULATE: strings value:N at PREFIX:N, unless the key is there. With a size a value is cut
// or filled up with zeros.
func populate(_ Host, c *command.Call) error {
	var numbers [2]int64
	for i, at := range []int{2, 4} {
		if at < len(c.Args) {
			n, ok := number.ParseInt(c.Arg(at))
			if !ok || n < 0 || n > [...]int64{1 << 32, 64 << 20}[i] {
				return command.Error("ERR value is out of range, must be positive")
			}
			numbers[i] = n
		}
	}
	prefix := "key"
	if len(c.Args) > 3 {
		prefix = c.Key(3)
	}
	count, size := numbers[0], numbers[1]
	for from := int64(0); from < count; from += populateBatch {
		if err := c.Host.Asking().Err(); err != nil {
			return err
		}
		keys := make([]string, 0, populateBatch)
		for n := from; n < min(from+populateBatch, count); n++ {
			keys = append(keys, prefix+":"+strconv.FormatInt(n, 10))
		}
		err := c.Host.Store.UpdateKeys(keys, func(tx *db.Tx) error {
			for i, key := range keys {
				if exists, err := tx.Key(key).Exists(); exists || err != nil {
					if err != nil {
						return err
					}
					continue
				}
				value := []byte("value:" + strconv.FormatInt(from+int64(i), 10))
				if size > 0 {
					value = append(value[:min(int64(len(value)), size)], make([]byte, max(size-int64(len(value)), 0))...)
				}
				if err := tx.String(key).Put(value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return c.OK()
}

// protocol is DEBUG PROTOCOL: Redis's examples of each type.
func protocol(_ Host, c *command.Call) error {
	out := c.Out
	numbers := func() {
		for i := range int64(3) {
			out.Int(i)
		}
	}
	switch name := strings.ToLower(c.Key(2)); name {
	case "string":
		out.BulkString("Hello World")
	case "integer":
		out.Int(12345)
	case "double":
		out.Double(3.141)
	case "null":
		out.Null()
	case "array":
		out.Array(3)
		numbers()
	case "set":
		out.Set(3)
		numbers()
	case "map":
		out.Map(3)
		for i := range int64(3) {
			out.Int(i)
			out.Bool(i == 1)
		}
	case "attrib":
		if out.Version() == 3 {
			out.Attribute(1)
			out.BulkString("key-popularity")
			out.Array(2)
			out.BulkString("key:123")
			out.Int(90)
		}
		out.BulkString("Some real reply following the attribute")
	case "push":
		if out.Version() < 3 {
			return command.Error("ERR RESP2 is not supported by this command")
		}
		out.Push(2)
		out.BulkString("server-cpu-usage")
		out.Int(42)
		out.BulkString("Some real reply following the push reply")
	case "verbatim":
		out.Verbatim("txt", "This is a verbatim\nstring")
	case "true", "false":
		out.Bool(name == "true")
	case "bignum":
		out.BigNumber("1234567999999999999999999999999999999")
	default:
		return command.Error("ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false")
	}
	return nil
}

// oneLine makes an error of a client's text.
func oneLine(text []byte) error {
	return command.Error(strings.NewReplacer("\r", " ", "\n", " ").Replace(string(text)))
}
