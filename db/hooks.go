package db

// hook is something to call after the commit of a transaction.
type hook struct {
	after int // events of the transaction that come before it
	call  func(Ticket)
}

// OnCommit makes fn a part of the transaction: it is called once when the transaction has been committed, and not at
// all if it is rolled back, or RollbackTo undoes this call. A transaction that has written nothing calls it at its end,
// with the ticket 0.
//
// fn runs in its place among the events of the transaction (Store.OnEvents), after the commit and while the keys are
// locked: it must be quick, and must neither wait nor use the store, which fails with ErrNested. The commit is visible
// but may not be on disk yet: who tells others of it waits for the ticket first. If fn panics, the writer gets the
// panic after all others have been called, and the commit stands. OnCommit fails with ErrTxDone after the end of the
// transaction, which fn belongs to.
func (t *Tx) OnCommit(fn func(Ticket)) error {
	if err := t.check(); err != nil {
		return err
	}
	c := t.recording()
	c.hooks = append(c.hooks, hook{len(c.events), fn})
	return nil
}
