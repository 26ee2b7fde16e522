package cli

import (
	"context"
	"log/slog"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
)

// systemd: a unit of Type=notify is started when the server says so, on the socket that $NOTIFY_SOCKET names. Without
// it nothing is said.

// tellSupervisor says that clients can connect, and, when ctx ends, that the server is ending.
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
