package shared

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/server/internal/settings"
)

// TestBindings: what is bound to a name is bound to one of the table, under its present name, and none that has no
// effect.
func TestBindings(t *testing.T) {
	for name := range setters {
		if d := settings.Table[name]; d == nil || d.Name != name || strings.HasPrefix(d.Mode.String(), "no effect") {
			t.Errorf("a setter for %s: %v", name, d)
		}
	}
	for name := range Changers {
		if d := settings.Table[name]; d == nil || d.Name != name || d.Mode != settings.Live || setters[name] != nil || getters[name] == nil {
			t.Errorf("a changer for %s: %v", name, d)
		}
	}
	for name := range getters {
		if d := settings.Table[name]; d == nil || d.Name != name {
			t.Errorf("a getter for %s: %v", name, d)
		}
	}
}
