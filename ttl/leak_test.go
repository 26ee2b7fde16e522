package ttl_test

import (
	"testing"

	"github.com/stavedb/stave/internal/test/leak"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m) }
