package shared

// slotsBeforeAuth: one of so many connections may be one that has not authenticated.
const slotsBeforeAuth = 10

// TakePlace counts a connection, whatever listener it came in by, or says why there is no place for it. It cannot take
// more places than there are, however many listeners accept at the same time. A limit that is lowered below the number
// of connections ends none of them.
func (v *State) TakePlace(needsSlot bool) (reason string) {
	for n := v.Open.Load(); ; n = v.Open.Load() {
		if n >= v.Tunables.MaxClients.Load() {
			return "max number of clients reached"
		}
		if v.Open.CompareAndSwap(n, n+1) {
			break
		}
	}
	if needsSlot && !v.takeSlot() {
		v.Open.Add(-1)
		return "max number of clients that have not authenticated reached"
	}
	return ""
}

// takeSlot takes one of the places for clients that have not authenticated, and reports whether there was one.
func (v *State) takeSlot() bool {
	if v.Unauthenticated.Add(1) > max(1, v.Tunables.MaxClients.Load()/slotsBeforeAuth) {
		v.Unauthenticated.Add(-1)
		return false
	}
	return true
}
