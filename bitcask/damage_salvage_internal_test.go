package bitcask

import "context"

// salvage is repair.Salvage, for the tests that are within this package: they cannot import what imports it.
var salvage func(ctx context.Context, dir, out string, o *Options) (salvaged, error)

// salvaged is the part of its result that the tests compare.
type salvaged struct {
	Lost     []salvageLoss
	Returned uint64
}

type salvageLoss struct {
	Kind, Key string
	Stale     bool
}

// SetSalvage sets it.
func SetSalvage(fn func(ctx context.Context, dir, out string, o *Options, lost func(kind, key string, stale bool)) (returned uint64, err error)) {
	salvage = func(ctx context.Context, dir, out string, o *Options) (r salvaged, err error) {
		r.Returned, err = fn(ctx, dir, out, o, func(kind, key string, stale bool) {
			r.Lost = append(r.Lost, salvageLoss{kind, key, stale})
		})
		return r, err
	}
}
