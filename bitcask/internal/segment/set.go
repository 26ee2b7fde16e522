package segment

// Set is an immutable list of open segments, found by id.
type Set struct {
	Base uint32
	ByID []*Segment // ByID[id-Base]; nil where there is none
}

func (ss *Set) Find(id uint32) *Segment {
	if i := id - ss.Base; id >= ss.Base && int(i) < len(ss.ByID) {
		return ss.ByID[i]
	}
	return nil
}

// Len is how many there are.
func (ss *Set) Len() int { return len(ss.All()) }

// All lists the segments in order of id.
func (ss *Set) All() []*Segment {
	list := make([]*Segment, 0, len(ss.ByID))
	for _, sg := range ss.ByID {
		if sg != nil {
			list = append(list, sg)
		}
	}
	return list
}

// With returns a copy that has add and lacks drop.
func (ss *Set) With(add []*Segment, drop []*Segment) *Set {
	gone := make(map[uint32]bool, len(drop))
	for _, sg := range drop {
		gone[sg.ID] = true
	}
	var list []*Segment
	for _, sg := range ss.All() {
		if !gone[sg.ID] {
			list = append(list, sg)
		}
	}
	return NewSet(append(list, add...))
}

func NewSet(list []*Segment) *Set {
	ss := new(Set)
	if len(list) == 0 {
		return ss
	}
	lo, hi := list[0].ID, list[0].ID
	for _, sg := range list {
		lo, hi = min(lo, sg.ID), max(hi, sg.ID)
	}
	ss.Base, ss.ByID = lo, make([]*Segment, hi-lo+1)
	for _, sg := range list {
		ss.ByID[sg.ID-lo] = sg
	}
	return ss
}
