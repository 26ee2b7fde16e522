package server_test

import "github.com/stavedb/stave/internal/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{"TestDifferential": 40, "TestDifferentialClients": 15, "TestLinearizable": 20, "TestLinearizableProcess": 6},
	Rest:    15,
}
