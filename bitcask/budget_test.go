package bitcask_test

import "github.com/stavedb/stave/internal/test/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{"TestEveryBit": 6, "TestEveryOperationFails": 2, "TestNothingStaysOpen": 1.5},
	Rest:    12,
}
