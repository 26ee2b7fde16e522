package redact

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
)

// MonitorLine is what MONITOR shows of a request: the time, the database, where it comes from, and its arguments but for
// secrets, in Redis's form.
func MonitorLine(namespace int, from string, cmd *command.Command, args [][]byte) string {
	now := time.Now()
	line := fmt.Appendf(nil, "%d.%06d [%d %s]", now.Unix(), now.Nanosecond()/1000, namespace, from)
	for _, arg := range Args(cmd, args) {
		line = append(line, ' ')
		line = resp.AppendQuoted(line, arg)
	}
	return string(line)
}
