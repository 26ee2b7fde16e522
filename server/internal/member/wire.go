package member

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/replication"
)

// Members speak in the connection of a replica, by three texts of words with a blank between them:
//
//	greeting  group id incarnation term address                    REPLCONF group, of a member that is to follow a primary
//	ping      group id term sent clock (id incarnation offset)...  REPLCONF GETACK, in the stream of a primary
//	ack       term sent offset                                     REPLCONF GROUPACK, of a member to its primary

// mostAddress is the length of an address.
const mostAddress = 255 + len(":65535")

type greeting struct {
	group string
	replication.Membership
}

func (g *greeting) String() string {
	return fmt.Sprintf("%s %s %d %d %s", g.group, g.ID, g.Incarnation, g.Term, g.Address)
}

type ping struct {
	group, from string
	clock       int64 // of the store, Unix ms
	group.Ping
}

func (p *ping) String() string {
	b := fmt.Appendf(nil, "%s %s %d %d %d", p.group, p.from, p.Term, int64(p.Sent), p.clock)
	for _, k := range p.Known {
		b = fmt.Appendf(b, " %s %d %d", k.Member.ID, k.Member.Incarnation, k.Offset)
	}
	return string(b)
}

// encodeAck leaves out which member it is, which the primary knows by its greeting.
func encodeAck(a *group.Ack) string {
	return fmt.Sprintf("%d %d %d", a.Term, int64(a.Sent), a.Offset)
}

// words are those of a text that are still to be read.
type words struct {
	rest   []string
	failed bool
}

func (w *words) next() string {
	if len(w.rest) == 0 {
		w.failed = true
		return ""
	}
	word := w.rest[0]
	w.rest = w.rest[1:]
	return word
}

func (w *words) number() uint64 {
	n, err := strconv.ParseUint(w.next(), 10, 63)
	w.failed = w.failed || err != nil
	return n
}

const errText command.Error = "ERR the words of a member of a group were expected: are both servers of the same version?"

// end returns an error if the text was not what was expected, up to its end.
func (w *words) end() error {
	if w.failed || len(w.rest) > 0 {
		return errText
	}
	return nil
}

func parseGreeting(text string) (g greeting, err error) {
	w := words{rest: strings.Fields(text)}
	g.group, g.ID, g.Incarnation, g.Term, g.Address = w.next(), w.next(), w.number(), w.number(), w.next()
	_, err = parseAddress(g.Address)
	w.failed = w.failed || err != nil || !group.IsName(g.ID) || len(g.Address) > mostAddress
	return g, w.end()
}

func parsePing(text string) (p ping, err error) {
	w := words{rest: strings.Fields(text)}
	p.group, p.from, p.Term, p.Sent, p.clock = w.next(), w.next(), w.number(), time.Duration(w.number()), int64(w.number())
	for len(w.rest) > 0 {
		p.Known = append(p.Known, group.Position{Member: group.Member{ID: w.next(), Incarnation: w.number()}, Offset: w.number()})
	}
	return p, w.end()
}

func parseAck(text string) (a group.Ack, err error) {
	w := words{rest: strings.Fields(text)}
	a.Term, a.Sent, a.Offset = w.number(), time.Duration(w.number()), w.number()
	return a, w.end()
}
