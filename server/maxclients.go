package server

// slotsBeforeAuth: one of so many connections may be one that has not authenticated.
const slotsBeforeAuth = 10

// takePlace counts a connection, whatever listener it came in by, or says why there is no place for it. It cannot take
// more places than there are, however many listeners accept at the same time. A limit that is lowered below the number
// of connections ends none of them.
func (v *State) takePlace(needsSlot bool) (reason string) {
	for n := v.open.Load(); ; n = v.open.Load() {
		if n >= v.tunables.maxClients.Load() {
			return "max number of clients reached"
		}
		if v.open.CompareAndSwap(n, n+1) {
			break
		}
	}
	if needsSlot && !v.takeSlot() {
		v.open.Add(-1)
		return "max number of clients that have not authenticated reached"
	}
	return ""
}

// takeSlot takes one of the places for clients that have not authenticated, and reports whether there was one.
func (v *State) takeSlot() bool {
	if v.unauthenticated.Add(1) > max(1, v.tunables.maxClients.Load()/slotsBeforeAuth) {
		v.unauthenticated.Add(-1)
		return false
	}
	return true
}
