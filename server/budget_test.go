package server_test

import "github.com/stavedb/stave/internal/test/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	OneIn:   map[string]int{"TestDifferential": 8, "TestDifferentialClients": 2, "TestLinearizable": 6, "TestCaptureAgainstRedis": 4},
	Seconds: map[string]float64{"TestDifferential": 12, "TestDifferentialClients": 2, "TestLinearizable": 4, "TestCaptureAgainstRedis": 4, "TestLinearizableProcess": 1},
	Rest:    12,
}
