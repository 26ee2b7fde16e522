// Stave is an append-only Bitcask store that speaks Redis data structures:
// an embedded Go package, a server, a shell and offline tools in one binary.
//
// Run without arguments it opens a shell on ./stave-data. Everything else is
// described by "stave help"; this file only calls package cli.
package main

import (
	"os"

	"github.com/stavedb/stave/cli"
)

func main() {
	os.Exit(cli.Run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
