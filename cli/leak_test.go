package cli_test

import (
	"os"
	"testing"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/internal/test/leak"
)

func TestMain(m *testing.M) {
	if os.Getenv("STAVE_TEST_AS_PROGRAM") != "" {
		os.Exit(cli.Run(append([]string{"stave"}, os.Args[1:]...), os.Stdin, os.Stdout, os.Stderr))
	}
	leak.VerifyTestMain(m)
}
