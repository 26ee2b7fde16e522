//go:build !unix

package cli

import "github.com/reeflective/readline/inputrc"

// keepTypedAhead does nothing where keys are not read from a terminal's stream.
func keepTypedAhead(*inputrc.Config) {}

// asksForCursor says whether the library asks the terminal where the cursor is.
const asksForCursor = true

// promptRow is nil where the library knows by itself which line the prompt is on.
func promptRow(any) *int { return nil }
