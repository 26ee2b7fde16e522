package shared

import "github.com/stavedb/stave/server/internal/settings"

// Rewrite is CONFIG REWRITE. The file gets the master that the server has now, whoever has set it; of a member of a group it
// gets none, for the group says whom a member follows. It excludes a reload: that
// would read the file while it is written, and compare it with users that are half those of before.
func (v *Settings) Rewrite() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	master := v.State.Following.Setting()
	if v.State.Member != nil {
		master = ""
	}
	v.Config.Store(settings.Table["replicaof"], master, settings.FromClient)
	users := v.Users.rewritten()
	err := v.Config.Rewrite(users)
	if err == nil && users != nil {
		v.Users.given = users
	}
	if err == nil && v.State.Member == nil {
		err = v.State.Following.rewritten(master)
	}
	return err
}
