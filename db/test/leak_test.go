package db_test

import (
	"testing"

	_ "github.com/stavedb/stave/internal/test/copies"
	"github.com/stavedb/stave/internal/test/leak"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m) }
