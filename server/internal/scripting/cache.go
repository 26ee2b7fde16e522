package scripting

import (
	"container/list"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/script"
)

// Cache has compiled scripts by their SHA-1. Scripts live in memory only, as in Redis: after a restart clients load
// them again.
type Cache struct {
	writes func(word string) bool // whether a word of a source is a command that writes

	mu        sync.Mutex // guards the rest
	bySHA     map[string]*Script
	bySource  map[uint64]*Script // by a hash of the source, which says nothing until the sources have been compared
	evaluated list.List          // of *Script that only EVAL has brought, least recently used first
	bytes     int                // that the scripts take
}

// Init makes an empty cache. writes says whether a word of a source is a command that writes.
func (t *Cache) Init(writes func(word string) bool) {
	t.writes, t.bySHA, t.bySource = writes, make(map[string]*Script), make(map[uint64]*Script)
}

// Bounds of the cache. The first is Redis 7.4's.
const (
	maxEvaluated   = 500       // scripts that only EVAL has brought: the least recently used one goes
	maxScriptBytes = 256 << 20 // of all scripts, source and code: those go as well, if there are some
)

const errScriptCache command.Error = "ERR the script cache is full. Use SCRIPT FLUSH to empty it."

// Script is a compiled script.
type Script struct {
	*script.Program
	Known
	hash    uint64        // of the source: see Cache.bySource
	element *list.Element // of evaluated; nil once SCRIPT LOAD or EVALSHA_RO has asked to keep it
}

// hashSeed is that of Cache.bySource.
var hashSeed = maphash.MakeSeed()

// OfSource returns the script of a source, which has been used now, if it is in the cache; nil if not. Most EVALs bring
// a source that is known: to hash it with SHA-1 each time would take longer than a small script.
func (t *Cache) OfSource(source []byte) *Script {
	hash := maphash.Bytes(hashSeed, source)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.bySource[hash]
	if p == nil || p.Source != string(source) {
		return nil
	}
	t.noteUseLocked(p, false)
	return p
}

// OfSHA is Lookup of a SHA-1 in any case.
func (t *Cache) OfSHA(sha []byte) *Script {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.bySHA[string(sha)]; p != nil {
		return p
	}
	return t.bySHA[strings.ToLower(string(sha))]
}

// Of is OfSHA, or OfSource.
func (t *Cache) Of(text []byte, isSHA bool) *Script {
	if isSHA {
		return t.OfSHA(text)
	}
	return t.OfSource(text)
}

// Lookup returns a script by its SHA-1, in lower case; nil if there is none.
func (t *Cache) Lookup(sha string) *Script {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bySHA[sha]
}

// Load returns the script of a source, compiled now if it is not known. keep is set if it is to stay until SCRIPT
// FLUSH.
func (t *Cache) Load(source string, keep bool) (*Script, error) {
	sha := script.SHA(source)
	t.mu.Lock()
	p := t.bySHA[sha]
	t.noteUseLocked(p, keep)
	t.mu.Unlock()
	if p != nil {
		return p, nil
	}
	program, err := compile(source)
	if err != nil {
		return nil, err
	}
	p = &Script{Program: program, hash: maphash.String(hashSeed, source)}
	for word := range program.Words {
		if t.writes(word) {
			p.Writes.Store(true)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.bySHA[sha]; first != nil { // another session was faster
		t.noteUseLocked(first, keep)
		return first, nil
	}
	for t.evaluated.Len() > 0 && (t.bytes+p.Size() > maxScriptBytes || !keep && t.evaluated.Len() >= maxEvaluated) {
		oldest := t.evaluated.Remove(t.evaluated.Front()).(*Script)
		delete(t.bySHA, oldest.SHA)
		delete(t.bySource, oldest.hash)
		t.bytes -= oldest.Size()
	}
	if t.bytes+p.Size() > maxScriptBytes {
		return nil, errScriptCache
	}
	t.bySHA[sha], t.bySource[p.hash] = p, p
	t.bytes += p.Size()
	if !keep {
		p.element = t.evaluated.PushBack(p)
	}
	return p, nil
}

// noteUseLocked notes that a script was loaded again; nil is none.
func (t *Cache) noteUseLocked(p *Script, keep bool) {
	switch {
	case p == nil || p.element == nil:
	case keep:
		t.evaluated.Remove(p.element)
		p.element = nil
	default:
		t.evaluated.MoveToBack(p.element)
	}
}

// Flush forgets all scripts. Those that run, run on.
func (t *Cache) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.bySHA)
	clear(t.bySource)
	t.evaluated.Init()
	t.bytes = 0
}

// Usage is the number of scripts and the bytes that they take.
func (t *Cache) Usage() (n, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.bySHA), t.bytes
}

// compile compiles a script for EVAL, and words what is wrong with it as Redis does.
func compile(source string) (*script.Program, error) {
	flags, err := FlagsOf(source)
	if err != nil {
		return nil, err
	}
	p, err := script.Compile(source, "user_script")
	if err != nil {
		return nil, command.Errorf("ERR Error compiling script (new function): %s", err.Error())
	}
	p.Flags = flags
	return p, nil
}

// FlagsOf reads the first line of a script, if it is one for the shell.
func FlagsOf(source string) (flags script.Flags, err error) {
	b, err := script.ParseShebang(source)
	switch {
	case err != nil:
		return 0, command.Errorf("ERR %s", err.Error())
	case b.Length == 0:
		return 0, nil
	case b.Engine != "lua":
		return 0, command.Errorf("ERR Unexpected engine in script shebang: #!%s", b.Engine)
	}
	for _, field := range b.Fields {
		list, ok := strings.CutPrefix(field, "flags=")
		if !ok {
			return 0, command.Errorf("ERR Unknown lua shebang option: %s", field)
		}
		for name := range strings.SplitSeq(list, ",") {
			flag, ok := script.ParseFlag(name)
			if !ok {
				return 0, command.Errorf("ERR Unexpected flag in script shebang: %s", name)
			}
			flags |= flag
		}
	}
	return flags, nil
}
