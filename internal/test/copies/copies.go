// Package copies gives a test binary the flag -copies=on|off: whether the stores of its tests copy commits into the
// log, where they do not say so themselves. The tests that power cuts, kills and damage are about pass either way.
package copies

import (
	"errors"
	"flag"

	"github.com/stavedb/stave/internal/seam"
)

func init() {
	flag.Func("copies", "`on` or off: whether commits are copied into the log; default: as programs have it", func(text string) error {
		switch text {
		case "on":
			seam.DefaultCopies = seam.CopiesOn
		case "off":
			seam.DefaultCopies = seam.CopiesOff
		default:
			return errors.New("neither on nor off")
		}
		return nil
	})
}
