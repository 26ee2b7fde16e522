package stats

// Attempt is what is counted of scripts that may have to be executed again.
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

// End ends the attempt, whose calls count if it was the last one.
func (a *Attempt) End(to *Counters, executed bool) {
	for _, c := range a.calls {
		if !executed {
			break
		}
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
	clear(a.calls)
	a.calls = a.calls[:0]
}
