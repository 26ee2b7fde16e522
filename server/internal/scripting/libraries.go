package scripting

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/script"
)

// Libraries are the libraries of functions that the store has, loaded.
type Libraries struct {
	store  *db.Store
	engine *script.Engine
	logger *slog.Logger

	loaded atomic.Pointer[Set] // nil until the first use

	mu      sync.Mutex // guards the rest, and the making of a set; innermost but for locks of package script
	offered map[string]*script.Library
}

// Set is libraries, with their functions by name. It is not changed once others see it.
type Set struct {
	changes   uint64 // serverside.DB.LibraryChanges, when the sources were read
	Libraries map[string]*script.Library
	Functions map[string]*Function // by the name in lower case: names of functions have no case
	refused   map[string]string    // sources in the store that cannot be loaded, by library
	Bytes     int                  // of the sources
}

// Function is a function of a library.
type Function struct {
	*script.Function
	Known
}

// Init says where the libraries are, what loads them, and who is to know which cannot be loaded.
func (f *Libraries) Init(store *db.Store, engine *script.Engine, logger *slog.Logger) {
	f.store, f.engine, f.logger = store, engine, logger
}

// Current returns the libraries of the store. They are loaded again if they have changed.
func (f *Libraries) Current() *Set {
	if set := f.loaded.Load(); set != nil && set.changes == serverside.DB.LibraryChanges(f.store) {
		return set
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.loaded.Load()
	changes := serverside.DB.LibraryChanges(f.store) // first: a change in between makes another set
	if before != nil && before.changes == changes {
		return before
	}
	sources, err := serverside.DB.Libraries(f.store)
	if err != nil {
		f.logger.Error("libraries of functions are not complete and were left out", "error", err)
	}
	set := f.load(sources, before)
	set.changes = changes
	f.offered = nil
	f.loaded.Store(set)
	return set
}

// load makes a set of sources by name. What it knows already it takes from before, which may be nil, and from what
// sessions have loaded. A library that cannot be loaded is reported once and left out.
func (f *Libraries) load(sources map[string]string, before *Set) *Set {
	set := NewSet()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		source := sources[name]
		lib := f.offered[source]
		if lib == nil && before != nil {
			if known := before.Libraries[name]; known != nil && known.Source == source {
				lib = known
			}
		}
		var err error
		if lib == nil {
			lib, err = f.engine.Load(source, &script.Run{Name: name}, 0)
		}
		if err == nil {
			err = set.Add(lib, false, before)
		}
		if err == nil {
			continue
		}
		if before == nil || before.refused[name] != source {
			f.logger.Error("a library of functions cannot be loaded; replace it by FUNCTION LOAD REPLACE, or delete it", "library", name, "error", err)
		}
		set.refused[name] = source
	}
	return set
}

func NewSet() *Set {
	return &Set{Libraries: map[string]*script.Library{}, Functions: map[string]*Function{}, refused: map[string]string{}}
}

// Has reports whether there is a library of a name, also one that could not be loaded.
func (set *Set) Has(name string) bool {
	_, refused := set.refused[name]
	return refused || set.Libraries[name] != nil
}

func ErrLibraryExists(name string) error {
	return command.Errorf("ERR Library '%s' already exists", name)
}

// Add adds a library. The functions that before has of the same library keep what is Known of them.
func (set *Set) Add(lib *script.Library, replace bool, before *Set) error {
	if !replace && set.Has(lib.Name) {
		return ErrLibraryExists(lib.Name)
	}
	set.Remove(lib.Name)
	for _, f := range lib.Functions {
		if set.Functions[strings.ToLower(f.Name)] != nil {
			return command.Errorf("ERR Function %s already exists", f.Name)
		}
	}
	for _, f := range lib.Functions {
		name := strings.ToLower(f.Name)
		known := &Function{Function: f}
		if before != nil {
			if old := before.Functions[name]; old != nil && old.Function == f {
				known = old
			}
		}
		set.Functions[name] = known
	}
	set.Libraries[lib.Name] = lib
	set.Bytes += len(lib.Source)
	return nil
}

// Remove removes a library, if there is one of that name.
func (set *Set) Remove(name string) {
	delete(set.refused, name)
	lib := set.Libraries[name]
	if lib == nil {
		return
	}
	for _, f := range lib.Functions {
		delete(set.Functions, strings.ToLower(f.Name))
	}
	set.Bytes -= len(lib.Source)
	delete(set.Libraries, name)
}

// Clear removes all libraries and returns their names.
func (set *Set) Clear() []string {
	names := append(set.Names(), slices.Sorted(maps.Keys(set.refused))...)
	*set = *NewSet()
	return names
}

// Clone is a copy that can be changed.
func (set *Set) Clone() *Set {
	return &Set{Libraries: maps.Clone(set.Libraries), Functions: maps.Clone(set.Functions), refused: maps.Clone(set.refused), Bytes: set.Bytes}
}

// Names are the names of the libraries, in order.
func (set *Set) Names() []string {
	return slices.Sorted(maps.Keys(set.Libraries))
}

// maxOffered is how many offered libraries are kept: those of a commit that has failed stay until there is another.
const maxOffered = 64

// Offer keeps libraries that have been loaded and will soon be those of the store, so that they are not loaded twice.
func (f *Libraries) Offer(libraries ...*script.Library) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.offered) >= maxOffered {
		f.offered = nil // they are loaded again
	}
	for _, lib := range libraries {
		if f.offered == nil {
			f.offered = map[string]*script.Library{}
		}
		f.offered[lib.Source] = lib
	}
}
