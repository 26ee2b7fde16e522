package backoff_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/internal/backoff"
)

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoff.Backoff
		if !b.Due() || b.Failing() || b.Worked() {
			t.Error("the zero value is not due")
		}
		first, other := errors.New("first"), errors.New("other")
		for i, want := range []time.Duration{1, 2, 4, 5, 5} {
			if news := b.Failed(time.Second, 5*time.Second, first); news != (i == 0) {
				t.Errorf("failure %d: news %v", i, news)
			}
			time.Sleep(want*time.Second - 1)
			if b.Due() {
				t.Errorf("due before %v", want*time.Second)
			}
			time.Sleep(time.Nanosecond)
			if !b.Due() {
				t.Errorf("not due after %v", want*time.Second)
			}
		}
		if !b.Failed(time.Second, time.Second, other) || !b.Failing() {
			t.Error("another failure is no news")
		}
		if !b.Worked() || b.Worked() || !b.Due() {
			t.Error("a success is no news, or always")
		}
	})
}
