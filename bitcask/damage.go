package bitcask

import (
	"errors"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/indexfile"
)

// Reading a damaged store (Options.ReadDamaged). Damage that Open would refuse is tolerated as long as something that
// verifies names the keys concerned: those give errors, and all others are intact. Three things can name them:
//
//   - The hint of a sealed segment, and the manifest: neither header nor footer nor any frame is needed then.
//   - The INDEX, as far as it goes.
//   - The frame itself, if a single flipped bit is all that is wrong with it. The same goes for the manifest.
//
// Where none of them does, the loss may be a newer value, a delete, a deadline or a flush of any key, so nothing older
// can be trusted: the store is not opened. Salvage copies the rest of it.
//
// Here is what decides whether damage is tolerated. Open meets it in store_segments.go, when it reads the manifest, and
// in packages replay and indexfile.

// tolerate notes damage that can be done without, if that is what err is and the store is open for that; else it
// returns err.
func (s *opener) tolerate(err error) error {
	c := (*CorruptError)(nil)
	if !s.opts.ReadDamaged || !errors.As(err, &c) {
		return err
	}
	if slices.Contains(s.recovery.Damage, *c) {
		return nil // the log is being read again
	}
	s.opts.Logger.Warn("damage", "file", c.File, "offset", c.Offset, "reason", c.Reason)
	s.recovery.Damage = append(s.recovery.Damage, *c)
	return nil
}

// tolerance is tolerate, or nil where that would tolerate nothing.
func (s *opener) tolerance() func(error) error {
	if s.opts.ReadDamaged {
		return s.tolerate
	}
	return nil
}

// vouch tolerates a tail whose checksum or length differs from the INDEX's if the manifest confirms the length.
func (s *opener) vouch(is indexfile.Segment, err error) error {
	known := s.man.vouches(is)
	if known && s.opts.ReadDamaged && s.segments.Load().Find(is.ID).Damaged {
		return nil // already reported
	}
	if known {
		return s.tolerate(err)
	}
	return err
}
