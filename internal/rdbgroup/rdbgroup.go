// Package rdbgroup turns consumer groups as a stream has them into those of an RDB file or a payload, and back.
package rdbgroup

import (
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/structures"
)

// Encode is a group as a file has it.
func Encode(state structures.StreamGroupState) rdb.StreamGroup {
	g := rdb.StreamGroup{Name: []byte(state.Name), Last: rdb.StreamID(state.Last), Read: state.Read}
	index := make(map[string]int, len(state.Consumers))
	for i, c := range state.Consumers {
		index[c.Name] = i
		g.Consumers = append(g.Consumers, rdb.StreamConsumer{Name: []byte(c.Name), Seen: c.Seen, Active: c.Active})
	}
	for _, p := range state.Pending {
		g.Pending = append(g.Pending, rdb.StreamPending{ID: rdb.StreamID(p.ID), Consumer: index[p.Consumer], Delivered: p.Delivered, Deliveries: p.Deliveries})
	}
	return g
}

// Decode is the inverse of Encode.
func Decode(g rdb.StreamGroup) structures.StreamGroupState {
	state := structures.StreamGroupState{Name: string(g.Name), Last: structures.StreamID(g.Last), Read: g.Read}
	for _, c := range g.Consumers {
		state.Consumers = append(state.Consumers, structures.StreamConsumer{Name: string(c.Name), Seen: c.Seen, Active: c.Active})
	}
	for _, p := range g.Pending {
		state.Pending = append(state.Pending, structures.StreamPending{
			ID: structures.StreamID(p.ID), Consumer: string(g.Consumers[p.Consumer].Name), Delivered: p.Delivered, Deliveries: p.Deliveries,
		})
	}
	return state
}
