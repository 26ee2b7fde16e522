package member

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server/internal/shared"
)

// Slots are those of the group's keys; all while the server has not seen the record.
func (m *Member) Slots() group.Slots {
	if s := m.slots.Load(); s != nil {
		return *s
	}
	return group.AllSlots()
}

// Others are the other groups of the cluster, by name.
func (m *Member) Others() []shared.Group {
	if o := m.others.Load(); o != nil {
		return *o
	}
	return nil
}

// watchOthers keeps what the server knows of the other groups, if there is somebody who tells.
func (m *Member) watchOthers(ctx context.Context) {
	if service, ok := m.options.Records.(group.Others); ok {
		service.WatchOthers(ctx, func(records map[string]group.Record) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.records = records
			m.remap()
		})
	}
}

// remap notes who has which slots. Where two groups claim one, this server's has it, or else the first by name. m.mu is locked.
func (m *Member) remap() {
	var others []shared.Group
	claimed := []group.Slots{m.Slots()}
	for _, name := range slices.Sorted(maps.Keys(m.records)) {
		slots, err := group.ParseSlots(m.records[name].Slots)
		if err != nil {
			continue
		}
		others = append(others, shared.Group{Name: name, Record: m.records[name], Owns: slots.Without(claimed...)})
		claimed = append(claimed, slots)
	}
	m.others.Store(&others)
}

// learnSlots notes the slots of the record that is known first, before the server plays a part in the group. An error says why it never can.
func (m *Member) learnSlots(record group.Versioned) error {
	if record.Version == 0 || m.slots.Load() != nil {
		return nil
	}
	slots, err := group.ParseSlots(record.Slots)
	if err != nil {
		return fmt.Errorf("the record of the group %s: %w", m.options.Group, err)
	}
	switch {
	case m.options.Slots != "" && m.options.Slots != slots.String():
		return &SlotsError{m.options.Group, slots, "the server is told that it has " + m.options.Slots + ": they are stated when a group is begun, and do not change"}
	case !slots.IsAll() && !m.state.Options.Cluster:
		return &SlotsError{m.options.Group, slots, "clients find the other slots in cluster mode only: the server needs cluster-enabled yes"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots.Store(&slots)
	m.remap()
	return nil
}

// SlotsError says why a server is no member of a group with these slots.
type SlotsError struct {
	Group string
	Slots group.Slots
	Why   string
}

func (e *SlotsError) Error() string {
	return fmt.Sprintf("the group %s has the slots %s, and %s", e.Group, e.Slots, e.Why)
}
