package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// The version is that of the module, which the go command writes into the
// binary; nothing here has to be kept up to date.

// versionCommand describes stave version. One line, in the order in which a report of a bug needs
// it.
func versionCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "version",
		Action: func(*cli.Context) error {
			_, err := fmt.Fprintf(t.Out, "stave %s %s/%s %s%s\n", versionText(), runtime.GOOS, runtime.GOARCH, runtime.Version(), revision())
			return failed(exitCommand, err)
		},
	}
}

// versionText is the version that the module was installed as, or dev for a
// build from a work tree. INFO, HELLO and the greeting of the shell have it too.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

// revision is the commit of a build from a work tree. "with changes" warns that the commit does not
// say all. It is "" for a module that was installed by its version, which says all there is.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	// The settings come in no order that could be relied on.
	text, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			text = " commit " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}
	if text == "" {
		return ""
	}
	return text + dirty
}
