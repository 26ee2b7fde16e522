package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/resp"
)

// The grammar of what hashes have beyond reading and writing, for the differential test.
func init() {
	maps.Copy(commands, map[string]func(g *generator) []string{
		"hincrbyfloat": func(g *generator) []string { return g.keyAnd(g.element(), g.float()) },
		"hstrlen":      func(g *generator) []string { return g.keyAnd(g.element()) },
		"hrandfield": func(g *generator) []string {
			count := pick(g, "0", "1", "3", "-5", "100", "x", "-9223372036854775808", "-9223372036854775807", "9223372036854775807")
			if count == "-9223372036854775807" {
				return g.keyAnd(count, "withvalues") // without it a real server would have to be stopped
			}
			return g.keyAnd(g.maybe(2, join(count, g.maybe(2, pick(g, "WITHVALUES", "withvalues", "x")))...))
		},
	})
}

// hrandfield compares errors and sizes, and looks each field up.
func (p *pair) hrandfield(args []string) string {
	ours, theirs, err := p.one(args)
	if err != nil {
		return err.Error()
	}
	fields := fieldsOf(ours, len(args) == 4)
	if ours.IsError() || len(fields) == 0 || len(fields) != len(fieldsOf(theirs, len(args) == 4)) || len(ours.Items) != len(theirs.Items) || ours.Kind != theirs.Kind {
		return diff("hrandfield", ours, theirs)
	}
	names := []string{"hmget", args[1]}
	for _, f := range fields {
		names = append(names, f[0])
	}
	held, err := p.redis.do(names)
	if err != nil {
		return err.Error()
	}
	for i, f := range fields {
		if held.Items[i].Null || len(args) == 4 && string(held.Items[i].Text) != f[1] {
			return fmt.Sprintf("stave chose %q: %s", f, show(held.Items[i]))
		}
	}
	slices.SortFunc(fields, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	if len(args) > 2 && !strings.HasPrefix(args[2], "-") && len(slices.Compact(fields)) != len(fields) {
		return fmt.Sprintf("stave chose a field twice: %q", fields)
	}
	return ""
}

// fieldsOf are the fields of a reply, with their values if it has them: one after the other, or in pairs.
func fieldsOf(r resp.Reply, values bool) (fields [][2]string) {
	switch {
	case r.Null || r.IsError():
		return nil
	case r.Kind == resp.BulkString:
		return [][2]string{{string(r.Text)}}
	}
	items := r.Items
	for len(items) > 0 {
		if !values {
			fields = append(fields, [2]string{string(items[0].Text)})
			items = items[1:]
			continue
		}
		pair := items
		if pair = items[0].Items; pair != nil {
			items = items[1:]
		} else if len(items) > 1 {
			pair, items = items[:2], items[2:]
		}
		if len(pair) != 2 {
			return nil
		}
		fields = append(fields, [2]string{string(pair[0].Text), string(pair[1].Text)})
	}
	return fields
}
