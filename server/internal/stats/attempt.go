package stats

// Attempt holds what the scripts of a transaction have called until it is known that they need not be executed again.
type Attempt struct{ calls []Call }

// Call is a command that a script has called, or the script itself.
type Call struct {
	Command int  // command.Command.Index, if Called or Failed
	Called  bool // it counts as a call
	Failed  bool
	Refusal string // the error reply; empty for none
}

// Note adds a call.
func (a *Attempt) Note(c Call) { a.calls = append(a.calls, c) }

// Len is how many calls there are.
func (a *Attempt) Len() int { return len(a.calls) }

// Truncate drops all calls but the first n.
func (a *Attempt) Truncate(n int) {
	clear(a.calls[n:])
	a.calls = a.calls[:n]
}

// Count adds the calls to the counters and drops them.
func (a *Attempt) Count(to *Counters) {
	for _, c := range a.calls {
		if c.Called {
			to.Commands[c.Command].Calls.Add(1)
		}
		if c.Failed {
			to.Commands[c.Command].Failed.Add(1)
		}
		if c.Refusal != "" {
			to.CountError(c.Refusal)
		}
	}
	a.Truncate(0)
}
