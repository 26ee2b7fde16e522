package cli

import (
	"context"
	"log/slog"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
)

// systemd: a unit of Type=notify is started when the server says so, on the socket that $NOTIFY_SOCKET names. Without
// it nothing is said.

// tellSupervisor says that clients can connect, and, when ctx ends, that the server is ending. It is called when the
// sockets are open: what connects before the first Accept waits in the kernel. A supervisor that cannot be reached is a
// line in the log, since the server works all the same; systemd then ends it when the time to start is over.
func tellSupervisor(ctx context.Context, logger *slog.Logger) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	say := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			logger.Warn("the supervisor is not told", "state", state, "error", err)
		}
	}
	say(daemon.SdNotifyReady)
	<-ctx.Done()
	say(daemon.SdNotifyStopping)
}
