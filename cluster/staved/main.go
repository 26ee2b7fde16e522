// Staved is stave for groups: servers with the same data, one of which takes over when another one is gone, without the loss of an
// acknowledged write. It has all commands of stave. Its serve is a member of a group, whose record is in etcd: one that is elsewhere
// (--etcd), or one of three that run in the members (--peers). "staved local DIR" runs a whole group on one machine, and "staved recover"
// makes the record anew when etcd has lost it. docs/CLUSTER.md says how to use it.
package main

import (
	"io"
	"os"

	"github.com/stavedb/stave/cli"
	urfave "github.com/urfave/cli/v2"
)

func main() { os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	program := cli.Program{Commands: []*urfave.Command{localCommand(), recoverCommand()}, ServeFlags: serveFlags(), Serve: serve}
	return program.Run(args, stdin, stdout, stderr)
}
