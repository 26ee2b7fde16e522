package bitcask_test

import "github.com/stavedb/stave/internal/test/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{"TestEveryBit": 9, "TestEveryOperationFails": 6, "TestNothingStaysOpen": 16},
	OneIn:   map[string]int{"TestEveryBit": 8, "TestEveryOperationFails": 5, "TestNothingStaysOpen": 20},
	Rest:    30,
}
