package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// version is the release that this tree is, or becomes.
const version = "0.1.0"

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

// versionText is the release that the module was installed as, or that a build from a work tree becomes. INFO, HELLO and
// the greeting of the shell have it too.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !released.MatchString(info.Main.Version) {
		return version
	}
	return info.Main.Version[1:]
}

// released is the version of a tag. A build from a work tree has a commit's time in its version, or none.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

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
