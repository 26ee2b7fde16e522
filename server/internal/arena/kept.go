package arena

// Kept is an empty slice of the same memory, or of none if that is much. What it held must have been cleared.
func Kept[T any](list []T) []T {
	if cap(list) > keepItems {
		return nil
	}
	return list[:0]
}

// keepItems is how many items a session's slices have room for between commands.
const keepItems = 1024
