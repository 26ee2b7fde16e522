package bitcask_test

import "github.com/stavedb/stave/internal/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{"TestEveryBit": 10, "TestEveryOperationFails": 10, "TestNothingStaysOpen": 6},
	Rest:    30,
}
