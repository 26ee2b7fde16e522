package server

import "testing"

// TestDefaultTransport: the table of settings and the options have the same one.
func TestDefaultTransport(t *testing.T) {
	if got := NewConfig().Get("transport"); got != string(defaultTransport()) {
		t.Errorf("the default transport is %q in the table, and %q", got, defaultTransport())
	}
}
