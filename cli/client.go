package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// stave cli is shell and exec for those whose fingers know redis-cli: the same options name the server, and the same
// ones change what is done with a command. The code is that of the other two.

// cliCommand describes stave cli.
func cliCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name:      "cli",
		Usage:     "Talks to a server, with the options of redis-cli",
		UsageText: "stave cli [-h HOST] [-p PORT] [COMMAND [ARG...]]\n" + "stave cli [-h HOST] [-p PORT] < SCRIPT",
		Description: `   stave cli -p 6380 SET greeting "hello world"
   stave cli -h 127.0.0.1 -p 6380 -n 1 DBSIZE
   stave cli -c prod PING

Without a command it is stave shell --addr HOST:PORT, and with one stave exec --addr
HOST:PORT, whose help has the rest. A password is taken from $STAVE_PASSWORD or
$REDISCLI_AUTH, or from the file of settings: there is no -a, since every user of
the machine sees a command line.

` + connectionsHelp,
		Flags: append(append(append(hostFlags(),
			&cli.StringFlag{Name: "socket", Aliases: []string{"s"}, Usage: "the server listens on the socket at `PATH`"},
			&cli.StringFlag{Name: "pass", Aliases: []string{"a"}, Hidden: true}),
			sessionFlags()...), execFlags()...),
		Action: func(c *cli.Context) error {
			if c.IsSet("pass") {
				return usagef("a command line is seen by every user of the machine: the password is taken from $STAVE_PASSWORD or $REDISCLI_AUTH")
			}
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
