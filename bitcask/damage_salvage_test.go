package bitcask_test

import (
	"context"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
)

func init() {
	bitcask.SetSalvage(func(ctx context.Context, dir, out string, o *bitcask.Options, lost func(kind, key string, stale bool)) (uint64, error) {
		result, err := repair.Salvage(ctx, dir, out, o)
		for _, l := range result.Lost {
			lost(l.Kind, l.Key, l.Stale)
		}
		return result.Returned, err
	})
}
