package shared

// Rewrite is CONFIG REWRITE. It excludes a reload: that would read the file while it is written, and compare it with users
// that are half those of before.
func (v *Settings) Rewrite() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	users := v.Users.rewritten()
	err := v.Config.Rewrite(users)
	if err == nil && users != nil {
		v.Users.given = users
	}
	return err
}
