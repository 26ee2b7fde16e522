package db_test

import "github.com/stavedb/stave/internal/test/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{
		"TestPowerCut": 80, "TestDamage": 30, "TestMergeAtEveryStep": 28, "TestSalvageEveryBit": 28, "TestOptionSets": 28, "TestModel": 15,
		"TestKillAtEveryStep": 8, "TestKillAtEveryCall": 5, "TestOptionalFiles": 5, "TestKill": 2,
	},
	Rest: 40,
}
