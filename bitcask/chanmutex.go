package bitcask

import "context"

// chanMutex is a mutex for what may be held for seconds, also while its holder
// sleeps, as a throttled merge does. It is a channel because a goroutine that
// waits for a sync.Mutex keeps the clock of testing/synctest from moving on, and
// the sleeper in the same bubble would never wake.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

func (t chanMutex) Lock()   { t <- struct{}{} }
func (t chanMutex) Unlock() { <-t }

// LockUnless is Lock, unless the context ends before: then it returns the context's error.
func (t chanMutex) LockUnless(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock reports whether it has taken the turn, without waiting for it.
func (t chanMutex) TryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}
