// The tests of package db that are about a theme, not about one of its sources: crashes, damage, merges, the model.
package db_test

import (
	"testing"

	"github.com/stavedb/stave/internal/test/storetest"
)

type keys = storetest.Keys

const underRace = storetest.UnderRace

var (
	must            = storetest.Must
	numbers         = storetest.Numbers
	add             = storetest.Add
	fieldsText      = storetest.FieldsText
	mergeEverything = storetest.MergeEverything
	rewriteNewest   = storetest.RewriteNewest
	fillStore       = storetest.FillStore
	backupCommit    = storetest.BackupCommit
	verifyCommits   = storetest.VerifyCommits
)

const fullPage = storetest.FullPage

func ok[T any](t *testing.T) func(T, error) T { return storetest.OK[T](t) }

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	storetest.Equal(t, what, got, want)
}

func first[T any](v T, err error) error { return storetest.First(v, err) }
