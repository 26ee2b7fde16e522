package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// stave cli is shell and exec for those whose fingers know redis-cli: the same options name the server, and the same
// ones change what is done with a command. The code is that of the other two.

// cliCommand describes stave cli. It differs from the other two where redis-cli does: without a command there is a
// shell, the default is the server on this machine, and no store is ever opened but by --connection. -a is a password
// there and an address here, so it is refused with a word on where passwords come from.
func cliCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "cli",
		Flags: append(append(append(hostFlags(),
			&cli.StringFlag{Name: "socket", Aliases: []string{"s"}, Usage: "the server listens on the socket at `PATH`"},
			&cli.StringFlag{Name: "pass", Aliases: []string{"a"}, Hidden: true}),
			sessionFlags()...), execFlags()...),
		Action: func(c *cli.Context) error {
			if c.IsSet("pass") {
				return usagef("a command line is seen by every user of the machine: the password is taken from $STAVE_PASSWORD or $REDISCLI_AUTH")
			}
			// Anything that exec alone understands goes there; what is left is the shell.
			mode, err := chosenMode(c)
			if err != nil || mode != nil || c.NArg() > 0 || c.IsSet("repeat") || c.IsSet("interval") || c.Bool("stdin-arg") || c.IsSet("stdin-tag") {
				return runExec(t, c) // which also words the error
			}
			o, err := readStoreOptions(t, c)
			if err != nil {
				return err
			}
			return runShell(t, shellOptions{storeOptions: o, keepGoing: c.Bool("keep-going")})
		},
	}
}
