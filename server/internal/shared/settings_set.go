package shared

import (
	"errors"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/listeners"
	"github.com/stavedb/stave/server/internal/settings"
)

// SetAll makes checked values so, or none of them: then it says which one failed, and why. What has been applied is put
// back in reverse order. The configuration notes the values only when nothing can fail any more: a CONFIG REWRITE at
// the same time writes none that did not hold.
func (v *Settings) SetAll(rows []*settings.Directive, values []string) (failed int, err error) {
	var undo []func()
	if to, at := listeners.Among(rows, values); at >= 0 {
		before := listeners.Values{}
		for name := range to {
			before[name] = v.Shown(settings.Table[name])
		}
		if err := v.Listening.Change(to); err != nil {
			return at, err
		}
		undo = append(undo, func() {
			if err := v.Listening.Change(before); err != nil {
				v.State.Options.Logger.Error("bind and ports could not be put back", "error", err)
			}
		})
	}
	for i, d := range rows {
		if Changers[d.Name] == nil {
			continue
		}
		before := v.Shown(d)
		if err := v.apply(d, values[i]); err != nil {
			for _, back := range slices.Backward(undo) {
				back()
			}
			return i, err
		}
		undo = append(undo, func() {
			if err := v.apply(d, before); err != nil {
				v.State.Options.Logger.Error("a setting could not be put back", "name", d.Name, "error", err)
			}
		})
	}
	for i, d := range rows {
		if set := setters[d.Name]; set != nil {
			set(v, values[i])
		}
		v.Config.Store(d, values[i], settings.FromClient)
	}
	return 0, nil
}

// Check checks a value that a client wants and returns it in its canonical form: bytes without a unit, yes and no
// in lower case. A setting that has a single value here, such as replica-read-only, may be set to that.
func (v *Settings) Check(d *settings.Directive, text string) (string, error) {
	value, err := d.Kind.Check(text, v.Shown(d))
	switch {
	case err != nil:
		return "", err
	case d.Mode == settings.Fixed && value != v.Shown(d):
		return "", errors.New(d.Refusal)
	case d.Name == "maxclients":
		return value, v.checkMaxClients(value)
	}
	return value, nil
}

// checkMaxClients refuses more clients than there are files for, as Redis does for CONFIG SET. At the start, and on a
// reload, such a value is lowered instead: see limitClients.
func (v *Settings) checkMaxClients(value string) error {
	n, err := settings.ParseMemory(value)
	if err != nil {
		return err
	}
	if most, known := v.mostClients(); known && n > most {
		return command.Errorf("The operating system is not able to handle the specified number of clients, try with %d", most)
	}
	return nil
}

// SettingTakesLong reports whether a CONFIG SET of names and values may take the time of slow hashes, of a sync, or of
// looking up a host.
func SettingTakesLong(args [][]byte) bool {
	return slices.ContainsFunc(args, func(arg []byte) bool {
		d := settings.Table[strings.ToLower(string(arg))] // nil for a value, most often
		return d != nil && (d.Name == "requirepass" || Changers[d.Name] != nil || listeners.IsSetting(d))
	})
}
