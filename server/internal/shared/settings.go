package shared

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/conf"
	"github.com/stavedb/stave/server/internal/listeners"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/server/internal/socket"
	"github.com/stavedb/stave/server/internal/web"
)

// Settings are the settings of a running server. Package settings says which there are and where their values come from,
// settings_bindings.go what they set; what sessions ask for often is kept in tunables.
type Settings struct {
	State     *State
	Config    *settings.Config
	Users     *UserSource
	Overrides map[string]string // Options.Settings
	LogLevel  *slog.LevelVar    // that CONFIG SET loglevel changes; nil: that has no effect
	Listening Listening

	evict sync.Mutex // held while what the store evicts is changed

	servesHTTP atomic.Bool // its connections need descriptors, too

	mu      sync.Mutex // guards reloads and users.given, and that one reload or CONFIG REWRITE runs at a time
	reloads []func() (changed bool, err error)
}

// Listening is where the server listens, which CONFIG SET bind, port and tls-port may change while it runs.
type Listening struct {
	Address func() (host, port string) // "" and "0" without a listener on TCP
	Port    func() string              // as CONFIG GET shows it
	TLSPort func() string              // as CONFIG GET shows it
	Change  func(listeners.Values) error
}

// ErrNotBound refuses to move a server that serves listeners which its program has opened: the server cannot know what
// else depends on them. It is Redis's text for a setting that needs a restart.
const ErrNotBound command.Error = "can't set immutable config"

// Start applies what has been set before there was a server. It holds against the other options.
func (v *Settings) Start() error {
	for _, name := range settings.Names {
		d := settings.Table[name]
		if value, isSet := v.Config.Lookup(d); isSet && name == d.Name && (Changers[name] == nil || value != v.Shown(d)) {
			if err := v.apply(d, value); err != nil {
				return fmt.Errorf("server: %s: %w", name, err)
			}
		}
	}
	v.limitClients()
	return nil
}

// reservedFiles are the descriptors that clients may not take: the store needs them for its segments and for
// merges, and the process for itself.
const reservedFiles = 64

// filesOfLoop are the descriptors of an event loop.
const filesOfLoop = 2

// mostClients is how many clients there may be beside them, and beside the connections of HTTP.
func (v *Settings) mostClients() (most int64, known bool) {
	files, known := socket.FileLimit()
	if v.servesHTTP.Load() {
		files -= web.MaxConnections
	}
	return max(files-reservedFiles-filesOfLoop*int64(v.State.Options.Loops), 1), known
}

// limitClients lowers maxclients to what the limit of open files allows. A server without listeners has no
// clients and is left alone by it.
func (v *Settings) limitClients() {
	most, known := v.mostClients()
	if was := v.State.Tunables.MaxClients.Load(); known && was > most {
		v.State.Options.Logger.Warn("maxclients is lowered to what the limit of open files allows", "maxclients", most, "was", was)
		v.State.Tunables.MaxClients.Store(most)
	}
}

// apply makes a checked value of a setting so. Only a changer fails, and then nothing has changed. The addresses are not
// among these: they change together, by changeBound.
func (v *Settings) apply(d *settings.Directive, value string) error {
	if change := Changers[d.Name]; change != nil {
		return change(v, value)
	}
	if set := setters[d.Name]; set != nil {
		set(v, value)
	}
	return nil
}

// Shown returns the value of a setting as CONFIG GET shows it.
func (v *Settings) Shown(d *settings.Directive) string {
	for _, name := range d.Names() {
		if value, set := v.Overrides[name]; set {
			return value
		}
	}
	if get := getters[d.Name]; get != nil {
		return get(v)
	}
	value := v.Config.Get(d.Name)
	if value != "" && slices.Contains(redact.Settings, d.Name) {
		return redact.Text
	}
	return value
}

// All are what CONFIG GET shows, by name and by older name. Options.Settings comes last, so that a
// program can correct any of them, and add others.
func (v *Settings) All() map[string]string {
	all := make(map[string]string, len(settings.Names))
	for name, d := range settings.Table {
		all[name] = v.Shown(d)
	}
	maps.Copy(all, v.Overrides)
	return all
}

// OnReload adds what a reload of the settings is to do besides: reading certificates again, for instance. The functions
// are called in order, by one goroutine at a time; they say whether anything has changed.
func (v *Settings) OnReload(reload func() (changed bool, err error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reloads = append(v.reloads, reload)
}

// LimitClients lowers maxclients for the descriptors of HTTP, which begins.
func (v *Settings) LimitClients() {
	v.servesHTTP.Store(true)
	v.limitClients()
}

// Reload reads the file of settings again and applies what has changed in it and may change while the server runs, all
// or nothing of what can be checked; what has changed is logged, what needs a restart, and what fails. Then it does what
// OnReload and ReloadTLS have added.
func (v *Settings) Reload() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	users := -1 // how many lines of users there are, if they have changed
	changed, err := v.Config.Changed(func(list []conf.Directive) error {
		users = len(list)
		return v.Users.reload(v.State, list)
	})
	switch {
	case err != nil:
		err = fmt.Errorf("the settings stay as they are: %w", err)
	case users >= 0:
		v.State.Options.Logger.Info("the users of the file of settings were loaded", "users", users)
	}
	names := make([]string, 0, len(changed))
	for name := range changed {
		names = append(names, name)
	}
	slices.Sort(names)
	var rows []*settings.Directive
	var values []string
	for _, name := range names {
		rows, values = append(rows, settings.Table[name]), append(values, changed[name])
	}
	var failedBound error
	if to, at := listeners.Among(rows, values); at >= 0 {
		failedBound = v.Listening.Change(to)
	}
	for _, name := range names {
		d := settings.Table[name]
		switch {
		case errors.Is(failedBound, ErrNotBound) && listeners.IsSetting(d):
			v.State.Options.Logger.Warn("setting changed in the file; it needs a restart", "name", name)
		case failedBound != nil && listeners.IsSetting(d):
			v.Config.Keep(d, v.Shown(d))
			err = errors.Join(err, fmt.Errorf("%s stays as it is: %w", name, failedBound))
		case name == "requirepass" && slices.ContainsFunc(v.Users.fileLines(), func(l conf.Directive) bool { return l.Args[0] == acl.DefaultName }):
			// the line of that user holds, as at the start
		case d.Mode == settings.Live:
			if failed := v.apply(d, changed[name]); failed != nil {
				v.Config.Keep(d, v.Shown(d))
				err = errors.Join(err, fmt.Errorf("%s stays as it is: %w", name, failed))
				continue
			}
			v.State.Options.Logger.Info("setting changed", "name", name, "value", settings.ShownValue(d, changed[name]))
		case d.Mode == settings.AtStart:
			v.State.Options.Logger.Warn("setting changed in the file; it needs a restart", "name", name)
		}
	}
	v.limitClients()
	reloaded := users >= 0 || len(names) > 0
	for _, reload := range v.reloads {
		changed, failed := reload()
		reloaded, err = reloaded || changed, errors.Join(err, failed)
	}
	if err == nil && !reloaded {
		v.State.Options.Logger.Info("reloaded: neither settings nor certificates have changed")
	}
	return err
}

// setLogLevel sets what the log has, if the program has lent the server its level.
func setLogLevel(v *Settings, value string) {
	if v.LogLevel == nil {
		return
	}
	level := slog.LevelInfo
	switch value {
	case "debug":
		level = slog.LevelDebug
	case "warning":
		level = slog.LevelWarn
	}
	v.LogLevel.Set(level)
}

// setMaxMemory sets maxmemory in bytes, and maxmemory-clients if that is a share of it, in whatever order the two are set.
func setMaxMemory(v *Settings, n int64) {
	v.State.Tunables.MaxMemory.Store(n)
	v.setEvict(func(e *db.Evict) { e.Memory = n })
	if clients := v.Config.Get("maxmemory-clients"); strings.HasSuffix(clients, "%") {
		setClientMemory(v, clients)
	}
}

// setPolicy sets maxmemory-policy.
func setPolicy(v *Settings, value string) {
	v.setEvict(func(e *db.Evict) { e.Policy = db.EvictPolicy(value) })
}

// setEvict changes a part of what the store evicts: the rest is as it was set, perhaps by the program that opened it.
func (v *Settings) setEvict(change func(*db.Evict)) {
	v.evict.Lock()
	defer v.evict.Unlock()
	e := v.State.Store.Evict()
	change(&e)
	if err := v.State.Store.SetEvict(e); err != nil {
		panic("BUG: server: a setting that was not checked: " + err.Error())
	}
}

// setClientMemory sets maxmemory-clients. A share of no limit is no limit.
func setClientMemory(v *Settings, value string) {
	digits, percent := strings.CutSuffix(value, "%")
	n, _ := strconv.ParseInt(digits, 10, 64) // checked
	if percent {
		n = v.State.Tunables.MaxMemory.Load() / 100 * n
	}
	v.State.Tunables.ClientMemory.Store(n)
	v.State.Replies.setClientMemory(n)
}

// shownClientMemory is maxmemory-clients as it was set.
func shownClientMemory(v *Settings) string {
	if value := v.Config.Get("maxmemory-clients"); strings.HasSuffix(value, "%") {
		return value
	}
	return itoa(v.State.Tunables.ClientMemory.Load())
}

// setBufferLimits sets the limits of what waits for clients, subscribers and replicas: words in fours, a class, two sizes in bytes
// and seconds. Three atomics are not set at one moment, so a client that is
// judged meanwhile may be judged by an old size and a new one.
func setBufferLimits(v *Settings, value string) {
	words := strings.Fields(value)
	for i := 0; i+3 < len(words); i += 4 {
		t, replicas := &v.State.Tunables, &v.State.Replicas.Settings
		limits := map[string][]*atomic.Int64{
			"normal": {&t.outputHard, &t.outputSoft, &t.outputSeconds}, "pubsub": {&v.State.Hub.Limits.Hard, &v.State.Hub.Limits.Soft, &v.State.Hub.Limits.Seconds},
			"slave": {&replicas.OutputHard, &replicas.OutputSoft, &replicas.OutputSeconds},
		}
		for j, to := range limits[words[i]] {
			n, _ := strconv.ParseInt(words[i+1+j], 10, 64) // checked
			to.Store(n)
		}
	}
}
