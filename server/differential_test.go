package server_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

var (
	commandsFlag = flag.Int("differential.commands", 200_000, "random commands that TestDifferential compares")
	forFlag      = flag.Duration("differential.for", 0, "how long TestDifferential runs, whatever -differential.commands says")
)

const (
	roundLength    = 500 // commands between two comparisons of all that the servers hold
	maxTogether    = 64  // commands of one pipeline
	reopenEvery    = 8   // rounds between two new starts of the store
	watchEvery     = 7   // rounds between two that watch all the time
	maxDifferences = 5   // found before the test gives up
)

// TestDifferential compares Stave with a real redis-server on random commands, alone and in pipelines.
func TestDifferential(t *testing.T) {
	p := newPair(t)
	seed := chance.Seed(t)
	limit := *commandsFlag
	if testing.Short() {
		limit = min(limit, 3000)
	}
	share := longTests.Start(t, 1, "seed", "differential.commands", "differential.for")
	limit = share.Cases(limit)
	part := share.Part(t, 3000)
	defer part.End()
	var found int
	for start, round := time.Now(), 0; found < maxDifferences; round++ {
		if *forFlag > 0 && time.Since(start) > *forFlag || *forFlag == 0 && !part.More(p.compared, limit) {
			break
		}
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		g := &generator{r: r, wide: round%3 == 2}
		var sequence [][]string
		if g.chance(2) {
			sequence = append(sequence, []string{"hello", "3"})
		}
		for len(sequence) < roundLength {
			sequence = append(sequence, g.command())
			if round%watchEvery == 0 {
				sequence = append(sequence, g.watched()...)
			}
		}
		p.together = 1 + round%2*r.IntN(maxTogether)
		reopen := round%reopenEvery == 0
		if d, at := p.replay(sequence, reopen); d != "" {
			found++
			p.report(round, sequence[:at], reopen, d)
		}
	}
	if found == 0 && p.compared >= 100_000 {
		p.covered()
	}
	t.Logf("%d commands, %d differences, seed %d", p.compared, found, seed)
}

// watched returns a random command and asks whether it counts as a change of its key. It leaves out those that are
// compared in ways of their own, which write, and BITFIELD with OVERFLOW FAIL, which may make a key or a longer string
// of zeros, of which Redis does not tell those who watch it.
func (g *generator) watched() [][]string {
	c := g.command()
	for special[strings.ToLower(c[0])] != nil || slices.ContainsFunc(c, func(arg string) bool { return strings.EqualFold(arg, "fail") }) {
		c = g.command()
	}
	key := g.key()
	if len(c) > 1 && slices.Contains(keyPool, c[1]) {
		key = c[1]
	}
	return [][]string{{"watch", key}, c, {"multi"}, {"exec"}}
}

// report finds a short sequence with a difference, and fails the test with it.
func (p *pair) report(round int, sequence [][]string, reopen bool, difference string) {
	p.t.Helper()
	p.t.Logf("round %d, before the sequence is made short: %q: %s", round, sequence[max(0, len(sequence)-3):], difference)
	compared, together := p.compared, p.together
	p.together = 1
	if d, at := p.replay(sequence, reopen); d != "" {
		sequence, difference = p.shrink(sequence[:at], reopen, d)
	} else {
		p.together = together // it takes a pipeline
		if d, at := p.replay(sequence, reopen); d != "" {
			sequence, difference = p.shrink(sequence[:at], reopen, d)
		} else {
			difference += " (not again in a second run)"
		}
	}
	for _, args := range sequence {
		p.t.Logf("%q", args)
	}
	p.t.Errorf("round %d, up to %d together: %s", round, p.together, difference)
	p.compared = compared
}

// shrink drops commands as long as a difference remains. The difference may become another one: that is a finding as
// well.
func (p *pair) shrink(sequence [][]string, reopen bool, difference string) ([][]string, string) {
	if reopen {
		if d, at := p.replay(sequence, false); d != "" {
			sequence, reopen, difference = sequence[:at], false, d
		}
	}
	return shrink(sequence, difference, func(shorter [][]string) (string, int) { return p.replay(shorter, reopen) })
}

// shrink drops steps of a sequence as long as replay finds a difference, for a minute at most.
func shrink[T any](sequence []T, difference string, replay func([]T) (difference string, at int)) ([]T, string) {
	deadline := time.Now().Add(time.Minute)
	for size := len(sequence) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(sequence) && time.Now().Before(deadline); {
			shorter := slices.Concat(sequence[:from], sequence[from+size:])
			if d, at := replay(shorter); d != "" {
				sequence, difference = shorter[:at], d
			} else {
				from += size
			}
		}
	}
	return sequence, difference
}

// replay runs a sequence from a clean state and returns the first difference, and after which command. In the end it
// compares all that the servers hold, if need be again after a new start of the store.
func (p *pair) replay(sequence [][]string, reopen bool) (difference string, at int) {
	p.reset()
	for at < len(sequence) {
		n, d := p.some(sequence[at:])
		at += n
		if d != "" {
			return d, at
		}
	}
	d := p.sameState()
	if d == "" && reopen {
		if err := p.reopen(); err != nil {
			p.t.Fatal(err)
		}
		if d = p.sameState(); d != "" {
			d = "after a merge and a new start: " + d
		}
	}
	return d, at
}

// A manner is how a command is compared.
type manner int

const (
	plainly  manner = iota // in a pipeline with others
	last                   // in a pipeline, but nothing may follow it
	alone                  // by a method of pair, see special
	notAtAll               // it has no meaning here
)

// special are the commands that are compared in ways of their own: their replies depend on chance, or on an undefined
// order.
var special = map[string]func(p *pair, args []string) string{
	"spop": (*pair).spop, "srandmember": (*pair).srandmember, "zrandmember": (*pair).zrandmember, "hrandfield": (*pair).hrandfield,
	"randomkey": (*pair).randomkey, "dump": (*pair).dump, "sort": (*pair).sort, "sort_ro": (*pair).sort,
	"xsetid": (*pair).xsetid,
	"scan":   (*pair).scan, "sscan": (*pair).scan, "hscan": (*pair).scan, "zscan": (*pair).scan, "dbsize": (*pair).dbsize,
}

// mannerOf says how a command is to be compared now.
func (p *pair) mannerOf(name string, args []string) manner {
	switch {
	case waitsLong(name, args) || unlike70(name, args) || endless(name, args) || timeToLive(args) > 0 && !expiresSoon(args):
		return notAtAll
	case p.multi && expiresSoon(args):
		return notAtAll // the time may be over before the transaction is
	case special[name] != nil || isLex(name, args) || storesDistances(name, args) || countsPlaces(name, args):
		if p.multi {
			return notAtAll // its inputs cannot be queried, nor chance repeated
		}
		return alone
	case slices.Contains([]string{"multi", "exec", "discard", "reset"}, name) || expiresSoon(args):
		return last
	}
	return plainly
}

// some runs the first commands of a sequence, as many as can be sent together. It returns how many, and how the replies
// to the last of them differ.
func (p *pair) some(sequence [][]string) (n int, difference string) {
	var commands [][]string
	var at []int
	for i, args := range sequence[:min(p.together, len(sequence))] {
		name := strings.ToLower(args[0])
		how := p.mannerOf(name, args)
		if how == notAtAll {
			continue
		}
		if how == alone {
			if len(commands) > 0 {
				break
			}
			return i + 1, p.alone(name, args)
		}
		commands, at = append(commands, args), append(at, i)
		if n = i + 1; how == last {
			break
		}
	}
	if len(commands) == 0 {
		return min(p.together, len(sequence)), ""
	}
	ours, theirs, err := p.both(commands)
	if err != nil {
		return n, err.Error()
	}
	for i, args := range commands {
		if d := p.compare(args, ours[i], theirs[i]); d != "" {
			return at[i] + 1, fmt.Sprintf("%.500q: %s", args, d)
		}
	}
	return n, ""
}

// alone compares a command in a way of its own.
func (p *pair) alone(name string, args []string) (difference string) {
	compare := special[name]
	switch {
	case compare != nil:
	case storesDistances(name, args):
		compare = (*pair).storedDistances
	case countsPlaces(name, args):
		compare = (*pair).nearest
	default:
		compare = (*pair).byLex
	}
	if d := compare(p, args); d != "" {
		return fmt.Sprintf("%.500q: %s", args, d)
	}
	return ""
}

// run compares one command.
func (p *pair) run(args []string) string {
	_, d := p.some([][]string{args})
	return d
}

// compare compares the replies to a command, and keeps account of transactions, deadlines and outcomes.
func (p *pair) compare(args []string, ours, theirs resp.Reply) string {
	name := strings.ToLower(args[0])
	soon := expiresSoon(args)
	if soon || len(args) > 1 && slices.ContainsFunc(args, isAbsoluteDeadline) {
		p.mortal = append(p.mortal, args[1])
	}
	queued := p.track(name, args, theirs)
	if name == "exec" && theirs.Kind == resp.Array && !theirs.Null {
		for i, item := range theirs.Items {
			p.count(queued[i], item)
		}
		p.count(args, theirs)
		if d := diffExec(queued, ours, theirs); d != "" {
			return d
		}
	} else {
		if string(theirs.Text) != "QUEUED" {
			p.count(args, theirs)
		}
		if d := diff(comparedName(args), ours, theirs); d != "" {
			return d
		}
	}
	if soon {
		time.Sleep(3 * time.Millisecond)
	}
	return ""
}

// track keeps the queues of both servers, and returns the queue before an EXEC.
func (p *pair) track(name string, args []string, reply resp.Reply) (queued [][]string) {
	queued = p.queued
	switch {
	case name == "multi" && !reply.IsError():
		p.multi = true
	case name == "exec" || name == "discard" || name == "reset":
		if !reply.IsError() || strings.HasPrefix(string(reply.Text), "EXECABORT") {
			p.multi, p.queued = false, nil
		}
	case p.multi && string(reply.Text) == "QUEUED":
		p.queued = append(p.queued, args)
	}
	return queued
}

// deadlineWords are the words that come with a time to live.
var deadlineWords = []string{"px", "pexpire", "psetex", "ex", "expire", "setex"}

// isAbsoluteDeadline says whether a word comes with a moment, which may have passed.
func isAbsoluteDeadline(word string) bool {
	return slices.Contains([]string{"exat", "pxat", "expireat", "pexpireat", "absttl"}, strings.ToLower(word))
}

// timeToLive returns the argument of a command with a relative deadline that is small: what would pass at some moment
// of the test. It is 0 for all others.
func timeToLive(args []string) int {
	if strings.EqualFold(args[0], "restore") && len(args) > 2 {
		args = []string{"px", args[2]} // what else is a number there is none of time
	}
	if !slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(deadlineWords, strings.ToLower(arg)) }) {
		return 0
	}
	for _, arg := range args[1:] {
		if n, err := strconv.Atoi(arg); err == nil && n > 0 && n < 1000 {
			return n
		}
	}
	return 0
}

// expiresSoon says whether the command sets a deadline that is about to pass: the next command must see it passed.
func expiresSoon(args []string) bool {
	return timeToLive(args) == 1 && slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(deadlineWords[:3], strings.ToLower(arg)) })
}
