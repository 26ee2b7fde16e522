package server_test

import "github.com/stavedb/stave/internal/test/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{"TestDifferential": 12, "TestDifferentialClients": 2, "TestLinearizable": 4, "TestLinearizableProcess": 1},
	Rest:    12,
}
