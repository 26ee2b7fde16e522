package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/resp"
)

// Comparisons of commands whose replies depend on chance, or on an order that is not promised.

// endless says whether the reply would be so long that a real server would have to be stopped.
func endless(name string, args []string) bool {
	return (strings.HasSuffix(name, "randmember") || name == "hrandfield") && len(args) >= 3 && len(args[2]) > 9 && args[2][0] == '-' && args[2] != "-9223372036854775808"
}

// spop lets Stave choose and makes Redis remove the same members, which proves that they were there and different.
func (p *pair) spop(args []string) string {
	ours, err := p.stave.do(args)
	if err != nil {
		return err.Error()
	}
	taken := texts(ours)
	p.count(args, ours)
	if ours.IsError() || len(taken) == 0 {
		theirs, err := p.redis.do(args)
		if err != nil {
			return err.Error()
		}
		return diff("spop", ours, theirs)
	}
	size, err := p.redis.do([]string{"scard", args[1]})
	if err != nil {
		return err.Error()
	}
	removed, err := p.redis.do(append([]string{"srem", args[1]}, taken...))
	if err != nil {
		return err.Error()
	}
	want := int64(1)
	if len(args) == 3 {
		if want, err = strconv.ParseInt(args[2], 10, 64); err != nil {
			return fmt.Sprintf("stave took %q, the count is bad", taken)
		}
	}
	if removed.Int != int64(len(taken)) || int64(len(taken)) != min(want, size.Int) {
		return fmt.Sprintf("stave popped %q, of which the set had %d; size %d", taken, removed.Int, size.Int)
	}
	return ""
}

// srandmember compares errors and sizes, and looks each member up.
func (p *pair) srandmember(args []string) string {
	ours, theirs, err := p.one(args)
	if err != nil {
		return err.Error()
	}
	chosen := texts(ours)
	if ours.IsError() || len(chosen) == 0 || len(chosen) != len(texts(theirs)) || ours.Kind != theirs.Kind {
		return diff("srandmember", ours, theirs)
	}
	held, err := p.redis.do(join("smismember", args[1], chosen))
	if err != nil {
		return err.Error()
	}
	for i, member := range chosen {
		if held.Items[i].Int != 1 {
			return fmt.Sprintf("stave chose %q, which is not there", member)
		}
	}
	if slices.Sort(chosen); len(args) == 3 && !strings.HasPrefix(args[2], "-") && len(slices.Compact(chosen)) != len(chosen) {
		return fmt.Sprintf("stave chose a member twice: %q", chosen)
	}
	return ""
}

// scan follows the cursor on both servers and compares their results as a whole. Redis may repeat itself.
func (p *pair) scan(args []string) string {
	name := strings.ToLower(args[0])
	if at := cursorOf(name); len(args) > at {
		if n, err := strconv.ParseUint(strings.TrimLeft(args[at], "+-"), 10, 64); err == nil && n != 0 {
			return "" // a cursor that no server gave has no meaning
		}
	}
	ours, err := scanAll(p.stave, name, args)
	if err != nil {
		return err.Error()
	}
	theirs, err := scanAll(p.redis, name, args)
	if err != nil {
		return err.Error()
	}
	p.count(args, theirs)
	return diff(name, ours, theirs)
}

// cursorOf is where the cursor stands among the arguments of a scan.
func cursorOf(name string) int {
	if name == "scan" {
		return 1
	}
	return 2
}

func scanAll(one peer, name string, args []string) (resp.Reply, error) {
	at := cursorOf(name)
	width := 1
	if name == "hscan" || name == "zscan" {
		width = 2
	}
	found := map[string]resp.Reply{}
	args = slices.Clone(args)
	for range 10_000 {
		reply, err := one.do(args)
		if err != nil || reply.IsError() || len(reply.Items) != 2 {
			return reply, err
		}
		items := reply.Items[1].Items
		for i := 0; i < len(items); i += width {
			value := resp.Reply{Kind: resp.BulkString}
			if width == 2 {
				value = items[i+1]
			}
			found[string(items[i].Text)] = value
		}
		next := string(reply.Items[0].Text)
		if next == "0" {
			all := resp.Reply{Kind: resp.Array}
			for _, key := range slices.Sorted(maps.Keys(found)) {
				all.Items = append(all.Items, resp.Reply{Kind: resp.BulkString, Text: []byte(key)}, found[key])
			}
			return all, nil
		}
		args[at] = next
	}
	return resp.Reply{}, fmt.Errorf("%q never ends", args)
}

// isLex says whether the command selects members of a sorted set by name.
func isLex(name string, args []string) bool {
	return len(args) > 1 && (strings.Contains(name, "lex") || slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "bylex") }))
}

// byLex compares a command that selects members by name, if that means something.
func (p *pair) byLex(args []string) string {
	same, err := sameScores(p.redis, args)
	switch {
	case err != nil:
		return err.Error()
	case !same:
		return ""
	}
	return p.plain(args)
}

// sameScores says whether the members that a command selects by name have one score: without that a range of names has
// no meaning.
func sameScores(at peer, args []string) (bool, error) {
	source := args[1]
	if strings.EqualFold(args[0], "zrangestore") && len(args) > 2 {
		source = args[2]
	}
	reply, err := at.do([]string{"zrange", source, "0", "-1", "withscores"})
	scores := map[string]bool{}
	for i, item := range reply.Items {
		switch {
		case len(item.Items) == 2:
			scores[item.Items[1].String()] = true
		case i%2 == 1:
			scores[item.String()] = true
		}
	}
	return len(scores) <= 1, err
}

// dbsize compares the number of keys, after both have dropped those whose time is over, which count until then: a write
// that finds a key expired drops it. The write itself does nothing.
func (p *pair) dbsize(args []string) string {
	var writes [][]string
	for _, key := range slices.Concat(p.mortal, keyPool) {
		writes = append(writes, []string{"hdel", key, "\x01 no such field"})
	}
	if _, _, err := p.both(writes); err != nil {
		return err.Error()
	}
	return p.plain(args)
}

// plain compares the replies as they are.
func (p *pair) plain(args []string) string {
	ours, theirs, err := p.both([][]string{args})
	if err != nil {
		return err.Error()
	}
	return p.compare(args, ours[0], theirs[0])
}

// storesDistances says whether the command stores distances as scores.
func storesDistances(name string, args []string) bool {
	return strings.HasPrefix(name, "geo") && slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "storedist") })
}

// storedDistances compares a command that stores distances. Where they differ by no more than alike allows, Stave is
// given those of Redis.
func (p *pair) storedDistances(args []string) string {
	if d := p.plain(args); d != "" {
		return d
	}
	for _, key := range args[1:] {
		ours, theirs, err := p.both([][]string{{"zrange", key, "0", "-1", "withscores"}})
		if err != nil {
			return err.Error()
		}
		mine, real := flat(ours[0]), flat(theirs[0])
		if len(mine) != len(real) || slices.Equal(mine, real) {
			continue
		}
		if key == storedAt(args) && countsPlaces(args[0], args) && alikeScores(mine, real) {
			continue // which of equally far places are counted is undefined
		}
		scores := map[string]float64{}
		for i := 0; i < len(real); i += 2 {
			scores[real[i]], _ = strconv.ParseFloat(real[i+1], 64)
		}
		for i := 0; i < len(mine); i += 2 {
			score, err := strconv.ParseFloat(mine[i+1], 64)
			want, ok := scores[mine[i]]
			if err != nil || !ok || !alike(score, want, 0) {
				return fmt.Sprintf("%q: stave %.500s, redis %.500s", key, show(ours[0]), show(theirs[0]))
			}
			if _, err := p.stave.do([]string{"zadd", key, strconv.FormatFloat(want, 'g', -1, 64), mine[i]}); err != nil {
				return err.Error()
			}
		}
	}
	// Taken for places, distances lie so close together that their order, seen from afar, is a matter of last bits
	// again.
	return p.plain([]string{"del", storedAt(args)})
}

// alikeScores says whether two lists of members and scores, in order, have the same scores but for rounding.
func alikeScores(a, b []string) bool {
	for i := 1; i < len(a); i += 2 {
		x, errX := strconv.ParseFloat(a[i], 64)
		y, errY := strconv.ParseFloat(b[i], 64)
		if errX != nil || errY != nil || !alike(x, y, 0) {
			return false
		}
	}
	return true
}

// storedAt is the key that a command on places stores its result at, if it does.
func storedAt(args []string) string {
	if strings.EqualFold(args[0], "geosearchstore") {
		return args[1]
	}
	at := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "store") || strings.EqualFold(arg, "storedist") })
	if at < 0 || at+1 == len(args) {
		return ""
	}
	return args[at+1]
}

// countsPlaces says whether the command selects some of the places that are near.
func countsPlaces(name string, args []string) bool {
	return strings.HasPrefix(strings.ToLower(name), "geo") && len(args) > 1 && slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "count") })
}

// nearest compares a command that selects the nearest places, or the farthest. Among equally far ones the choice is
// undefined: then the distances are compared, and the stored result goes.
func (p *pair) nearest(args []string) string {
	if key := storedAt(args); key != "" {
		if d := p.plain(args); d != "" {
			return d
		}
		return p.plain([]string{"del", key})
	}
	ours, theirs, err := p.both([][]string{args, append(slices.Clone(args), "withdist")})
	if err != nil {
		return err.Error()
	}
	d := p.compare(args, ours[0], theirs[0])
	if distances := secondOfEach(ours[1]); len(distances) > 0 && slices.EqualFunc(distances, secondOfEach(theirs[1]), sameDistance) {
		return ""
	}
	return d
}

// secondOfEach are the texts after the names in a reply of places.
func secondOfEach(r resp.Reply) (list []string) {
	for _, item := range r.Items {
		if len(item.Items) > 1 {
			list = append(list, item.Items[1].String())
		}
	}
	return list
}

// flat are the texts of a reply, in which RESP3 has pairs and doubles.
func flat(r resp.Reply) (list []string) {
	if r.IsError() {
		return nil
	}
	for _, item := range r.Items {
		if item.Items == nil {
			list = append(list, item.String())
		}
		list = append(list, flat(item)...)
	}
	return list
}
