package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stavedb/stave/bitcask"
)

// outcome is what became of a store that was damaged.
type outcome int

// The outcomes, in the order of the table.
const (
	asItWas   outcome = iota // every key, without an error
	keyErrors                // some keys give errors, all others are as they were
	notOpened                // opening is an error
	wrong                    // some key has a value that was never put for it
	old                      // none has, but some key has the value from before it was overwritten or deleted
	missing                  // neither, but some key is not there, without an error
	crashed                  // the process panicked, exited or did not end
	outcomes
)

var outcomeNames = [outcomes]string{"as it was", "error on the keys", "not opened", "WRONG value", "OLD value, deleted key is back", "MISSING without an error", "panic or hang"}

// flipsAbout describes the workload.
const flipsAbout = "small stores with one bit flipped, cut off, or zeros to the end: what is read from them"

// flipsWanted is how many flips an engine gets if no stride is given.
const flipsWanted = 800

// flips makes a small store of the engine, damages copies of it in one place
// each, and opens and reads them. That is done by other processes, for engines
// may panic or hang.
func flips(c *child) error {
	if c.step > 0 {
		return serveTrials(c)
	}
	root, err := os.MkdirTemp(memoryDir(), "stave-flips-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	made := filepath.Join(root, "made")
	if err := makeVictim(c.engine, made); err != nil {
		return err
	}
	v, err := readVictim(made)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(made); err != nil {
		return err
	}
	t := &trials{name: c.name, root: root, victim: v}
	counts, err := t.all(strideOf(c.flipsStride, v))
	t.kill()
	if err != nil {
		return err
	}
	c.record("bytes", float64(v.used()))
	for kind, row := range counts {
		for o, n := range row {
			c.record(fmt.Sprintf("%d-%d", kind, o), float64(n))
		}
	}
	return nil
}

// memoryDir is a directory in memory if the system has one, else the temporary
// one ("").
func memoryDir() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

// strideOf is odd so that every bit of a byte gets its turn.
func strideOf(wanted int, v *victim) int {
	if wanted <= 0 {
		wanted = v.used() * 8 / flipsWanted
	}
	return max(wanted, 1) | 1
}

// victimOptions have every put and delete on disk before it returns. Segments
// are small so that some are full, where the engine lets one choose.
var victimOptions = openOptions{sync: bitcask.SyncAlways, segmentSize: 2 << 10, verify: true}

// What happens to the keys of a victim.
const (
	victimKeys        = 40
	victimOverwritten = 12 // the first ones
	victimDeleted     = 18 // those after them, up to this one
	victimValue       = 32 // bytes
)

// victimWants is the value of a key in the end; false if it was deleted.
func victimWants(i int) ([]byte, bool) {
	switch {
	case i < victimOverwritten:
		return victimText(i, 1), true
	case i < victimDeleted:
		return nil, false
	}
	return victimText(i, 0), true
}

// victimText differs from key to key and from version to version.
func victimText(i, version int) []byte {
	return fmt.Appendf(nil, "%0*d", victimValue, (i+1)*1_000_003+version*7_777_777)
}

// makeVictim lets a store live through two sittings, each of which ends with a
// close.
func makeVictim(e *engine, dir string) error {
	if err := sitting(e, dir, func(s kv) error {
		for i := range victimKeys {
			if err := s.put(keyAt(i), victimText(i, 0)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return sitting(e, dir, func(s kv) error {
		for i := range victimDeleted {
			var err error
			if want, there := victimWants(i); there {
				err = s.put(keyAt(i), want)
			} else {
				err = s.remove(keyAt(i))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func sitting(e *engine, dir string, fn func(s kv) error) error {
	s, err := e.open(dir, victimOptions)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.close())
}

// lookAtVictim reads every key that there ever was. The worst of them counts.
func lookAtVictim(s kv) outcome {
	var seen [outcomes]bool
	for i := range victimKeys {
		want, there := victimWants(i)
		switch got, found, err := s.get(nil, keyAt(i)); {
		case err != nil:
			seen[keyErrors] = true
		case found && there && string(got) == string(want), !found && !there:
		case !found:
			seen[missing] = true
		case string(got) == string(victimText(i, 0)):
			seen[old] = true
		default:
			seen[wrong] = true
		}
	}
	for _, out := range []outcome{wrong, old, missing, keyErrors} {
		if seen[out] {
			return out
		}
	}
	return asItWas
}

// flipTables show how often each kind of damage had each outcome.
func flipTables() []table {
	var rows []row
	for _, e := range engines {
		for kind, what := range faultNames {
			at := func(o int) string { return fmt.Sprintf("flips/%s/%d-%d", e.name, kind, o) }
			var names []string
			for o := range outcomes {
				names = append(names, at(int(o)))
			}
			r := row{label: e.name + ", " + what, cells: []cell{
				fig(count, "flips/"+e.name+"/bytes"),
				calc(count, func(v []float64) (sum float64) {
					for _, n := range v {
						sum += n
					}
					return sum
				}, names...),
			}}
			for _, name := range names {
				r.cells = append(r.cells, fig(count, name))
			}
			rows = append(rows, r)
		}
	}
	return []table{{"damage to small stores", append([]string{"bytes in use", "times"}, outcomeNames[:]...), rows}}
}
